package objectcache

import (
	"encoding/binary"
	"reflect"
	"strconv"
	"strings"
	"sync"
)

// shape is what the generated decoder of a Go type accepts, as far as the tags of the type's fields say. With it, an object in
// protobuf is checked without being decoded, so that one that does not fit its type is refused before it takes the place of
// one that does.
type shape struct {
	// fields are by their numbers.
	fields []shapeField
}

type shapeField struct {
	known    bool
	wire     uint8
	repeated bool
	// within is the shape of a message, nil if it is not checked.
	within *shape
}

// The wire types of protobuf.
const (
	wireVarint, wireFixed64, wireBytes, wireFixed32 = 0, 1, 2, 5
)

var wireTypes = map[string]uint8{"varint": wireVarint, "fixed64": wireFixed64, "bytes": wireBytes, "fixed32": wireFixed32}

// shapes are the shapes of types that were read before: a process has many stores of few types.
var shapes sync.Map // of *shape, by reflect.Type

// shapeOf returns the shape of a pointer type, nil for one that is no message.
func shapeOf(t reflect.Type) *shape {
	if !isStruct(t) || !isMessage(t) {
		return nil
	}
	if s, ok := shapes.Load(t); ok {
		return s.(*shape)
	}
	s, _ := shapes.LoadOrStore(t, readShape(t.Elem(), map[reflect.Type]*shape{}))
	return s.(*shape)
}

// readShape reads a struct. Types may contain themselves.
func readShape(t reflect.Type, read map[reflect.Type]*shape) *shape {
	if s, ok := read[t]; ok {
		return s
	}
	s := &shape{}
	read[t] = s
	for i := range t.NumField() {
		s.add(t.Field(i), read)
	}
	return s
}

func (s *shape) add(f reflect.StructField, read map[reflect.Type]*shape) {
	tag := strings.Split(f.Tag.Get("protobuf"), ",")
	if len(tag) < 2 {
		return
	}
	wire, known := wireTypes[tag[0]]
	number, err := strconv.ParseUint(tag[1], 10, 16)
	if !known || err != nil {
		return
	}
	for len(s.fields) <= int(number) {
		s.fields = append(s.fields, shapeField{})
	}
	t := f.Type
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice {
		t = t.Elem()
	}
	field := shapeField{known: true, wire: wire, repeated: f.Type.Kind() == reflect.Slice}
	if t.Kind() == reflect.Struct {
		field.within = readShape(t, read)
	}
	s.fields[number] = field
}

// fits reports whether a message surely can be decoded into the type, but for what types without tags decode themselves.
func (s *shape) fits(message []byte) bool {
	for at := 0; at < len(message); {
		tag := uint64(message[at])
		if at++; tag >= 0x80 {
			n := 0
			if tag, n = binary.Uvarint(message[at-1:]); n <= 0 {
				return false
			}
			at += n - 1
		}
		number, wire := tag>>3, uint8(tag&7)
		if number == 0 {
			return false
		}
		var within *shape
		if number < uint64(len(s.fields)) {
			f := &s.fields[number]
			if f.known && wire != f.wire && !(f.repeated && wire == wireBytes) {
				return false
			}
			within = f.within
		}
		size := 0
		switch wire {
		case wireVarint:
			for at+size < len(message) && message[at+size] >= 0x80 {
				size++
			}
			if size++; size > binary.MaxVarintLen64 {
				return false
			}
		case wireFixed64:
			size = 8
		case wireFixed32:
			size = 4
		case wireBytes:
			length, n := uint64(0), 1
			if at < len(message) && message[at] < 0x80 {
				length = uint64(message[at])
			} else if length, n = binary.Uvarint(message[at:]); n <= 0 {
				return false
			}
			if at += n; length > uint64(len(message)-at) {
				return false
			}
			size = int(length)
		default: // a group: no server sends one
			return false
		}
		if size > len(message)-at || within != nil && !within.fits(message[at:at+size]) {
			return false
		}
		at += size
	}
	return true
}
