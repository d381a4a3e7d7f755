package wire

import "fmt"

// ReadJSON reads the metadata of an object's text. What is not of its type counts as absent, as the
// getters of unstructured objects have it: the labels are, if one of them is no string. Letters of
// names have to have their case.
func (m *Metadata) ReadJSON(object []byte) error {
	*m = Metadata{Labels: m.Labels[:0], text: m.text}
	w := walk{JSONText: &m.text, b: object}
	w.Reset(object)
	defer w.Reset(nil)
	w.object(w.pass(0), func(key []byte, at int) int {
		if string(key) == "metadata" {
			m.Labels, m.Controller = m.Labels[:0], nil
			return w.object(at, func(key []byte, at int) int { return m.readMember(&w, key, at) })
		}
		return w.skip(at)
	})
	if w.fault != "" {
		return fmt.Errorf("wire: read the metadata of an object: %s at offset %d", w.fault, w.faultAt)
	}
	return nil
}

func (m *Metadata) readMember(w *walk, key []byte, at int) (end int) {
	switch string(key) {
	case "name":
		return w.string(at, &m.Name)
	case "namespace":
		return w.string(at, &m.Namespace)
	case "uid":
		return w.string(at, &m.UID)
	case "resourceVersion":
		return w.string(at, &m.ResourceVersion)
	case "labels":
		return m.readLabels(w, at)
	case "ownerReferences":
		m.Controller = nil
		return w.array(at, func(at int) int { return m.readReference(w, at) })
	}
	return w.skip(at)
}

func (m *Metadata) readLabels(w *walk, at int) (end int) {
	m.Labels = m.Labels[:0]
	valid := true
	end = w.object(at, func(key []byte, at int) int {
		l := Label{Key: key}
		valid = valid && w.b[at] == '"'
		end := w.string(at, &l.Value)
		m.Labels = append(m.Labels, l)
		return end
	})
	if !valid {
		m.Labels = m.Labels[:0]
	}
	return end
}

func (m *Metadata) readReference(w *walk, at int) (end int) {
	var uid []byte
	controls := false
	end = w.object(at, func(key []byte, at int) int {
		switch string(key) {
		case "uid":
			return w.string(at, &uid)
		case "controller":
			controls = w.b[at] == 't'
		}
		return w.skip(at)
	})
	if controls {
		m.Controller = uid
	}
	return end
}

// walk goes through a text. Its methods pass the value that begins at an offset, and return the
// offset behind it and white space. After a fault, that is the end of the text.
type walk struct {
	*JSONText
	b       []byte
	fault   string
	faultAt int
}

func (w *walk) fail(at int, fault string) (end int) {
	if w.fault == "" {
		w.fault, w.faultAt = fault, at
	}
	return len(w.b)
}

// pass passes white space.
func (w *walk) pass(at int) int {
	for at < len(w.b) && isSpace(w.b[at]) {
		at++
	}
	return at
}

// skip passes any value.
func (w *walk) skip(at int) int {
	end, fault := w.Skip(at)
	if fault != "" {
		return w.fail(end, fault)
	}
	return w.pass(end)
}

// string passes any value, and returns it if it is a string, which is lent by the text or has
// memory of its own.
func (w *walk) string(at int, value *[]byte) (end int) {
	end, fault := w.Skip(at)
	if fault != "" {
		return w.fail(end, fault)
	}
	*value = nil
	if w.b[at] == '"' {
		*value = w.b[at+1 : end-1]
		if !isPlain(*value) {
			unescaped, ok := AppendUnescaped(nil, *value)
			if !ok {
				return w.fail(at, "an invalid string")
			}
			*value = unescaped
		}
	}
	return w.pass(end)
}

// object passes any value. If it is an object, member passes the value of each member, and returns
// the offset behind it.
func (w *walk) object(at int, member func(key []byte, at int) (end int)) (end int) {
	if at >= len(w.b) || w.b[at] != '{' {
		return w.skip(at)
	}
	return w.list(at, '}', func(at int) int {
		if w.b[at] != '"' {
			return w.fail(at, "a key expected")
		}
		var key []byte
		at = w.string(at, &key)
		if at >= len(w.b) || w.b[at] != ':' {
			return w.fail(at, "':' expected")
		}
		if at = w.pass(at + 1); at >= len(w.b) {
			return w.fail(at, "a value expected")
		}
		return member(key, at)
	})
}

// array passes any value. If it is an array, element passes each element.
func (w *walk) array(at int, element func(at int) (end int)) (end int) {
	if at >= len(w.b) || w.b[at] != '[' {
		return w.skip(at)
	}
	return w.list(at, ']', element)
}

// list passes an opening bracket, what is separated by commas, and the closing bracket.
func (w *walk) list(at int, closing byte, each func(at int) (end int)) (end int) {
	at = w.pass(at + 1)
	if at < len(w.b) && w.b[at] == closing {
		return w.pass(at + 1)
	}
	for at < len(w.b) {
		if at = each(at); at >= len(w.b) {
			break
		}
		switch w.b[at] {
		case closing:
			return w.pass(at + 1)
		case ',':
			at = w.pass(at + 1)
		default:
			return w.fail(at, "',' expected, or the end")
		}
	}
	return w.fail(at, "the end of a value expected")
}
