package field

import (
	"unicode/utf8"

	"github.com/rvinformer/informer/internal/fieldpath"
	"github.com/rvinformer/informer/internal/wire"
)

// InJSON finds a field of an object's text.
func InJSON(text []byte, path string) (Value, Reason) {
	if !fieldpath.Valid(path) {
		return Value{}, BadPath
	}
	raw, why := spanInJSON(text, path)
	if why != Found {
		return Value{}, why
	}
	return jsonValue(raw)
}

// spanInJSON returns the text of a field. An empty path is the whole text.
func spanInJSON(text []byte, path string) ([]byte, Reason) {
	r := jsonReader{b: text}
	r.text.Reset(text)
	end := r.space(r.value(r.space(0), path))
	switch {
	case r.broken || end < len(text):
		return nil, Malformed
	case r.to == 0:
		return nil, Missing
	default:
		return text[r.from:r.to:r.to], Found
	}
}

// jsonReader goes through a text once, and keeps where it found the field last. Its methods return
// the offset behind what they pass; if they cannot, that is the end of the text, and broken is set.
type jsonReader struct {
	text     wire.JSONText
	b        []byte
	from, to int
	// behind is the end of the object that was passed last.
	behind int
	broken bool
}

func (r *jsonReader) fail() (end int) {
	r.broken = true
	return len(r.b)
}

// space passes white space.
func (r *jsonReader) space(at int) int {
	for at < len(r.b) {
		switch r.b[at] {
		case ' ', '\n', '\r', '\t':
			at++
		default:
			return at
		}
	}
	return at
}

// at is the byte at an offset, 0 at the end.
func (r *jsonReader) at(at int) byte {
	if at < len(r.b) {
		return r.b[at]
	}
	return 0
}

// skip passes any value.
func (r *jsonReader) skip(at int) (end int) {
	end, fault := r.text.Skip(at)
	if fault != "" {
		return r.fail()
	}
	return end
}

// value passes the value that begins at an offset, from which the path leads on.
func (r *jsonReader) value(at int, path string) (end int) {
	if path == "" {
		r.from, r.to = at, r.skip(at)
		return r.to
	}
	if r.at(at) != '{' {
		return r.skip(at)
	}
	return r.object(at, path)
}

// object passes an object, in which the path leads on.
func (r *jsonReader) object(at int, path string) (end int) {
	name, rest, _ := fieldpath.Cut(path)
	for at, more := r.first(at); more; at, more = r.next(end) {
		var key []byte
		if key, at = r.key(at); matchesKey(name, key) && !r.broken {
			r.to = 0 // of repeated members, the last one counts
			end = r.value(at, rest)
		} else {
			end = r.skip(at)
		}
	}
	return r.behind
}

// first goes into the object at an offset, and returns where its first member is. If there is none,
// the object ends at behind.
func (r *jsonReader) first(at int) (member int, more bool) {
	if at = r.space(at + 1); r.at(at) == '}' {
		r.behind = at + 1
		return 0, false
	}
	return at, true
}

// next passes the comma behind a member, and returns where the next one is. If there is none, the
// object ends at behind.
func (r *jsonReader) next(at int) (member int, more bool) {
	switch at = r.space(at); {
	case r.broken:
	case r.at(at) == ',':
		return r.space(at + 1), true
	case r.at(at) == '}':
		r.behind = at + 1
		return 0, false
	}
	r.behind = r.fail()
	return 0, false
}

// key passes the key of a member and its colon, and returns the key's content, and where the value
// is.
func (r *jsonReader) key(at int) (content []byte, value int) {
	if r.at(at) != '"' {
		return nil, r.fail()
	}
	end := r.skip(at)
	if r.broken {
		return nil, end
	}
	content = r.b[at+1 : end-1]
	if at = r.space(end); r.at(at) != ':' {
		return nil, r.fail()
	}
	return content, r.space(at + 1)
}

// matchesKey reports whether the name of a path means the content of a key.
func matchesKey(name string, key []byte) bool {
	if asIs(key) {
		return fieldpath.Matches(name, key)
	}
	var buffer [64]byte
	unescaped, ok := wire.AppendUnescaped(buffer[:0], key)
	return ok && fieldpath.Matches(name, unescaped)
}

// asIs reports whether the content of a string means itself.
func asIs(content []byte) bool {
	ascii := true
	for _, c := range content {
		if c < 0x20 || c == '\\' {
			return false
		}
		ascii = ascii && c < utf8.RuneSelf
	}
	return ascii || utf8.Valid(content)
}

// unescaped returns what the content of a string means, lent by it where it means itself.
func unescaped(content []byte) (meaning []byte, ok bool) {
	if asIs(content) {
		return content, true
	}
	return wire.AppendUnescaped(nil, content)
}

// jsonValue returns the value of a text that has been passed.
func jsonValue(text []byte) (Value, Reason) {
	switch text[0] {
	case '"':
		content, ok := unescaped(text[1 : len(text)-1])
		if !ok {
			return Value{}, Malformed
		}
		return stringValue(content)
	case '{':
		return Value{kind: Object, bytes: text}, Found
	case '[':
		return Value{kind: Array, bytes: text}, Found
	case 't', 'f':
		return boolValue(text[0] == 't')
	case 'n':
		return Value{}, Missing
	default:
		return numberValue(text)
	}
}
