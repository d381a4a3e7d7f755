package wire

import (
	"bytes"
	"unsafe"
)

// LabelsIn finds the labels of an item, and reads no more than it has to. It returns their encoding,
// a part of the item that is empty if there are none, and whether the item could be read so far.
// Labels of JSON are the text of an object, those of protobuf the fields of its metadata. Last are
// labels as it has returned them for an item of the same format, which are found faster.
func (m *Metadata) LabelsIn(item *Item, last []byte) (encoded []byte, ok bool) {
	if item.Format == Protobuf {
		return protoLabels(item.Bytes, last)
	}
	object, t := item.Bytes, &m.text
	t.Reset(object)
	at := m.behindVersion(item)
	if at == 0 {
		if at = m.member(t.Space(0), "metadata"); at > 0 {
			at = m.member(at, "labels")
		}
	}
	switch {
	case at == 0 || t.At(at) != '{':
		return nil, t.OK()
	case len(last) > 0 && bytes.HasPrefix(object[at:], last):
		return object[at : at+len(last) : at+len(last)], true
	}
	end := t.Skip(at)
	if !t.OK() {
		return nil, false
	}
	return object[at:end:end], true
}

// behindVersion returns where labels begin that stand behind the resource version, as they do where
// the server has a Go type for its objects; 0 if there are none there. The version is in the metadata.
func (m *Metadata) behindVersion(item *Item) (value int) {
	object, version := item.Bytes, item.ResourceVersion
	from := uintptr(unsafe.Pointer(unsafe.SliceData(version))) - uintptr(unsafe.Pointer(unsafe.SliceData(object)))
	if len(version) == 0 || from >= uintptr(len(object)) { // it was unescaped, or cloned
		return 0
	}
	end := int(from) + len(version)
	if end >= len(object) || object[end] != '"' {
		return 0
	}
	at, more := m.text.Next(end+1, '}')
	return m.memberFrom(at, more, "labels")
}

// member returns where the value of the first member of a name begins, in the object at an offset; 0
// if there is none.
func (m *Metadata) member(at int, name string) (value int) {
	at, more := m.text.object(at)
	return m.memberFrom(at, more, name)
}

// memberFrom is member for what is left of an object, if there is more.
func (m *Metadata) memberFrom(at int, more bool, name string) (value int) {
	t := &m.text
	for more {
		var key []byte
		if key, at = t.Key(at); string(key) == name {
			return at
		}
		at, more = t.Next(t.Skip(at), '}')
	}
	return 0
}

func protoLabels(object, last []byte) (encoded []byte, ok bool) {
	f := Message{b: object}
	for f.Next() {
		if f.num != objectMetadata {
			continue
		}
		meta := Message{b: f.Data()}
		from, to := 0, 0
		for meta.Next() {
			if meta.num == metaLabels {
				if to == 0 {
					from = meta.from
					if bytes.HasPrefix(meta.b[from:], last) {
						meta.i = max(meta.i, from+len(last))
					}
				}
				to = meta.i
			} else if to > 0 {
				break
			}
		}
		return meta.b[from:to:to], meta.err == nil
	}
	return nil, f.err == nil
}

// ReadLabels reads labels as LabelsIn returns them. As in ReadJSON, none count if one is no string.
func (m *Metadata) ReadLabels(encoded []byte, format Format) {
	m.Labels = m.Labels[:0]
	if len(encoded) == 0 {
		return
	}
	if format == Protobuf {
		f := Message{b: encoded}
		for f.Next() {
			if f.num == metaLabels {
				m.readLabel(f.Data(), &f.err)
			}
		}
		return
	}
	m.text.Reset(encoded)
	m.readLabels(0)
}
