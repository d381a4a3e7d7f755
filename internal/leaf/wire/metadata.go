package wire

import "fmt"

// Metadata is the part of an object's metadata that caches index. Its slices may be lent: they are
// parts of the object that was read, or of memory that the next Read overwrites.
type Metadata struct {
	Name, Namespace, UID, ResourceVersion []byte
	// Labels are in the order of the object. Of labels with the same key, the last one counts.
	Labels []Label
	// Controller is the UID of the owner that controls the object. It is empty if there is none.
	Controller []byte

	text JSONText
}

// Label is a label of an object.
type Label struct{ Key, Value []byte }

// ReadProtobuf reads the metadata of an object's message, without its envelope.
func (m *Metadata) ReadProtobuf(object []byte) error {
	*m = Metadata{Labels: m.Labels[:0], text: m.text}

	f := Message{b: object}
	for f.Next() {
		if f.num == objectMetadata {
			m.readObjectMeta(f.Data(), &f.err)
		}
	}
	if f.err != nil {
		return fmt.Errorf("wire: read the metadata of an object: %w", f.err)
	}
	return nil
}

// Field numbers of ObjectMeta.
const (
	metaLabels = 11
	metaOwners = 13
)

func (m *Metadata) readObjectMeta(message []byte, err *error) {
	f := Message{b: message, err: *err}
	for f.Next() {
		switch f.num {
		case metaName:
			m.Name = f.Data()
		case metaNamespace:
			m.Namespace = f.Data()
		case metaUID:
			m.UID = f.Data()
		case metaResourceVersion:
			m.ResourceVersion = f.Data()
		case metaLabels:
			m.readLabel(f.Data(), &f.err)
		case metaOwners:
			m.readOwner(f.Data(), &f.err)
		}
	}
	*err = f.err
}

func (m *Metadata) readLabel(entry []byte, err *error) {

	var l Label
	f := Message{b: entry, err: *err}
	for f.Next() {
		switch f.num {
		case mapKey:
			l.Key = f.Data()
		case mapValue:
			l.Value = f.Data()
		}
	}
	m.Labels = append(m.Labels, l)
	*err = f.err
}

func (m *Metadata) readOwner(owner []byte, err *error) {
	const uidField, controllerField = 4, 6
	var uid []byte
	controls := false
	f := Message{b: owner, err: *err}
	for f.Next() {
		switch f.num {
		case uidField:
			uid = f.Data()
		case controllerField:
			controls = f.typ == varint && f.n != 0
		}
	}
	if controls {
		m.Controller = uid
	}
	*err = f.err
}
