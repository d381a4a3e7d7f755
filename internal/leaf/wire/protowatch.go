package wire

import (
	"encoding/binary"
	"io"

	"k8s.io/apimachinery/pkg/watch"

	"github.com/rvinformer/informer/api"
)

// protoWatch reads frames: four bytes of length, big-endian, then a metav1.WatchEvent without the
// k8s prefix, whose object is a runtime.RawExtension, whose raw is an object inside the k8s
// envelope.
type protoWatch struct {
	window
	options Options

	err   error // ended the body
	index int   // of the next event
}

const frameHeader = 4

// Field numbers of a frame.
const (
	eventTypeField   = 1
	eventObjectField = 2
	extensionRaw     = 1
)

func newProtoWatch(body io.Reader, o Options) *protoWatch {
	w := &protoWatch{options: o}
	w.watch = true
	w.reset(body, o)
	return w
}

func (w *protoWatch) Wait() {
	w.release()
	if w.err == nil {
		w.need(frameHeader)
	}
}

func (w *protoWatch) Next() (Event, error) {
	w.release()
	if w.err != nil {
		return Event{}, w.err
	}
	if !w.need(frameHeader) {
		if w.pos == w.end && w.stop == io.EOF {
			w.err = io.EOF
		} else {
			w.err = w.cut(w.index)
		}
		return Event{}, w.err
	}
	length := int64(binary.BigEndian.Uint32(w.buf[w.pos:]))
	limit := int64(w.options.MaxItemBytes)
	if length > limit*skipFactor {
		// Text makes lengths of 168 MB and more: by default all but those that begin with a line
		// break end here.
		w.err = w.bodyError(api.ErrEndless, "", w.index)
		if w.index == 0 {
			w.err = w.bodyError(api.ErrNotWatch, "no frame of a sensible length", 0)
		}
		return Event{}, w.err
	}
	w.pos += frameHeader
	return w.frame(length, length > limit)
}

func (w *protoWatch) Unread() int { return w.end - w.pos }

// frame reads what is in a frame of the given length, or just its beginning.
func (w *protoWatch) frame(length int64, tooLarge bool) (Event, error) {
	begin := w.at()
	event := Event{Item: Item{Format: Protobuf, Index: w.index}}
	have := int(length)
	if tooLarge {
		have = int(min(length, partialBytes))
	}
	if !w.need(have) {
		w.err = w.cut(w.index)
		return Event{}, w.err
	}
	detail, reason := event.parse(w.buf[w.pos:w.pos+have], tooLarge)
	event.Offset += begin
	if tooLarge {
		reason, detail = api.ErrTooLarge, ""
	}
	var failed error
	if reason != nil {
		event.Offset = begin
		failed = protoItemError(&event.Item, reason, detail, length)
	}
	w.lend(w.pos, w.pos+have)
	if tooLarge {
		w.lend(0, 0)
		if !w.discard(length) {
			w.err = w.cut(w.index)
			return Event{}, w.err
		}
	} else {
		w.pos += have
	}
	w.index++
	if failed != nil {
		return Event{}, failed
	}
	w.begun()
	if event.Type == watch.Bookmark {
		w.rest()
	}
	return event, nil
}

// parse takes a frame apart. Offset counts from the frame's beginning. The returned reason is nil
// if the event may be handed over.
func (e *Event) parse(frame []byte, partial bool) (detail string, reason error) {
	typ, raw, at, err := frameFields(frame, partial)
	if err != nil {
		return err.Error(), api.ErrMalformed
	}
	e.Type = eventType(typ)
	if len(raw) < len(protoPrefix) || string(raw[:len(protoPrefix)]) != string(protoPrefix) {
		return "event without an object", api.ErrMalformed
	}
	if err := e.envelope(raw[len(protoPrefix):], partial); err != nil {
		return err.Error(), api.ErrMalformed
	}
	e.Offset += int64(at + len(protoPrefix))
	if e.Type != watch.Error { // a Status has the metadata of a list
		if err := protoIdentity(&e.Item, e.Bytes, partial); err != nil {
			return err.Error(), api.ErrMalformed
		}
	}
	switch e.Type {
	case watch.Added, watch.Modified, watch.Deleted:
		if len(e.Name) == 0 {
			return "", ErrNoName
		}
	case watch.Bookmark:
		if e.InitialEventsEnd, err = protoEndsInitialEvents(e.Bytes); err != nil {
			return err.Error(), api.ErrMalformed
		}
	case watch.Error:
	default:
		return "unknown type of event", api.ErrMalformed
	}
	return "", nil
}

// frameFields finds the type and the object's envelope, which begins at frame[at].
func frameFields(frame []byte, partial bool) (typ, raw []byte, at int, err error) {
	f := Message{b: frame, partial: partial}
	for f.Next() {
		switch f.num {
		case eventTypeField:
			typ = f.Data()
		case eventObjectField:
			extension := Message{b: f.Data(), partial: partial}
			for extension.Next() {
				if extension.num == extensionRaw {
					raw = extension.Data()
					at = f.dataAt() + extension.dataAt()
				}
			}
			if extension.err != nil {
				return nil, nil, 0, extension.err
			}
		}
	}
	return typ, raw, at, f.err
}

// envelope finds the type and the message in a runtime.Unknown, and where in it the message begins.
func (e *Event) envelope(message []byte, partial bool) error {
	f := Message{b: message, partial: partial}
	for f.Next() {
		switch f.num {
		case unknownTypeMeta:
			if err := protoTypeMeta(f.Data(), &e.APIVersion, &e.Kind); err != nil {
				return err
			}
		case unknownRaw:
			e.Bytes = f.Data()
			e.Offset = int64(f.dataAt())
		case unknownContentEncoding, unknownContentType:
			f.Data()
		}
	}
	return f.err
}
