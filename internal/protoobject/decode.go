package protoobject

import (
	"reflect"
	"time"
	"unsafe"

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

// message decodes a message into the struct of its plan at an address. It is false if there is something that it does not expect.
func (d *decoder) message(p *plan, at unsafe.Pointer, b []byte) bool {
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
			if !generated(p.of, at, b[rest:from]) {
				return false
			}
			rest = -1
		}
		if f.do.isVarint() {
			if tag&7 != varint {
				return false
			}
			number64(f.do, unsafe.Add(at, f.offset), value)
			continue
		}
		if tag&7 != lengthDelimited || !d.field(f, unsafe.Add(at, f.offset), data, tag, b[i:]) {
			return false
		}
	}
	return rest < 0 || generated(p.of, at, b[rest:])
}

// none is a field that a plan does not have.
var none field

// generated leaves fields to the generated code, which adds them to what was decoded.
func generated(of reflect.Type, at unsafe.Pointer, fields []byte) bool {
	into, ok := reflect.NewAt(of, at).Interface().(interface{ Unmarshal([]byte) error })
	return ok && into.Unmarshal(fields) == nil
}

func number64(do operation, at unsafe.Pointer, value uint64) {
	switch do {
	case integer64:
		*(*int64)(at) = int64(value)
	case integer32:
		*(*int32)(at) = int32(value)
	case boolean:
		*(*bool)(at) = value != 0
	case integer64Pointer:
		n := int64(value)
		*(**int64)(at) = &n
	case integer32Pointer:
		n := int32(value)
		*(**int32)(at) = &n
	case booleanPointer:
		b := value != 0
		*(**bool)(at) = &b
	}
}

// slice is the header of a slice.
type slice struct {
	data     unsafe.Pointer
	len, cap int
}

// field decodes a field at its address. The rest of the message tells how many elements follow.
func (d *decoder) field(f *field, at unsafe.Pointer, data []byte, tag uint64, rest []byte) bool {
	switch f.do {
	case text:
		*(*string)(at) = d.words.String(data)
	case textPointer:
		s := d.words.String(data)
		*(**string)(at) = &s
	case name:
		*(*string)(at) = d.kept(data, d.known.Name)
	case uid:
		*(*string)(at) = d.kept(data, d.known.UID)
	case version:
		*(*string)(at) = d.kept(data, d.known.ResourceVersion)
	case message:
		return d.message(f.plan, at, data)
	case messagePointer:
		return d.message(f.plan, pointed(f, at), data)
	case messages:
		s := (*slice)(at)
		if s.len == s.cap {
			reflect.NewAt(f.of, at).Elem().Grow(1 + following(tag, rest))
		}
		element := unsafe.Add(s.data, uintptr(s.len)*f.size)
		s.len++
		return d.message(f.plan, element, data)
	case texts:
		s := (*[]string)(at)
		if *s == nil {
			*s = make([]string, 0, 1+following(tag, rest))
		}
		*s = append(*s, d.words.String(data))
	case bytes:
		s := (*[]byte)(at)
		if *s = append((*s)[:0], data...); *s == nil {
			*s = []byte{}
		}
	case textMap, bytesMap, quantityMap:
		return d.entry(f, at, data, tag, rest)
	case moment:
		return unmarshalTime((*metav1.Time)(at), data)
	case momentPointer:
		t := (**metav1.Time)(at)
		if *t == nil {
			*t = &metav1.Time{}
		}
		return unmarshalTime(*t, data)
	case managed:
		m := (**metav1.FieldsV1)(at)
		if *m == nil {
			*m = &metav1.FieldsV1{}
		}
		return (*m).Unmarshal(data) == nil
	case custom:
		return generated(f.of, at, data)
	case customPointer:
		return generated(f.of, pointed(f, at), data)
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

// pointed returns what the pointer points to. It is made if there is nothing.
func pointed(f *field, at unsafe.Pointer) unsafe.Pointer {
	p := (*unsafe.Pointer)(at)
	if *p == nil {
		*p = reflect.New(f.of).UnsafePointer()
	}
	return *p
}

// entry decodes an entry of a map.
func (d *decoder) entry(f *field, at unsafe.Pointer, entry []byte, tag uint64, rest []byte) bool {
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
	switch f.do {
	case textMap:
		m := (*map[string]string)(at)
		if *m == nil {
			*m = make(map[string]string, 1+following(tag, rest))
		}
		(*m)[key] = d.words.String(value)
	case bytesMap:
		m := (*map[string][]byte)(at)
		if *m == nil {
			*m = make(map[string][]byte, 1+following(tag, rest))
		}
		(*m)[key] = append([]byte{}, value...)
	case quantityMap:
		m := reflect.NewAt(f.of, at).Elem()
		if m.IsNil() {
			m.Set(reflect.MakeMapWithSize(f.of, 1+following(tag, rest)))
		}
		var ok bool
		if d.quantity, ok = d.quantities.decode(value); !ok {
			return false
		}
		d.key = key
		m.SetMapIndex(reflect.NewAt(f.of.Key(), unsafe.Pointer(&d.key)).Elem(), reflect.ValueOf(&d.quantity).Elem())
	}
	return true
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
