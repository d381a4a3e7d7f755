// Package checkpoint writes and reads the file of a checkpoint: for every object
// its key and the version of it that was acknowledged, and a few named values about
// them all.
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
// An entry is one object. Its version comes and goes in binary, as the table of a
// storage has it, and no string is made of it on the way. A block is a run of entries, or of metadata, behind its
// length: because of it a reader knows how much to ask for, takes not one byte more
// than the checkpoint has, and a checkpoint may be followed by something else.
//
// docs/checkpoint-format.md describes the format byte by byte.
package checkpoint
