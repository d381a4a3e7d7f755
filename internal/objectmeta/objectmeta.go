// Package objectmeta decodes the metadata of an object from protobuf, as the generated code does, with less allocated: strings that
// siblings share, and those that the caller has, are not allocated again.
package objectmeta

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/rvinformer/informer/internal/intern"
	"github.com/rvinformer/informer/internal/wire"
)

// Known has strings of the object that the caller keeps anyway. They are compared with what the message says.
type Known struct{ Name, UID, ResourceVersion string }

// Message is a generated API type.
type Message interface {
	Reset()
	Unmarshal([]byte) error
}

// Unmarshal decodes the message of an object into an object of its type. The result, and the error, are those of the generated
// code, which decodes all but the metadata, and the metadata too if there is something in it that this package does not
// know.
func Unmarshal(object []byte, known Known, words *intern.Table, into Message) error {
	into.Reset()
	if accessor, ok := into.(metav1.ObjectMetaAccessor); ok {
		metadata, rest, ok := split(object)
		into, isMeta := accessor.GetObjectMeta().(*metav1.ObjectMeta)
		if ok && isMeta && decode(metadata, known, words, into) {
			object = rest
		} else if isMeta {
			*into = metav1.ObjectMeta{}
		}
	}
	return into.Unmarshal(object)
}

// split returns the message of the metadata that an object's message begins with, and the fields that follow it.
func split(object []byte) (metadata, rest []byte, ok bool) {
	const number = 1
	m := wire.NewMessage(object)
	if !m.Next() || m.Number() != number {
		return nil, nil, false
	}
	metadata = m.Data()
	_, to := m.Span()
	return metadata, object[to:], m.Err() == nil
}

// decode decodes the message of the metadata. It is false if there is something that it does not know, or that is malformed.
func decode(message []byte, known Known, words *intern.Table, into *metav1.ObjectMeta) bool {
	d := decoder{words: words, ok: true}
	m := wire.NewMessage(message)
	for d.ok && m.Next() {
		d.field(&m, known, into)
	}
	return d.ok && m.Err() == nil
}

type decoder struct {
	words *intern.Table
	ok    bool
}

func (d *decoder) field(m *wire.Message, known Known, into *metav1.ObjectMeta) {
	switch m.Number() {
	case 1:
		into.Name = kept(m.Data(), known.Name)
	case 2:
		into.GenerateName = d.words.String(m.Data())
	case 3:
		into.Namespace = d.words.String(m.Data())
	case 4:
		into.SelfLink = string(m.Data())
	case 5:
		into.UID = types.UID(kept(m.Data(), known.UID))
	case 6:
		into.ResourceVersion = kept(m.Data(), known.ResourceVersion)
	case 7:
		into.Generation = int64(m.Varint())
	case 8:
		d.time(m.Data(), &into.CreationTimestamp)
	case 9:
		into.DeletionTimestamp = &metav1.Time{}
		d.time(m.Data(), into.DeletionTimestamp)
	case 10:
		seconds := int64(m.Varint())
		into.DeletionGracePeriodSeconds = &seconds
	case 11:
		d.entry(m.Data(), &into.Labels)
	case 12:
		d.entry(m.Data(), &into.Annotations)
	case 13:
		if into.OwnerReferences == nil {
			into.OwnerReferences = make([]metav1.OwnerReference, 0, count(m))
		}
		into.OwnerReferences = append(into.OwnerReferences, metav1.OwnerReference{})
		d.owner(m.Data(), &into.OwnerReferences[len(into.OwnerReferences)-1])
	case 14:
		if into.Finalizers == nil {
			into.Finalizers = make([]string, 0, count(m))
		}
		into.Finalizers = append(into.Finalizers, d.words.String(m.Data()))
	case 17:
		if into.ManagedFields == nil {
			into.ManagedFields = make([]metav1.ManagedFieldsEntry, 0, count(m))
		}
		into.ManagedFields = append(into.ManagedFields, metav1.ManagedFieldsEntry{})
		d.manager(m.Data(), &into.ManagedFields[len(into.ManagedFields)-1])
	default:
		d.ok = false
	}
}

// count returns how many fields with the number of that which m is at follow, itself included.
func count(m *wire.Message) (n int) {
	ahead := *m
	for n = 1; ahead.Next() && ahead.Number() == m.Number(); n++ {
	}
	return n
}

// kept returns a string that the caller has, if it is the one.
func kept(content []byte, known string) string {
	if string(content) == known {
		return known
	}
	return string(content)
}

func (d *decoder) time(message []byte, into *metav1.Time) {
	d.ok = d.ok && into.Unmarshal(message) == nil
}

func (d *decoder) entry(entry []byte, into *map[string]string) {
	var key, value string
	m := wire.NewMessage(entry)
	for m.Next() {
		switch m.Number() {
		case 1:
			key = d.words.String(m.Data())
		case 2:
			value = d.words.String(m.Data())
		default:
			d.ok = false
		}
	}
	if d.ok = d.ok && m.Err() == nil; !d.ok {
		return
	}
	if *into == nil {
		*into = map[string]string{}
	}
	(*into)[key] = value
}

func (d *decoder) owner(message []byte, into *metav1.OwnerReference) {
	m := wire.NewMessage(message)
	for m.Next() {
		switch m.Number() {
		case 1:
			into.Kind = d.words.String(m.Data())
		case 3:
			into.Name = d.words.String(m.Data())
		case 4:
			into.UID = types.UID(d.words.String(m.Data()))
		case 5:
			into.APIVersion = d.words.String(m.Data())
		case 6:
			into.Controller = truth(m.Varint())
		case 7:
			into.BlockOwnerDeletion = truth(m.Varint())
		default:
			d.ok = false
		}
	}
	d.ok = d.ok && m.Err() == nil
}

func truth(n uint64) *bool {
	b := n != 0
	return &b
}

func (d *decoder) manager(message []byte, into *metav1.ManagedFieldsEntry) {
	m := wire.NewMessage(message)
	for m.Next() {
		switch m.Number() {
		case 1:
			into.Manager = d.words.String(m.Data())
		case 2:
			into.Operation = metav1.ManagedFieldsOperationType(d.words.String(m.Data()))
		case 3:
			into.APIVersion = d.words.String(m.Data())
		case 4:
			into.Time = &metav1.Time{}
			d.time(m.Data(), into.Time)
		case 6:
			into.FieldsType = d.words.String(m.Data())
		case 7:
			if into.FieldsV1 == nil {
				into.FieldsV1 = &metav1.FieldsV1{}
			}
			d.ok = d.ok && into.FieldsV1.Unmarshal(m.Data()) == nil
		case 8:
			into.Subresource = d.words.String(m.Data())
		default:
			d.ok = false
		}
	}
	d.ok = d.ok && m.Err() == nil
}
