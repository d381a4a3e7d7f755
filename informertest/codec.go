package informertest

import "bufio"

// codec writes the objects of one resource as one client wants to see them.
type codec interface {
	// object appends an object that stands on its own: answered to a get, or inside a watch event.
	object(b []byte, o *object) ([]byte, error)
	// garbage appends what stands there instead of an object and cannot be read as one.
	garbage(b []byte, kind int) ([]byte, error)
	// mistyped appends the object with fields that do not fit their types.
	mistyped(b []byte, o *object) ([]byte, error)
	// list writes a page. An object that this codec cannot write is its error.
	list(out *bufio.Writer, p page) error
	// bookmark is the object of a BOOKMARK event; initialEnd marks the one that ends the initial
	// events of a watch-list.
	bookmark(rv uint64, initialEnd bool) ([]byte, error)
}

func newCodec(r Resource, as representation) codec {
	if as.media == mediaProtobuf {
		return protobufCodec{resource: r, form: as.form}
	}
	return jsonCodec{resource: r, form: as.form}
}
