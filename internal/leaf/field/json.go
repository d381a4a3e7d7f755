package field

import (
	"github.com/rvinformer/informer/internal/leaf/fieldpath"
	"github.com/rvinformer/informer/internal/leaf/wire"
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
	var r jsonReader
	r.Reset(text)
	end := r.Space(r.value(r.Space(0), path))
	switch {
	case !r.OK() || end < len(text):
		return nil, Malformed
	case r.to == 0:
		return nil, Missing
	default:
		return text[r.from:r.to:r.to], Found
	}
}

// jsonReader goes through a text once, and keeps where it found the field last.
type jsonReader struct {
	wire.JSONText
	from, to int
}

// value passes the value that begins at an offset, from which the path leads on.
func (r *jsonReader) value(at int, path string) (end int) {
	if path == "" {
		r.from, r.to = at, r.Skip(at)
		return r.to
	}
	if r.At(at) != '{' {
		return r.Skip(at)
	}
	name, rest, _ := fieldpath.Cut(path)
	at, more := r.Enter(at, '}')
	for more {
		var key []byte
		if key, at = r.Key(at); fieldpath.Matches(name, key) {
			r.to = 0 // of repeated members, the last one counts
			at = r.value(at, rest)
		} else {
			at = r.Skip(at)
		}
		at, more = r.Next(at, '}')
	}
	return at
}

// jsonValue returns the value of a text that has been passed.
func jsonValue(text []byte) (Value, Reason) {
	switch text[0] {
	case '"':
		content, ok := wire.Unescaped(text[1 : len(text)-1])
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
