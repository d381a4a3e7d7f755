package wire

import (
	"bytes"
	"fmt"
	"io"

	"github.com/rvinformer/informer/api"
)

// recognize reads the beginning of a body whose answer has no Content-Type, and returns its format
// and a body that begins with what was read. A body that cannot be read, or has only white space, is
// for the JSON reader to refuse. The error is an *api.BodyError with an ErrContentType.
func recognize(body io.Reader, watch bool) (Format, io.Reader, error) {
	head := make([]byte, shownBytes)
	n, err := 0, error(nil)
	for n == 0 && err == nil {
		n, err = body.Read(head)
	}
	head = head[:n]
	if err != nil {
		body = failing{err}
	}
	whole := io.MultiReader(bytes.NewReader(head), body)
	first := bytes.TrimLeftFunc(head, func(r rune) bool { return r < 0x80 && isSpace(byte(r)) })
	switch {
	case len(first) == 0, first[0] == '{':
		return JSON, whole, nil
	case watch && head[0] == 0: // the length of a frame
		return Protobuf, whole, nil
	case !watch && bytes.HasPrefix(head, protoPrefix[:min(n, len(protoPrefix))]):
		return Protobuf, whole, nil
	}
	return JSON, nil, &api.BodyError{Watch: watch, Head: Quote(head), Err: fmt.Errorf("%w: %q", api.ErrContentType, "")}
}

// failing is the rest of a body that has failed.
type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

// undeclaredList reads a list of the format Undeclared.
type undeclaredList struct {
	body    io.Reader
	options Options
	// reader is nil until the format is recognized, and err is why it is not.
	reader ListReader
	err    error
}

func (l *undeclaredList) Next() (Item, error) {
	if l.reader == nil && l.err == nil {
		var format Format
		if format, l.body, l.err = recognize(l.body, false); l.err == nil {
			l.reader = NewListReader(l.body, format, l.options)
		}
	}
	if l.err != nil {
		return Item{}, l.err
	}
	return l.reader.Next()
}

func (l *undeclaredList) Meta() ListMeta {
	if l.reader == nil {
		return ListMeta{}
	}
	return l.reader.Meta()
}

func (l *undeclaredList) Reset(body io.Reader) {
	*l = undeclaredList{body: body, options: l.options}
}

// undeclaredWatch reads a watch of the format Undeclared. The answer may have no byte for long, so
// that the format is recognized when the first event comes.
type undeclaredWatch struct {
	body    io.Reader
	options Options
	// reader is nil until the format is recognized, and err is why it is not.
	reader WatchReader
	err    error
}

// begins recognizes the format, and reports whether the watch can be read.
func (w *undeclaredWatch) begins() bool {
	if w.reader == nil && w.err == nil {
		var format Format
		if format, w.body, w.err = recognize(w.body, true); w.err == nil {
			w.reader = NewWatchReader(w.body, format, w.options)
		}
	}
	return w.err == nil
}

func (w *undeclaredWatch) Wait() {
	if w.begins() {
		w.reader.Wait()
	}
}

func (w *undeclaredWatch) Next() (Event, error) {
	if !w.begins() {
		return Event{}, w.err
	}
	return w.reader.Next()
}

func (w *undeclaredWatch) Unread() int {
	if w.reader == nil {
		return 0
	}
	return w.reader.Unread()
}
