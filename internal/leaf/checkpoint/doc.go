// Package checkpoint is the format of a checkpoint, and the file that keeps one. A checkpoint
// has the key of every object and the version of it that was acknowledged, and a few named
// values about them all. A Source says which objects it is about, and a File stores it.
//
//	w := checkpoint.NewWriter(file)
//	err := w.Metadata("resourceVersion", "1700")
//	err = w.Entry("default/web-7d9f-x2x4z", &version)
//	err = w.Push() // now and then: Entry only buffers
//	err = w.Close() // writes the end, without which no reader takes it
//
//	r := checkpoint.NewReader(file)
//	key, version, err := r.Next() // io.EOF once the checksum was found right
//
// An entry is one object. Its version is written and read in binary, as the key table has it,
// so that no string is made of it. A block is a run of entries, or of metadata, behind its
// length. Because of the length, a reader takes no byte more than the checkpoint has, and
// something else may follow.
//
// A snapshot is a checkpoint of some objects with a payload behind its end: all objects, in
// whatever encoding its user has for them.
//
//	p := checkpoint.NewSnapshotWriter(file).Payload()
//	p.Bytes(object)
//	err := p.Close()
//
// # The mouth
//
// Writer and Reader write and read a checkpoint: Metadata, Entry and Close, then Next. A Journal makes
// the frames that are appended to it, and NextRecord reads them. A File keeps both on disk: it saves
// all or nothing, appends, and locks. Source.Check says whether a saved checkpoint is about the
// objects that are followed.
//
// You may stop reading here: no caller depends on a byte of the format. TestFormatExample and
// TestJournalExample compare it with the page below, and FuzzReader damages it.
//
// docs/checkpoint-format.md describes the format byte by byte.
package checkpoint
