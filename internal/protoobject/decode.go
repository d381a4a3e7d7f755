package protoobject

import (
	"reflect"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Wire types of protobuf.
const (
	varint = iota
	fixed64
	lengthDelimited
	fixed32 = 5
)

// message decodes a message into a struct, which a plan is of. It is false if there is something that it does not expect.
func (d *decoder) message(p *plan, into reflect.Value, b []byte) bool {
	fields := p.fields()
	rest := -1 // where fields begin that are left to the generated code
	for i := 0; i < len(b); {
		from := i
		tag, i2 := uvarint(b, i)
		number := tag >> 3
		if i2 == 0 || number == 0 || number > 1<<28 {
			return false
		}
		f := &none
		if number < uint64(len(fields)) {
			f = &fields[number]
		}
		var value uint64
		switch i = i2; tag & 7 {
		case varint, lengthDelimited:
			if value, i = uvarint(b, i); i == 0 {
				return false
			}
		case fixed64:
			i += 8
		case fixed32:
			i += 4
		default:
			return false
		}
		var data []byte
		if tag&7 == lengthDelimited {
			if value > uint64(len(b)-i) {
				return false
			}
			data = b[i : i+int(value) : i+int(value)]
			i += int(value)
		}
		if i > len(b) {
			return false
		}
		if f.do == left {
			if rest < 0 {
				rest = from
			}
			continue
		}
		if rest >= 0 {
			if !generated(into, b[rest:from]) {
				return false
			}
			rest = -1
		}
		if f.do.isVarint() {
			if tag&7 != varint {
				return false
			}
			setNumber(f, into.Field(f.index), value)
			continue
		}
		if tag&7 != lengthDelimited || !d.field(f, into.Field(f.index), data, tag, b[i:]) {
			return false
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

func setNumber(f *field, into reflect.Value, value uint64) {
	switch f.do {
	case integer64:
		into.SetInt(int64(value))
	case integer32:
		into.SetInt(int64(int32(value)))
	case boolean:
		into.SetBool(value != 0)
	case integer64Pointer:
		made(f, into).SetInt(int64(value))
	case integer32Pointer:
		made(f, into).SetInt(int64(int32(value)))
	case booleanPointer:
		made(f, into).SetBool(value != 0)
	}
}

// made has the pointer point to a new zero, and returns that.
func made(f *field, pointer reflect.Value) reflect.Value {
	p := reflect.New(f.of)
	pointer.Set(p)
	return p.Elem()
}

// pointed returns what the pointer points to. It is made if there is nothing.
func pointed(f *field, pointer reflect.Value) reflect.Value {
	if pointer.IsNil() {
		return made(f, pointer)
	}
	return pointer.Elem()
}

// appended makes a slice longer by one, and returns the new element. The rest of the message tells how many follow.
func appended(slice reflect.Value, tag uint64, rest []byte) reflect.Value {
	n := slice.Len()
	if n == slice.Cap() {
		slice.Grow(1 + following(tag, rest))
	}
	slice.SetLen(n + 1)
	return slice.Index(n)
}

// field decodes a field. The rest of the message tells how many elements follow.
func (d *decoder) field(f *field, into reflect.Value, data []byte, tag uint64, rest []byte) bool {
	switch f.do {
	case text:
		into.SetString(d.words.String(data))
	case textPointer:
		made(f, into).SetString(d.words.String(data))
	case name:
		into.SetString(d.kept(data, d.known.Name))
	case uid:
		into.SetString(d.kept(data, d.known.UID))
	case version:
		into.SetString(d.kept(data, d.known.ResourceVersion))
	case message:
		return d.message(f.plan, into, data)
	case messagePointer:
		return d.message(f.plan, pointed(f, into), data)
	case messages:
		return d.message(f.plan, appended(into, tag, rest), data)
	case texts:
		appended(into, tag, rest).SetString(d.words.String(data))
	case bytes:
		b := append(into.Bytes()[:0], data...)
		if b == nil {
			b = []byte{}
		}
		into.SetBytes(b)
	case textMap, bytesMap, quantityMap:
		return d.entry(f, into, data, tag, rest)
	case moment, momentPointer:
		if f.do == momentPointer {
			into = pointed(f, into)
		}
		return unmarshalTime(into.Addr().Interface().(*metav1.Time), data)
	case managed, customPointer:
		return generated(pointed(f, into), data)
	case custom:
		return generated(into, data)
	default:
		return false
	}
	return true
}

// kept returns a string that the caller has, if it is the one.
func (d *decoder) kept(content []byte, known string) string {
	if string(content) == known {
		return known
	}
	return string(content)
}

// entry decodes an entry of a map.
func (d *decoder) entry(f *field, into reflect.Value, entry []byte, tag uint64, rest []byte) bool {
	var key string
	var value []byte
	for i := 0; i < len(entry); {
		const keyTag, valueTag = 1<<3 | lengthDelimited, 2<<3 | lengthDelimited
		tag, length := entry[i], uint64(0)
		if length, i = uvarint(entry, i+1); i == 0 || length > uint64(len(entry)-i) {
			return false
		}
		data := entry[i : i+int(length)]
		i += int(length)
		switch {
		case tag == keyTag:
			key = d.words.String(data)
		case tag == valueTag && value == nil:
			value = data
		default:
			return false
		}
	}
	if into.IsNil() {
		into.Set(reflect.MakeMapWithSize(f.of, 1+following(tag, rest)))
	}
	switch f.do {
	case textMap:
		into.Interface().(map[string]string)[key] = d.words.String(value)
	case bytesMap:
		into.Interface().(map[string][]byte)[key] = append([]byte{}, value...)
	case quantityMap:
		var ok bool
		if d.quantity, ok = d.quantities.decode(value); !ok {
			return false
		}
		into.SetMapIndex(d.keyOf(f.of.Key(), key), reflect.ValueOf(&d.quantity).Elem())
	}
	return true
}

// keyOf returns a key of a map, which is of a type that strings have. It is good until the next call.
func (d *decoder) keyOf(t reflect.Type, key string) reflect.Value {
	if !d.key.IsValid() || d.key.Type() != t {
		d.key = reflect.New(t).Elem()
	}
	d.key.SetString(key)
	return d.key
}

// following returns how many fields with the same tag follow, which are length-delimited.
func following(tag uint64, rest []byte) (n int) {
	for i := 0; ; n++ {
		t, i2 := uvarint(rest, i)
		if i2 == 0 || t != tag {
			return n
		}
		length, i3 := uvarint(rest, i2)
		if i3 == 0 || length > uint64(len(rest)-i3) {
			return n
		}
		i = i3 + int(length)
	}
}

// unmarshalTime decodes a time of whole seconds, as all of the API are, without a call.
func unmarshalTime(into *metav1.Time, message []byte) bool {
	const secondsTag, nanosTag = 1 << 3, 2 << 3 // of varints
	if len(message) > 3 && message[0] == secondsTag {
		if seconds, i := uvarint(message, 1); i == len(message)-2 && message[i] == nanosTag && message[i+1] == 0 {
			into.Time = time.Unix(int64(seconds), 0).Local()
			return true
		}
	}
	return into.Unmarshal(message) == nil
}

// uvarint reads a varint at i, and returns where it ends; 0 if it is none.
func uvarint(b []byte, i int) (v uint64, end int) {
	if i < len(b) && b[i] < 0x80 {
		return uint64(b[i]), i + 1
	}
	return longUvarint(b, i)
}

func longUvarint(b []byte, i int) (v uint64, end int) {
	for shift := 0; shift < 64 && i < len(b); shift += 7 {
		c := b[i]
		i++
		v |= uint64(c&0x7F) << shift
		if c < 0x80 {
			return v, i
		}
	}
	return 0, 0
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
