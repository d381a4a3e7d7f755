package protoobject

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/rvinformer/informer/internal/leaf/wire"
)

// Every object has metadata. Its few types are decoded without a plan, because reflection would
// take most of the time. What is not expected here, such as a field of a newer server, is left to
// the generated code, which adds it.

// metadata decodes the metadata of an object. It is false if a field is damaged.
func (d *decoder) metadata(m *metav1.ObjectMeta, message []byte) bool {
	var own []manager
	for i := 0; i < len(message); {
		tag, value, data, end := wire.FieldAt(message, i)
		if end == 0 {
			return false
		}
		ok, rest := true, message[end:]
		switch tag {
		case 1<<3 | lengthDelimited:
			m.Name = kept(data, d.known.Name)
		case 2<<3 | lengthDelimited:
			m.GenerateName = d.words.String(data)
		case 3<<3 | lengthDelimited:
			m.Namespace = d.words.String(data)
		case 5<<3 | lengthDelimited:
			m.UID = types.UID(kept(data, d.known.UID))
		case 6<<3 | lengthDelimited:
			m.ResourceVersion = kept(data, d.known.ResourceVersion)
		case 7<<3 | varint:
			m.Generation = int64(value)
		case 8<<3 | lengthDelimited:
			ok = unmarshalTime(&m.CreationTimestamp, data)
		case 10<<3 | varint:
			m.DeletionGracePeriodSeconds = new(int64(value))
		case 11<<3 | lengthDelimited:
			end = i + d.texts(&m.Labels, d.last.labelRun(), tag, message[i:])
			ok = end > i
		case 12<<3 | lengthDelimited:
			end = i + d.texts(&m.Annotations, d.last.annotationRun(), tag, message[i:])
			ok = end > i
		case 13<<3 | lengthDelimited:
			ok = d.owner(lengthened(&m.OwnerReferences, tag, rest), data)
		case 14<<3 | lengthDelimited:
			*lengthened(&m.Finalizers, tag, rest) = d.words.String(data)
		case 17<<3 | lengthDelimited:
			if len(own) == 0 {
				own = make([]manager, 1+count(tag, rest))
			}
			last := d.last.manager(len(m.ManagedFields))
			ok = d.managed(lengthened(&m.ManagedFields, tag, rest), &own[0], last, data)
			own = own[1:]
		default:
			ok = m.Unmarshal(message[i:end]) == nil
		}
		if i = end; !ok {
			return false
		}
	}
	return true
}

// owner decodes a reference to an owner.
func (d *decoder) owner(m *metav1.OwnerReference, message []byte) bool {
	last := d.last.lastOwner()
	if last.copied(m, message) {
		return true
	}
	for i := 0; i < len(message); {
		tag, value, data, end := wire.FieldAt(message, i)
		if end == 0 {
			return false
		}
		switch tag {
		case 1<<3 | lengthDelimited:
			m.Kind = d.words.String(data)
		case 3<<3 | lengthDelimited:
			m.Name = d.words.String(data)
		case 4<<3 | lengthDelimited:
			m.UID = types.UID(d.words.String(data))
		case 5<<3 | lengthDelimited:
			m.APIVersion = d.words.String(data)
		case 6<<3 | varint:
			m.Controller = new(value != 0)
		case 7<<3 | varint:
			m.BlockOwnerDeletion = new(value != 0)
		default:
			if m.Unmarshal(message[i:end]) != nil {
				return false
			}
		}
		i = end
	}
	last.put(m, message)
	return true
}

// manager is what an entry of managed fields points to. Those of all entries are allocated at once.
type manager struct {
	at     metav1.Time
	fields metav1.FieldsV1
}

// managed decodes an entry of managed fields, which points to own. Last is nil, or has the entry of
// a sibling.
func (d *decoder) managed(m *metav1.ManagedFieldsEntry, own *manager, last *lastManager, message []byte) bool {
	if last.copied(m, own, message) {
		return true
	}
	var at, fields span
	once := true // the time and the fields came
	for i := 0; i < len(message); {
		tag, _, data, end := wire.FieldAt(message, i)
		if end == 0 {
			return false
		}
		ok := true
		switch tag {
		case 1<<3 | lengthDelimited:
			m.Manager = d.words.String(data)
		case 2<<3 | lengthDelimited:
			m.Operation = metav1.ManagedFieldsOperationType(d.words.String(data))
		case 3<<3 | lengthDelimited:
			m.APIVersion = d.words.String(data)
		case 4<<3 | lengthDelimited:
			once = once && m.Time == nil
			m.Time, at = &own.at, span{end - len(data), end}
			ok = unmarshalTime(m.Time, data)
		case 6<<3 | lengthDelimited:
			m.FieldsType = d.words.String(data)
		case 7<<3 | lengthDelimited:
			once = once && m.FieldsV1 == nil
			m.FieldsV1, fields = &own.fields, span{end - len(data), end}
			ok = unmarshalFields(m.FieldsV1, data)
		case 8<<3 | lengthDelimited:
			m.Subresource = d.words.String(data)
		default:
			ok = m.Unmarshal(message[i:end]) == nil
		}
		if i = end; !ok {
			return false
		}
	}
	if once && m.Time != nil && m.FieldsV1 != nil {
		last.put(m, message, at, fields)
	}
	return true
}

// lengthened makes a slice longer by one, and returns the new element. The rest of the message
// tells how many follow.
func lengthened[T any](slice *[]T, tag uint64, rest []byte) *T {
	n := len(*slice)
	if n == cap(*slice) {
		longer := make([]T, n, max(2*n, n+1+count(tag, rest)))
		copy(longer, *slice)
		*slice = longer
	}
	*slice = (*slice)[:n+1]
	return &(*slice)[n]
}

// kept returns a string that the caller has, if it is the one.
func kept(content []byte, known string) string {
	if string(content) == known {
		return known
	}
	return string(content)
}

// unmarshalTime decodes a time of whole seconds, as all of the API are, without a call.
func unmarshalTime(into *metav1.Time, message []byte) bool {
	const secondsTag, nanosTag = 1 << 3, 2 << 3 // of varints
	if len(message) > 3 && message[0] == secondsTag {
		if _, seconds, _, i := wire.FieldAt(message, 0); i == len(message)-2 && message[i] == nanosTag && message[i+1] == 0 {
			into.Time = time.Unix(int64(seconds), 0).Local()
			return true
		}
	}
	return into.Unmarshal(message) == nil
}

// unmarshalFields decodes managed fields, which are a message with a single field.
func unmarshalFields(into *metav1.FieldsV1, message []byte) bool {
	if tag, _, data, end := wire.FieldAt(message, 0); tag == 1<<3|lengthDelimited && end == len(message) {
		into.SetRawBytes(data)
		return true
	}
	return into.Unmarshal(message) == nil
}
