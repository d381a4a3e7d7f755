package prune

import (
	"fmt"
	"slices"
	"unsafe"

	"github.com/rvinformer/informer/internal/leaf/wire"
)

// AppendJSON appends the JSON text of one object to dst, without the members
// that do not stay. What is left is as it was, byte for byte; the white
// space around a member goes with it. dst must not overlap object. It allocates
// only to grow dst, to where all of object has room (clone what is kept for
// long), and to compare keys that are escaped or no UTF-8.
//
// The whole grammar is checked, as package wire checks what it reads: inside strings,
// only their end is looked for. On an error, a *wire.MalformedError, dst is returned as it
// was. Where all fields stay the text is not looked at.
func (f *Fields) AppendJSON(dst, object []byte) ([]byte, error) {
	if f.All() {
		return append(dst, object...), nil
	}
	o := jsonObject{text: object, dst: slices.Grow(dst, len(object))}
	o.Reset(object)
	if at := o.Space(0); o.At(at) != '{' {
		o.Fail(at, "an object expected")
	} else {
		o.whole(at, f.selection)
	}
	if err := o.Err(); err != nil {
		return dst, fmt.Errorf("prune: %w", err)
	}
	return append(o.dst, object[o.done:]...), nil
}

// jsonObject copies a text to dst and leaves out members.
//
// An object or array is cut into pieces: one for each member, from behind the '{', '[' or ','
// before it to the ',', '}' or ']' behind it. With a piece goes one of the two
// commas: the one before it if a member stays before it, else the one behind.
type jsonObject struct {
	wire.JSONText
	text []byte
	dst  []byte
	done int // text[:done] has been copied, or dropped
}

// whole passes the text, which must be one object or array, and begins at an offset.
func (o *jsonObject) whole(at int, s selection) {
	_, end := o.value(at, s, false)
	if end = o.Space(end); end < len(o.text) {
		o.Fail(end, "more behind the object")
	}
}

// pieces passes the object or array that begins at an offset and ends with closing.
func (o *jsonObject) pieces(at int, s selection, closing byte) (end int) {
	before := false
	at, more := o.Enter(at, closing)
	for more {
		from := at
		var stays bool
		stays, at = o.piece(at, s, closing)
		if at, more = o.Next(at, closing); !stays && o.OK() {
			o.drop(from, at-1, before)
		}
		before = before || stays
	}
	return at
}

// piece passes an element of an array, or a member of an object with its key, and reports
// whether it stays.
func (o *jsonObject) piece(at int, s selection, closing byte) (stays bool, end int) {
	if closing == ']' {
		return o.value(o.Space(at), s, true)
	}
	key, value := o.Key(at)
	within, stays := s.member(unsafe.String(unsafe.SliceData(key), len(key))) // not kept
	if !stays {
		return false, o.Skip(value)
	}
	return o.value(value, within, false)
}

// drop leaves out the piece between two offsets. Before tells that one before it stays.
func (o *jsonObject) drop(from, to int, before bool) {
	if before {
		from--
	} else if o.text[to] == ',' {
		to++
	}
	o.dst = append(o.dst, o.text[o.done:from]...)
	o.done = to
}

// value passes a value, goes into it where paths lead on, and reports whether it stays.
func (o *jsonObject) value(at int, s selection, inArray bool) (stays bool, end int) {
	begins := o.At(at)
	switch {
	case s.all():
		return true, o.Skip(at)
	case begins == '{':
		return true, o.pieces(at, s, '}')
	case begins == '[' && s.keep != nil && !inArray:
		return true, o.pieces(at, s.element(), ']')
	default:
		return s.keep == nil || begins == 'n', o.Skip(at)
	}
}
