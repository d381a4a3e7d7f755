package protoobject

import (
	"reflect"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rvinformer/informer/internal/leaf/wire"
)

// Wire types of protobuf.
const (
	varint          = 0
	lengthDelimited = 2
)

// message decodes a message into a struct, which a plan is of, and which is zero if it is fresh. It
// is false if there is something that it does not expect.
func (d *decoder) message(p *plan, into reflect.Value, b []byte, fresh bool) bool {
	fields := p.fields()
	rest := -1       // where fields begin that are left to the generated code
	set := uint64(0) // has a bit for each field that was set, the last one for all others; none for runs
	for i := 0; i < len(b); {
		from := i
		tag, value, data, end := wire.FieldAt(b, i)
		if i = end; end == 0 {
			return false
		}
		f := &none
		if number := tag >> 3; number < uint64(len(fields)) {
			f = &fields[number]
		}
		if f.do == left {
			if rest < 0 {
				rest = from
				d.pointers++
			}
			continue
		}
		if rest >= 0 {
			if !generated(into, b[rest:from]) {
				return false
			}
			rest = -1
		}
		if tag&7 != f.do.wireType() {
			return false
		}
		if f.do >= messages {
			d.pointers++
			if i = from + d.run(f, into.Field(f.index), tag, b[from:]); i == from {
				return false
			}
			continue
		}
		bit := uint64(1) << min(tag>>3, 63)
		fresh := fresh && set&bit == 0
		if fresh && value == 0 && len(data) == 0 && f.staysZero() {
			continue // a quarter of the fields of a pod
		}
		set |= bit
		if !f.staysZero() {
			d.pointers++
		}
		field := into.Field(f.index)
		if f.pointer {
			field, fresh = pointed(f, field)
		}
		switch f.do {
		case text:
			field.SetString(d.words.String(data))
		case integer64:
			field.SetInt(int64(value))
		case integer32:
			field.SetInt(int64(int32(value)))
		case boolean:
			field.SetBool(value != 0)
		default:
			if !d.field(f, field, data, tag, b[i:], fresh) {
				return false
			}
		}
	}
	return rest < 0 || generated(into, b[rest:])
}

// none is a field that a plan does not have.
var none field

// generated leaves fields to the generated code, which adds them to what was decoded.
func generated(into reflect.Value, fields []byte) bool {
	code, ok := into.Addr().Interface().(interface{ Unmarshal([]byte) error })
	return ok && code.Unmarshal(fields) == nil
}

// pointed returns what a pointer points to, and whether that was made now.
func pointed(f *field, pointer reflect.Value) (value reflect.Value, fresh bool) {
	if fresh = pointer.IsNil(); fresh {
		pointer.Set(reflect.New(f.of))
	}
	return pointer.Elem(), fresh
}

// field decodes a field, which is zero if it is fresh. The rest of the message tells how many
// elements follow.
func (d *decoder) field(f *field, into reflect.Value, data []byte, tag uint64, rest []byte, fresh bool) bool {
	switch f.do {
	case metadata:
		return d.metadata(into.Addr().Interface().(*metav1.ObjectMeta), data)
	case message:
		return d.message(f.plan, into, data, fresh)
	case bytes:
		b := append(into.Bytes()[:0], data...)
		if b == nil {
			b = []byte{}
		}
		into.SetBytes(b)
	case bytesMap, quantityMap:
		return d.entry(f, into, data, tag, rest)
	case moment:
		return unmarshalTime(into.Addr().Interface().(*metav1.Time), data)
	case custom:
		return generated(into, data)
	default:
		return false
	}
	return true
}

// entry decodes an entry of a map. The rest of the message tells how many follow.
func (d *decoder) entry(f *field, into reflect.Value, entry []byte, tag uint64, rest []byte) bool {
	key, value, ok := d.keyAndValue(entry)
	if !ok {
		return false
	}
	if into.IsNil() {
		into.Set(reflect.MakeMapWithSize(f.of, 1+count(tag, rest)))
	}
	switch f.do {
	case bytesMap:
		into.Interface().(map[string][]byte)[key] = append([]byte{}, value...)
	case quantityMap:
		if d.quantity, ok = d.quantities.decode(value); !ok {
			return false
		}
		into.SetMapIndex(d.keyOf(f.of.Key(), key), reflect.ValueOf(&d.quantity).Elem())
	}
	return true
}

// keyAndValue decodes an entry of a map. It is false if either comes with another type, or the
// value twice.
func (d *decoder) keyAndValue(entry []byte) (key string, value []byte, ok bool) {
	for i := 0; i < len(entry); {
		const keyTag, valueTag = 1<<3 | lengthDelimited, 2<<3 | lengthDelimited
		tag, _, data, end := wire.FieldAt(entry, i)
		switch i = end; {
		case end == 0:
			return "", nil, false
		case tag == keyTag:
			key = d.words.String(data)
		case tag == valueTag && value == nil:
			value = data
		default:
			return "", nil, false
		}
	}
	return key, value, true
}

// keyOf returns a key of a map, which is of a type that strings have. It is good until the next
// call.
func (d *decoder) keyOf(t reflect.Type, key string) reflect.Value {
	if !d.key.IsValid() || d.key.Type() != t {
		d.key = reflect.New(t).Elem()
	}
	d.key.SetString(key)
	return d.key
}

// quantities remembers quantities by their messages: pods have few different ones.
type quantities map[string]resource.Quantity

// maxQuantities and maxQuantityBytes bound what is remembered.
const maxQuantities, maxQuantityBytes = 256, 32

func (q *quantities) decode(message []byte) (resource.Quantity, bool) {
	if known, ok := (*q)[string(message)]; ok {
		return known.DeepCopy(), true
	}
	var made resource.Quantity
	if made.Unmarshal(message) != nil {
		return made, false
	}
	if len(message) <= maxQuantityBytes && len(*q) < maxQuantities {
		if *q == nil {
			*q = quantities{}
		}
		(*q)[string(message)] = made.DeepCopy()
	}
	return made, true
}
