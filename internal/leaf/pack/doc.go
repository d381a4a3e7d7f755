// Package pack keeps many encoded objects of one kind in a small part of their length, each
// readable on its own.
//
//	p := pack.New() // one for each kind
//	d := p.Prepare(ownerUID, older, encoded) // beside readers; older is 0 for a new object
//	lock()
//	ref := p.Add(name, slot, d)
//	p.Drop(older)
//	p.Tidy(func(slot uint32, to pack.Ref) { refs[slot] = to })
//	unlock()
//
//	rlock()
//	r := p.Record(ref)
//	runlock()
//	encoded, err := r.Append(nil) // at any time, without a lock
//
// # How an object is compressed
//
// Objects of one owner differ in little but random parts: a UID, container IDs, addresses, times.
// So an object is compressed with s2 against another one, its base:
//
//	root         a few objects of the kind, uncompressed; the dictionary of bases
//	  base       the first object of a group, a record like any other
//	    record   every other object of the group
//
// No chain is longer, so a read decodes two payloads at most, and one where the object before it
// had the same base. A base is no copy: it is an object's own record, so an owner of one object
// pays for nothing else. When that object is dropped, the bytes stay for as long as records need
// them. A group is what the caller's hint says. An object without a hint, or one that is unlike its
// group, is compared with the newest base, and without a hint with a few that were used recently. A
// group whose objects have become unlike its base, as after a rollout, has a new one.
//
// What s2 leaves over is mostly hexadecimal digits. One Huffman code for the whole pack, made of
// the first 16 KB and renewed twice as the pack grows, shortens it by a quarter.
//
// # Where the bytes are
//
// A chunk is up to 64 KB of records, appended to and otherwise immutable, so that the view of a
// record needs no lock. A Ref is a chunk's number and an offset. There is no pointer per record.
// When more than a sixteenth of all bytes is dropped, Tidy moves what is left in the emptiest
// chunk, one chunk for each call; the garbage collector frees the chunk when the last view of it
// has gone.
//
// A View is the list of chunks and bases at one moment. A reader of many records copies it with the
// Refs under the lock, and makes the records later. For a few records, Record is cheaper.
//
// A record that is kept for long, in a queue for instance, keeps its chunk in memory. Copies makes
// copies of records, which do not.
//
// The tables for compressing, 32 KB for each base in use, are held by a weak pointer. The garbage
// collector takes them from a pack that is not written to.
//
// # Snapshots
//
// Snapshot takes the state of a moment without copying records, and Write writes it beside readers
// and writers. Read gives a pack with the same records and Refs, to which writers can add. All says
// which owner has which Ref. A snapshot of 100,000 pods has 35 MB (go test -run xxx -bench Snapshot
// ./internal/leaf/pack): 16 ms to write to memory and 71 ms to read.
//
// # What it costs
//
// Bytes held for each object by go test -run xxx -bench . ./internal/leaf/pack, with a name of 42 to 51
// bytes that is stored beside it. The objects are those of internal/testkit/samples: random UIDs, container
// IDs, addresses and times, 12.5 to an owner.
//
//	5,000 pods of 3,453 bytes of protobuf               392
//	100,000 pods                                        354
//	5,000 pods, each updated ten times: 3,669 bytes     599
//	1,000 pods, each the only one of its owner          787
//	5,000 custom resources of 2,089 bytes of JSON       314
//
// The lowest of several runs on a busy machine with two cores: Prepare and Add of a pod 8.2 µs, of
// a custom resource 7.7 µs; Record and Append of a pod 2.6 µs in the order of a list and 8.7 µs in
// random order.
package pack
