package prune

import (
	"encoding/json"
	"slices"
)

// AppendJSON appends the JSON text of one object to dst, without the members
// that the paths name. What is left is as it was, byte for byte; the white
// space around a member goes with it. dst must not overlap object. It allocates
// only to grow dst, to where all of object has room (clone what is kept for
// long), and to compare keys that are escaped or no ASCII.
//
// The whole grammar is checked, as package wire checks what it reads: inside strings,
// only their end is looked for. On an error, a *MalformedError, dst is returned as it
// was. Without paths the text is not looked at.
func (p Paths) AppendJSON(dst, object []byte) ([]byte, error) {
	if len(p) == 0 {
		return append(dst, object...), nil
	}
	o := jsonObject{jsonScan: jsonScan{text: object}, dst: slices.Grow(dst, len(object))}
	o.values.Reset(object)
	if !o.whole(p) {
		return dst, o.err
	}
	return append(o.dst, object[o.done:]...), nil
}

// jsonObject copies a text to dst and leaves out members.
//
// An object is cut into pieces: one for each member, from behind the '{' or ','
// before it to the ',' or '}' behind it. With a piece goes one of the two
// commas: the one before it if a member stays before it, else the one behind.
type jsonObject struct {
	jsonScan
	dst  []byte
	done int // text[:done] has been copied, or dropped
}

// whole passes the text, which must be one object.
func (o *jsonObject) whole(paths Paths) bool {
	if o.peek() != '{' {
		return o.broken("an object expected")
	}
	if !o.object(paths, 0) {
		return false
	}
	if o.peek(); o.pos < len(o.text) {
		return o.broken("more behind the object")
	}
	return true
}

// object passes the object that begins at pos. The first depth fields of the
// paths lead to it.
func (o *jsonObject) object(paths Paths, depth int) bool {
	o.pos++
	from := o.pos
	if o.peek() == '}' {
		o.pos++
		return true
	}
	for stays := false; ; from = o.pos {
		within, ok := o.key(paths, depth)
		dropped := within.end(depth + 1)
		if !ok || !o.value(within, depth+1, dropped) {
			return false
		}
		delimiter := o.peek()
		if delimiter != ',' && delimiter != '}' {
			return o.broken("',' or '}' expected")
		}
		if dropped {
			o.drop(from, stays)
		}
		stays = stays || !dropped
		if o.pos++; delimiter == '}' {
			return true
		}
	}
}

// drop leaves out the piece from there to pos.
func (o *jsonObject) drop(from int, stays bool) {
	to := o.pos
	if stays {
		from--
	} else if o.text[to] == ',' {
		to++
	}
	o.dst = append(o.dst, o.text[o.done:from]...)
	o.done = to
}

// key passes a key and its colon, and gives the paths that go on with it.
func (o *jsonObject) key(paths Paths, depth int) (Paths, bool) {
	if o.peek() != '"' {
		return nil, o.broken("a key expected")
	}
	from := o.pos
	if !o.skip() {
		return nil, false
	}
	key := o.text[from+1 : o.pos-1]
	if !isPlain(key) {
		var unescaped string
		if json.Unmarshal(o.text[from:o.pos], &unescaped) != nil {
			o.pos = from
			return nil, o.broken("an invalid key")
		}
		key = []byte(unescaped)
	}
	if o.peek() != ':' {
		return nil, o.broken("':' expected")
	}
	o.pos++
	return paths.under(depth, key), true
}

// value passes a value, and goes into it where paths lead on.
func (o *jsonObject) value(paths Paths, depth int, dropped bool) bool {
	if o.peek() == '{' && len(paths) > 0 && !dropped {
		return o.object(paths, depth)
	}
	return o.skip()
}

// isPlain says that the content of a string means itself.
func isPlain(b []byte) bool {
	for _, c := range b {
		if c >= 0x80 || c == '\\' {
			return false
		}
	}
	return true
}
