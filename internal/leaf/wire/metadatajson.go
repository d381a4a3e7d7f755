package wire

import "fmt"

// ReadJSON reads the metadata of an object's text. What is not of its type counts as absent, as the
// getters of unstructured objects have it: the labels are, if one of them is no string. Letters of
// names have to have their case.
func (m *Metadata) ReadJSON(object []byte) error {
	*m = Metadata{Labels: m.Labels[:0], text: m.text}
	t := &m.text
	t.Reset(object)
	defer t.Reset(nil)
	at, more := t.object(t.Space(0))
	for more {
		var key []byte
		if key, at = t.Key(at); string(key) == "metadata" {
			m.Labels, m.Controller = m.Labels[:0], nil
			at = m.readMembers(at)
		} else {
			at = t.Skip(at)
		}
		at, more = t.Next(at, '}')
	}
	if err := t.Err(); err != nil {
		return fmt.Errorf("wire: read the metadata of an object: %w", err)
	}
	return nil
}

// object is Enter for an object. It passes any other value.
func (t *JSONText) object(at int) (end int, more bool) {
	if t.At(at) != '{' {
		return t.Skip(at), false
	}
	return t.Enter(at, '}')
}

func (m *Metadata) readMembers(at int) (end int) {
	t := &m.text
	at, more := t.object(at)
	for more {
		var key []byte
		switch key, at = t.Key(at); string(key) {
		case "name":
			m.Name, at = t.String(at)
		case "namespace":
			m.Namespace, at = t.String(at)
		case "uid":
			m.UID, at = t.String(at)
		case "resourceVersion":
			m.ResourceVersion, at = t.String(at)
		case "labels":
			at = m.readLabels(at)
		case "ownerReferences":
			at = m.readReferences(at)
		default:
			at = t.Skip(at)
		}
		at, more = t.Next(at, '}')
	}
	return at
}

func (m *Metadata) readLabels(at int) (end int) {
	m.Labels = m.Labels[:0]
	t := &m.text
	valid := true
	at, more := t.object(at)
	for more {
		var l Label
		l.Key, at = t.Key(at)
		valid = valid && t.At(at) == '"'
		l.Value, at = t.String(at)
		m.Labels = append(m.Labels, l)
		at, more = t.Next(at, '}')
	}
	if !valid {
		m.Labels = m.Labels[:0]
	}
	return at
}

func (m *Metadata) readReferences(at int) (end int) {
	m.Controller = nil
	t := &m.text
	if t.At(at) != '[' {
		return t.Skip(at)
	}
	at, more := t.Enter(at, ']')
	for more {
		at, more = t.Next(m.readReference(t.Space(at)), ']')
	}
	return at
}

func (m *Metadata) readReference(at int) (end int) {
	var uid []byte
	controls := false
	t := &m.text
	at, more := t.object(at)
	for more {
		var key []byte
		switch key, at = t.Key(at); string(key) {
		case "uid":
			uid, at = t.String(at)
		case "controller":
			controls = t.At(at) == 't'
			at = t.Skip(at)
		default:
			at = t.Skip(at)
		}
		at, more = t.Next(at, '}')
	}
	if controls {
		m.Controller = uid
	}
	return at
}
