// Package wire reads Kubernetes lists and watches off a stream, one object at a time, without
// decoding it.
//
// A list body holds items; a watch body holds events, each in a frame. An item's bytes, its name,
// namespace, UID and resource version are found by scanning, and are lent: they live until the next
// call of Next. What surrounds the items of a list, its envelope, is read into ListMeta.
//
//	list := wire.NewListReader(response.Body, wire.JSON, wire.Options{})
//	for {
//		item, err := list.Next()
//		var lost *wire.ItemError
//		switch {
//		case err == io.EOF:
//			return list.Meta(), nil // the list was complete
//		case errors.As(err, &lost):
//			report(lost) // this item is, the next one is not
//			continue
//		case err != nil:
//			return list.Meta(), err // cut, or no list: what came so far is good
//		}
//		use(item.Bytes)
//	}
//
// # The mouth
//
// NewListReader and NewWatchReader are what the engine calls. A ListReader returns Items and says
// with Meta what the list says of itself. A WatchReader returns Events. Options bound the memory,
// and FormatOf chooses the reader by the Content-Type. The errors are listed below.
//
// JSONText, Message, FieldAt, RunOf and Metadata look into one object. They serve the leaves that
// prune, find fields or decode, the check of labels in package source, and the object cache.
//
// You may stop reading at these names: no caller depends on the scanner behind them. The fuzz targets
// compare it with apimachinery's decoders.
//
// # How strict it is
//
// Whatever apimachinery's decoders accept yields the same items, names and list metadata, for any
// chunking; the fuzz targets hold this. Keys are matched as they do: letter case counts, the last
// of repeated keys wins, null counts as absent. Accepted there and refused here, because an
// informer that took it for an empty or other list would delete:
//
//   - a list without items ({}), or, in protobuf, an envelope without a list, kind or apiVersion;
//   - in protobuf a kind that does not end in List, and the v1 List, whose items are no objects;
//   - items that come twice: the first have been handed over when the second replace them;
//   - a kind of Status;
//   - what exceeds MaxItemBytes, in an item or between two.
//
// In JSON the grammar outside strings is checked to the last comma, since item boundaries hang on
// it. Inside strings only the end is looked for: bad escapes, control characters and bad UTF-8 in a
// string that is not handed over pass, and a later decode rejects them. In protobuf an item's
// boundary is its length; the fields of the object and of its metadata are walked, what is in the
// others is not looked at.
//
// # What is lost, and what ends
//
// An *ItemError loses one item: it is malformed, nameless, or over MaxItemBytes (skipped without
// being held). A *BodyError ends the body. A body cut anywhere is io.ErrUnexpectedEOF, never
// io.EOF, with one exception: the protobuf envelope without its last two fields, which are empty,
// cannot be told from a whole one; the list in it is complete.
//
// Memory is bounded on any input by a small multiple of MaxItemBytes, which also bounds keys, white
// space and unknown fields. Nothing is allocated per item, except by errors and by bookmarks in
// JSON.
//
// # Why a scanner of its own
//
// Measured on generated pods of 4.7 KB of JSON (3.1 KB of protobuf), in MB per second of CPU on one
// core of an AMD EPYC (go1.26.8; the machine was busy with other work, so CPU time is what counts;
// medians of 3), with
//
//	go test ./internal/leaf/wire -run '^$' -bench 'List|Watch' -benchmem
//
//	JSON list      this package, structure and names   4,200   0 allocations
//	               jsontext ReadValue, no names          555   0
//	               json.Decoder into a RawMessage        143   0
//	JSON watch     this package                        4,100   0
//	protobuf list  this package                        8,600   0
//	               pod.Unmarshal besides                 225   143
//	protobuf watch this package                        5,900   0
//
// encoding/json/jsontext needs GOEXPERIMENT=jsonv2 in Go 1.26, so a library cannot use it; it also
// could not go on after a broken item. BenchmarkJSONText compares.
//
// In JSON, an object is compared with an earlier one of the body, because most bytes of siblings
// are equal. Only the places where objects have differed are looked at token by token. These pods
// flatter that: they are made from one template. Objects that do not match are scanned; a JSON list
// is read with 1,850 MB per second then.
//
// In that scan, the quotes of 64 bytes are found at once, ahead of the tokens, and bytes.IndexByte
// finds the end of a long string; between strings one byte is looked at at a time.
package wire
