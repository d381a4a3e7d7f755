package prune

import (
	"encoding/json"
	"slices"
	"unsafe"
)

// AppendJSON appends the JSON text of one object to dst, without the members
// that do not stay. What is left is as it was, byte for byte; the white
// space around a member goes with it. dst must not overlap object. It allocates
// only to grow dst, to where all of object has room (clone what is kept for
// long), and to compare keys that are escaped or no ASCII.
//
// The whole grammar is checked, as package wire checks what it reads: inside strings,
// only their end is looked for. On an error, a *MalformedError, dst is returned as it
// was. Where all fields stay the text is not looked at.
func (f *Fields) AppendJSON(dst, object []byte) ([]byte, error) {
	if f.All() {
		return append(dst, object...), nil
	}
	o := jsonObject{jsonScan: jsonScan{text: object}, dst: slices.Grow(dst, len(object))}
	o.values.Reset(object)
	if o.peek() != '{' {
		o.broken("an object expected")
		return dst, o.err
	}
	if !o.whole(f.selection) {
		return dst, o.err
	}
	return append(o.dst, object[o.done:]...), nil
}

// jsonObject copies a text to dst and leaves out members.
//
// An object or array is cut into pieces: one for each member, from behind the '{', '[' or ','
// before it to the ',', '}' or ']' behind it. With a piece goes one of the two
// commas: the one before it if a member stays before it, else the one behind.
type jsonObject struct {
	jsonScan
	dst  []byte
	done int // text[:done] has been copied, or dropped
}

// whole passes the text, which must be one object or array.
func (o *jsonObject) whole(s selection) bool {
	if _, ok := o.value(s, false); !ok {
		return false
	}
	if o.peek(); o.pos < len(o.text) {
		return o.broken("more behind the object")
	}
	return true
}

// pieces passes the object or array that begins at pos and ends with closing.
func (o *jsonObject) pieces(s selection, closing byte) bool {
	o.pos++
	from := o.pos
	if o.peek() == closing {
		o.pos++
		return true
	}
	for before := false; ; from = o.pos {
		stays, ok := o.piece(s, closing == ']')
		if !ok {
			return false
		}
		delimiter := o.peek()
		if delimiter != ',' && delimiter != closing {
			return o.broken("',' or '" + string(closing) + "' expected")
		}
		if !stays {
			o.drop(from, before)
		}
		before = before || stays
		if o.pos++; delimiter == closing {
			return true
		}
	}
}

// piece passes an element of an array, or a member of an object with its key, and reports
// whether it stays.
func (o *jsonObject) piece(s selection, inArray bool) (stays, ok bool) {
	if inArray {
		return o.value(s, true)
	}
	within, stays, ok := o.key(s)
	switch {
	case !ok:
		return false, false
	case stays:
		return o.value(within, false)
	default:
		o.peek()
		return false, o.skip()
	}
}

// drop leaves out the piece from there to pos. Before tells that one before it stays.
func (o *jsonObject) drop(from int, before bool) {
	to := o.pos
	if before {
		from--
	} else if o.text[to] == ',' {
		to++
	}
	o.dst = append(o.dst, o.text[o.done:from]...)
	o.done = to
}

// key passes a key and its colon, and returns what is selected of the member, and whether it stays.
func (o *jsonObject) key(s selection) (within selection, stays, ok bool) {
	if o.peek() != '"' {
		return selection{}, false, o.broken("a key expected")
	}
	from := o.pos
	if !o.skip() {
		return selection{}, false, false
	}
	key := unsafe.String(unsafe.SliceData(o.text[from+1:]), o.pos-from-2) // not kept
	if !isPlain(key) {
		var unescaped string
		if json.Unmarshal(o.text[from:o.pos], &unescaped) != nil {
			o.pos = from
			return selection{}, false, o.broken("an invalid key")
		}
		key = unescaped
	}
	if o.peek() != ':' {
		return selection{}, false, o.broken("':' expected")
	}
	o.pos++
	within, stays = s.member(key)
	return within, stays, true
}

// value passes a value, goes into it where paths lead on, and reports whether it stays.
func (o *jsonObject) value(s selection, inArray bool) (stays, ok bool) {
	begins := o.peek()
	switch {
	case s.all():
		return true, o.skip()
	case begins == '{':
		return true, o.pieces(s, '}')
	case begins == '[' && s.keep != nil && !inArray:
		return true, o.pieces(s.element(), ']')
	default:
		return s.keep == nil || begins == 'n', o.skip()
	}
}

// isPlain says that the content of a string means itself.
func isPlain(s string) bool {
	for i := range len(s) {
		if s[i] >= 0x80 || s[i] == '\\' {
			return false
		}
	}
	return true
}
