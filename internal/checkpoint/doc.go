// Package checkpoint writes and reads the file of a checkpoint: for every object
// its key and the version of it that was acknowledged, and a few named values about
// them all.
//
//	w := checkpoint.NewWriter(file)
//	err := w.Metadata("resourceVersion", "1700")
//	err = w.Entry(checkpoint.Entry{Key: "default/web-7d9f-x2x4z", ResourceVersion: "1691", UID: uid})
//	err = w.Close() // writes the end, without which no reader takes it
//
//	r := checkpoint.NewReader(file)
//	entry, err := r.Next() // io.EOF once the checksum was found right
//
// An entry is one object. A block is a run of entries, or of metadata, behind its
// length: because of it a reader knows how much to ask for, takes not one byte more
// than the checkpoint has, and a checkpoint may be followed by something else.
//
// docs/checkpoint-format.md describes the format byte by byte.
package checkpoint
