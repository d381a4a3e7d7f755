package jsonmap

import (
	"github.com/rvinformer/informer/internal/leaf/intern"
	"github.com/rvinformer/informer/internal/leaf/wire"
)

// maxDepth is encoding/json's: the outermost bracket is depth 1.
const maxDepth = 10000

// Decoder decodes one text after the other, and remembers strings that come again. The zero value
// is ready for use, by one goroutine at a time.
type Decoder struct {
	text []byte // lent
	// elements are those of the arrays that are open, the innermost last.
	elements []interface{}
	// unescaped is where strings with escapes are written to.
	unescaped []byte
	words     intern.Table
	numbers   numbers
	places    places
	// decoded is how many texts were.
	decoded int
	fault   *wire.MalformedError
}

// Decode returns the object that text is, with memory of its own; nil for null. The error is a
// *wire.MalformedError.
func (d *Decoder) Decode(text []byte) (map[string]interface{}, error) {
	d.text, d.fault = text, nil
	defer d.forget()
	i := d.space(0)
	var object map[string]interface{}
	switch {
	case i < len(text) && text[i] == '{':
		object, i = d.object(i, 1, d.expected())
	case i < len(text) && text[i] == 'n':
		_, i = d.literal(i, "null", nil)
	default:
		d.broken(i, "an object expected")
	}
	if d.fault == nil {
		if i = d.space(i); i < len(text) {
			d.broken(i, "more behind the object")
		}
	}
	if d.fault != nil {
		return nil, d.fault
	}
	return object, nil
}

// expected returns the place of the object. A Decoder that has decoded one object only may never
// decode another, and then it is not worth its while to remember places.
func (d *Decoder) expected() *place {
	if d.decoded++; d.decoded == 2 || d.places.refused > maxRefused && d.decoded-d.places.since >= minObjects {
		d.places = places{root: &place{}, since: d.decoded}
	}
	return d.places.root
}

// Limits of the memory that a Decoder keeps for the next text.
const (
	maxElements  = 1 << 10
	maxUnescaped = 16 << 10
)

// forget drops all that refers to the text or the object.
func (d *Decoder) forget() {
	d.text = nil
	if cap(d.elements) > maxElements {
		d.elements = nil
	}
	// The stack may still have values that a fault has left there, and values beyond its end.
	clear(d.elements[:cap(d.elements)])
	d.elements = d.elements[:0]
	if cap(d.unescaped) > maxUnescaped {
		d.unescaped = nil
	}
}

// broken notes the first fault. It returns len(text), where all reading ends.
func (d *Decoder) broken(at int, detail string) int {
	if d.fault == nil {
		if at >= len(d.text) {
			at, detail = len(d.text), "cut: "+detail
		}
		d.fault = &wire.MalformedError{Offset: at, Detail: detail}
	}
	return len(d.text)
}

// space returns the offset of the first byte at or behind i that is no white space.
func (d *Decoder) space(i int) int {
	for i < len(d.text) && d.text[i] <= ' ' {
		switch d.text[i] {
		case ' ', '\n', '\r', '\t':
			i++
		default:
			return i
		}
	}
	return i
}
