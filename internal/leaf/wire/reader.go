package wire

import "io"

// ListReader hands over one list, item by item.
type ListReader interface {
	// Next returns the next item. io.EOF is the proper end: the list was complete and nothing
	// followed it. An *ItemError concerns one item, and Next may be called again; any other error
	// ends the body, and Next repeats it.
	Next() (Item, error)

	// Meta is what the list says of itself. It is complete only after Next returned io.EOF, because
	// the metadata of custom resources stands behind their items; before that it holds what has
	// been read so far.
	Meta() ListMeta

	// Reset starts on another body, the next page for instance, and keeps the buffers.
	Reset(body io.Reader)
}

// WatchReader hands over one watch, event by event.
type WatchReader interface {
	// Wait ends the loan of the last event and waits for the first bytes of the next one. Whatever
	// it meets, Next says. Next waits too, but on a larger stack.
	Wait()

	// Next returns the next event, with errors as ListReader's Next. io.EOF means that the server
	// closed the watch between two events.
	Next() (Event, error)

	// Unread returns how many bytes were read behind the last event. White space does not count.
	Unread() int
}

var (
	_ ListReader  = (*jsonList)(nil)
	_ ListReader  = (*protoList)(nil)
	_ ListReader  = (*undeclaredList)(nil)
	_ WatchReader = (*jsonWatch)(nil)
	_ WatchReader = (*protoWatch)(nil)
	_ WatchReader = (*undeclaredWatch)(nil)
)

// Options of a reader. The zero value is the default.
type Options struct {
	// MaxItemBytes is the largest item (in a watch: the largest frame) that is handed over, 16 MiB
	// if 0. It bounds the reader's memory, and also what may stand before, between and behind the
	// items.
	MaxItemBytes int
	// BufferBytes is the size of the read buffer at rest, 64 KiB if 0. A smaller one grows up to
	// that while the body brings more than it holds. It grows for a larger item. It shrinks again.
	BufferBytes int
}

const (
	defaultMaxItemBytes = 16 << 20
	defaultBufferBytes  = 64 << 10
	minBufferBytes      = 64

	// An item is skipped up to so many times MaxItemBytes; after that it counts as endless.
	skipFactor = 16
)

func (o Options) withDefaults() Options {
	if o.MaxItemBytes <= 0 {
		o.MaxItemBytes = defaultMaxItemBytes
	}
	if o.BufferBytes <= 0 {
		o.BufferBytes = defaultBufferBytes
	}
	o.BufferBytes = max(o.BufferBytes, minBufferBytes)
	return o
}

// NewListReader reads a list in the given format from body, which stays the caller's to close.
func NewListReader(body io.Reader, format Format, options Options) ListReader {
	switch format {
	case Protobuf:
		return newProtoList(body, options.withDefaults())
	case Undeclared:
		return &undeclaredList{body: body, options: options}
	}
	return newJSONList(body, options.withDefaults())
}

// NewWatchReader reads a watch in the given format from body, which stays the caller's to close.
func NewWatchReader(body io.Reader, format Format, options Options) WatchReader {
	switch format {
	case Protobuf:
		return newProtoWatch(body, options.withDefaults())
	case Undeclared:
		return &undeclaredWatch{body: body, options: options}
	}
	return newJSONWatch(body, options.withDefaults())
}
