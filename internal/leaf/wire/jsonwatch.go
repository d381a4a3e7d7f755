package wire

import (
	"encoding/json"
	"io"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/rvinformer/informer/api"
)

// jsonWatch reads {"type":…,"object":{…}} one after another. Its unit is the frame.
type jsonWatch struct {
	jsonScan

	err   error // ended the body
	index int   // of the next event
}

func newJSONWatch(body io.Reader, o Options) *jsonWatch {
	w := &jsonWatch{}
	w.watch = true
	w.restart(body, o)
	return w
}

func (w *jsonWatch) Wait() {
	w.forget()
	if w.err == nil && w.blank() {
		w.fill()
	}
}

func (w *jsonWatch) Next() (Event, error) {
	w.forget()
	if w.err != nil {
		return Event{}, w.err
	}
	c, ok := w.peek()
	switch {
	case !ok && w.stop == io.EOF:
		w.err = io.EOF
		return Event{}, w.err
	case !ok:
		w.err = w.ended(w.index)
		return Event{}, w.err
	case c != '{' && w.index == 0:
		w.err = w.bodyError(api.ErrNotWatch, "'{' expected", 0)
		return Event{}, w.err
	case c != '{':
		w.err = w.bodyError(api.ErrMalformed, "'{' of an event expected", w.index)
		return Event{}, w.err
	}
	return w.event()
}

func (w *jsonWatch) Unread() int {
	for at := w.pos; at < w.end; at++ {
		switch w.buf[at] {
		case ' ', '\t', '\r', '\n':
		default:
			return w.end - at
		}
	}
	return 0
}

// frame is what an event's members say, as offsets from keep.
type frame struct{ typ, kind span }

func (w *jsonWatch) event() (Event, error) {
	w.begin(true)
	var f frame
	if !w.frame(&f) && !(w.wrecked && w.resync(0)) {
		w.err = w.ended(w.index)
		return Event{}, w.err
	}
	event := Event{Type: eventType(w.textOf(f.typ)), Item: Item{Format: JSON, Index: w.index, Offset: w.unit}}
	w.identify(&event.Item)
	if !w.dropped && w.fault == nil {
		if f.typ.to == 0 && string(w.textOf(f.kind)) == "Status" {
			w.err = w.bodyError(ErrStatus, "", w.index)
			return Event{}, w.err
		}
		w.check(&event)
	}
	w.index++
	err := w.itemError(&event.Item, event.Type == watch.Error || event.Type == watch.Bookmark)
	if err == nil {
		w.begun()
		text := w.obj.text
		event.Offset = w.unit + int64(text.from)
		event.Bytes = w.lend(w.keep+text.from, w.keep+text.to)
		if event.Type == watch.Bookmark {
			w.rest()
			w.letPatternGo()
		}
	} else {
		event = Event{}
	}
	w.begin(false)
	return event, err
}

// frame reads one frame. Of repeated members the last one counts.
func (w *jsonWatch) frame(fr *frame) bool {
	return w.members(func(f field) bool {
		switch c := w.buf[w.pos]; {
		case f == fieldType:
			return w.text(&fr.typ)
		case f == fieldKind:
			if fr.kind = (span{}); c == '"' {
				return w.text(&fr.kind)
			}
		case f == fieldObject && c != 'n':
			return w.object()
		}
		return w.skip()
	})
}

func (w *jsonWatch) textOf(v span) []byte {
	b, ok := w.unescaped(v)
	if !ok {
		w.note("invalid string")
	}
	return b
}

func (w *jsonWatch) check(event *Event) {
	switch {
	case event.Type == "":
		w.note("unknown type of event")
	case !w.obj.isThere:
		w.note("event without an object")
	case event.Type == watch.Bookmark:
		event.InitialEventsEnd = w.endsInitialEvents()
	}
}

// endsInitialEvents decodes in the ordinary way: a bookmark is small, and comes once a minute.
func (w *jsonWatch) endsInitialEvents() bool {
	var object struct {
		Metadata struct {
			Annotations map[string]string `json:"annotations"`
		} `json:"metadata"`
	}
	if err := json.Unmarshal(w.raw(w.obj.text), &object); err != nil {
		w.note("bookmark: " + err.Error())
	}
	return object.Metadata.Annotations[metav1.InitialEventsAnnotationKey] == "true"
}
