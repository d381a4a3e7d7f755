package jsonmap

import (
	"maps"

	"github.com/rvinformer/informer/internal/leaf/intern"
)

// value reads the value that begins at i, which is no white space. It returns the offset behind it.
func (d *Decoder) value(i, depth int, at *place) (interface{}, int) {
	if i >= len(d.text) {
		return nil, d.broken(i, "a value expected")
	}
	switch c := d.text[i]; c {
	case '"':
		if end, yes := at.expects(d.text, i); yes {
			return at.value, end
		}
		return d.str(i, at)
	case '{':
		object, end := d.object(i, depth+1, at)
		return object, end
	case '[':
		array, end := d.array(i, depth+1, at)
		return array, end
	case 't':
		return d.literal(i, "true", true)
	case 'f':
		return d.literal(i, "false", false)
	case 'n':
		return d.literal(i, "null", nil)
	default:
		return d.number(i)
	}
}

func (d *Decoder) literal(i int, word string, value interface{}) (interface{}, int) {
	if len(d.text)-i >= len(word) && string(d.text[i:i+len(word)]) == word {
		return value, i + len(word)
	}
	for k := 0; ; k++ {
		if i+k >= len(d.text) || d.text[i+k] != word[k] {
			return nil, d.broken(i+k, "'"+word+"' expected")
		}
	}
}

// object reads the object that begins at i.
func (d *Decoder) object(i, depth int, at *place) (map[string]interface{}, int) {
	if depth > maxDepth {
		return nil, d.broken(i, "nested too deep")
	}
	if i = d.space(i + 1); i < len(d.text) && d.text[i] == '}' {
		return map[string]interface{}{}, i + 1
	}
	var before, expected *place // members
	members := 0
	if at != nil {
		expected, members = at.first, at.members
	}
	// Values go into the map as they come. To keep them until their number is known costs more than
	// a guess that is wrong at times.
	object := make(map[string]interface{}, members)
	for {
		var name string
		here := expected
		if here != nil && len(d.text)-i > len(here.key) && string(d.text[i:i+len(here.key)]) == here.key {
			name, i = here.name, i+len(here.key)
		} else {
			name, here, i = d.key(i, at, before)
		}
		if i = d.space(i); here != nil {
			before, expected = here, here.next
		}
		var value interface{}
		value, i = d.value(i, depth, here)
		object[name] = value
		if i = d.space(i); i >= len(d.text) {
			return nil, d.broken(i, "',' or '}' expected")
		}
		switch d.text[i] {
		case ',':
			i = d.space(i + 1)
		case '}':
			if at != nil {
				at.members = len(object)
			}
			return fitted(object, members), i + 1
		default:
			return nil, d.broken(i, "',' or '}' expected")
		}
	}
}

// smallMap is how many members a map has room for that is made for fewer.
const smallMap = 8

// fitted returns a map that was made for so many members, or a copy of it if that is less than half
// of them: users keep it.
func fitted(object map[string]interface{}, members int) map[string]interface{} {
	if members <= smallMap || len(object) > members/2 {
		return object
	}
	smaller := make(map[string]interface{}, len(object))
	maps.Copy(smaller, object)
	return smaller
}

// key reads the key that begins at i, and its colon, of a member of the object at a place, and
// returns the place of the member. Before is that of the member before it.
func (d *Decoder) key(i int, at, before *place) (name string, here *place, end int) {
	if i >= len(d.text) || d.text[i] != '"' {
		return "", nil, d.broken(i, "a key expected")
	}
	end, hash := d.plain(i + 1)
	content, special := []byte(nil), end < 0
	if special {
		content, end = d.special(i)
	} else {
		content, end = d.text[i+1:end], end+1
	}
	if end >= len(d.text) || d.text[end] != ':' {
		if end = d.space(end); end >= len(d.text) || d.text[end] != ':' {
			return "", nil, d.broken(end, "':' expected")
		}
		at = nil // a place has no white space in its key
	}
	if end++; end-i > maxKey {
		at = nil
	}
	if at != nil {
		here = at.find(d.text[i:end])
	}
	if here == nil {
		if special {
			hash = intern.HashOf(content)
		}
		name = d.words.Hashed(content, hash)
		if at == nil {
			return name, nil, end
		}
		if here = d.places.member(at, name, d.text[i:end]); here == nil {
			return name, nil, end
		}
	}
	at.expect(before, here)
	return here.name, here, end
}

// array reads the array that begins at i.
func (d *Decoder) array(i, depth int, at *place) ([]interface{}, int) {
	if depth > maxDepth {
		return nil, d.broken(i, "nested too deep")
	}
	if i = d.space(i + 1); i < len(d.text) && d.text[i] == ']' {
		return []interface{}{}, i + 1
	}
	var here *place
	for first := len(d.elements); ; {
		if at != nil {
			here = d.places.element(at, here)
		}
		var element interface{}
		element, i = d.value(i, depth, here)
		d.elements = append(d.elements, element)
		if i = d.space(i); i >= len(d.text) {
			return nil, d.broken(i, "',' or ']' expected")
		}
		switch d.text[i] {
		case ',':
			i = d.space(i + 1)
		case ']':
			array := make([]interface{}, len(d.elements)-first)
			copy(array, d.elements[first:])
			d.elements = d.elements[:first]
			return array, i + 1
		default:
			return nil, d.broken(i, "',' or ']' expected")
		}
	}
}
