package objectcache

import (
	"reflect"
	"sync"

	"github.com/rvinformer/informer/internal/leaf/gotype"
	"github.com/rvinformer/informer/internal/leaf/wire"
)

// shape is what the decoder of a Go type accepts. The fields of the type, with the numbers in their tags, say it of a
// generated one. With it, an object in protobuf is checked without being decoded, so that one that
// does not fit its type is refused before it takes the place of one that does.
type shape struct {
	// fields are by their numbers.
	fields []shapeField
	// own has trials of a type that decodes itself, such as a quantity or a time.
	own *sync.Pool
}

// trial finds out what a type accepts that decodes itself. It remembers some of that, because
// objects have a few values again and again.
type trial struct {
	value    message
	accepted [64]struct {
		length uint8
		text   [16]byte
	}
}

func (t *trial) fits(encoded []byte) bool {
	known := &t.accepted[0]
	short := 0 < len(encoded) && len(encoded) <= len(known.text)
	if short {
		hash := uint32(len(encoded))
		for _, b := range encoded {
			hash = hash*31 + uint32(b)
		}
		known = &t.accepted[hash%uint32(len(t.accepted))]
		if string(known.text[:known.length]) == string(encoded) {
			return true
		}
	}
	t.value.Reset()
	if t.value.Unmarshal(encoded) != nil {
		return false
	}
	if short {
		known.length = uint8(copy(known.text[:], encoded))
	}
	return true
}

type shapeField struct {
	known    bool
	wire     uint8
	repeated bool
	// within is the shape of a message, nil if it is not checked.
	within *shape
}

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
	if len(s.fields) == 0 {
		s.own = trials(t)
	}
	return s
}

// trials returns trials of a type, nil for one that does not decode itself.
func trials(t reflect.Type) *sync.Pool {
	if !reflect.PointerTo(t).Implements(messageType) {
		return nil
	}
	return &sync.Pool{New: func() any { return &trial{value: reflect.New(t).Interface().(message)} }}
}

// maxNested is how many pointers and slices may be around a value that is checked.
const maxNested = 8

// shapeOfValue returns the shape of a field's value or elements, nil if it is not checked.
func shapeOfValue(t reflect.Type, read map[reflect.Type]*shape) *shape {
	for range maxNested { // a type may be a slice of itself
		if t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice && trials(t) == nil {
			t = t.Elem()
		}
	}
	switch t.Kind() {
	case reflect.Struct:
		return readShape(t, read)
	case reflect.Map: // its entries are messages
		if s, ok := read[t]; ok {
			return s
		}
		s := &shape{}
		read[t] = s
		s.fields = []shapeField{{}, entryField(t.Key(), read), entryField(t.Elem(), read)}
		return s
	default:
		if own := trials(t); own != nil {
			return &shape{own: own}
		}
		return nil
	}
}

// entryField is the key or the value of an entry of a map, for which there are no tags.
func entryField(t reflect.Type, read map[reflect.Type]*shape) shapeField {
	switch t.Kind() {
	case reflect.String, reflect.Struct, reflect.Slice, reflect.Pointer:
		return shapeField{known: true, wire: gotype.Bytes, within: shapeOfValue(t, read)}
	default:
		return shapeField{}
	}
}

func (s *shape) add(f reflect.StructField, read map[reflect.Type]*shape) {
	wire, known := gotype.WireType(f)
	if !known {
		return
	}
	number := gotype.ProtobufNumber(f)
	for len(s.fields) <= number {
		s.fields = append(s.fields, shapeField{})
	}
	s.fields[number] = shapeField{known: true, wire: wire, repeated: f.Type.Kind() == reflect.Slice, within: shapeOfValue(f.Type, read)}
}

// fits reports whether a message surely can be decoded into the type.
func (s *shape) fits(encoded []byte) bool {
	if s.own != nil {
		t := s.own.Get().(*trial)
		defer s.own.Put(t)
		return t.fits(encoded)
	}
	for at := 0; at < len(encoded); {
		tag, _, data, end := wire.FieldAt(encoded, at)
		if at = end; end == 0 {
			return false
		}
		if number := tag >> 3; number < uint64(len(s.fields)) {
			f := &s.fields[number]
			if is := uint8(tag & 7); f.known && is != f.wire && !(f.repeated && is == gotype.Bytes) || f.within != nil && !f.within.fits(data) {
				return false
			}
		}
	}
	return true
}
