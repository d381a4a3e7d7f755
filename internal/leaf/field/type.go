package field

import (
	"reflect"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/rvinformer/informer/internal/leaf/gotype"
)

// Type says how the values of a Go type are written in protobuf, and what their JSON is. Its parts
// are read when a path first leads there. It may be used by several goroutines.
type Type struct {
	shape shape
	of    reflect.Type

	once    sync.Once
	members map[string]*member
	// values is that of the values of a map, which may be the map's own.
	values *Type
}

// shape is how a value is written.
type shape uint8

const (
	opaque  shape = iota // cannot be read
	text                 // a string
	blob                 // bytes, base64 in JSON
	integer              // signed
	natural              // not signed
	boolean
	double
	structure
	mapping
	list
	wrapped // a list that is a message itself
	instant
	microInstant
	duration
	quantity
	intOrString
	rawJSON // JSON text in a message
)

// member is a field of a struct.
type member struct {
	*Type
	// numbers lead to the field: the last one is its own, and those before it are of structs that
	// are inlined in JSON and messages in protobuf. There are none for what is not in the message.
	numbers []int32
	// omitEmpty tells that JSON leaves out the zero value.
	omitEmpty bool
}

// Metadata has the metadata of objects, which all types have alike.
var Metadata = Of(reflect.TypeFor[*metav1.PartialObjectMetadata]())

var shapes = map[reflect.Type]shape{
	reflect.TypeFor[metav1.Time]():        instant,
	reflect.TypeFor[metav1.MicroTime]():   microInstant,
	reflect.TypeFor[metav1.Duration]():    duration,
	reflect.TypeFor[resource.Quantity]():  quantity,
	reflect.TypeFor[intstr.IntOrString](): intOrString,
}

// Of returns the Type of a Go type, a pointer to a struct.
func Of(t reflect.Type) *Type {
	t = gotype.Pointed(t)
	typed := &Type{of: t}
	switch known, ok := shapes[t]; {
	case ok:
		typed.shape = known
	case gotype.HasOwnJSON(t):
		if raw, ok := gotype.RawJSON(t); ok && gotype.ProtobufNumber(raw) == rawNumber {
			typed.shape = rawJSON
		}
	default:
		typed.shape = shapeOf(t)
	}
	return typed
}

// Go returns the Go type, a struct.
func (t *Type) Go() reflect.Type { return t.of }

// Name returns the name of the Go type, which is that of its kind.
func (t *Type) Name() string { return t.of.Name() }

// elem returns the Type of the values of a map.
func (t *Type) elem() *Type {
	t.once.Do(func() { t.values = Of(t.of.Elem()) })
	return t.values
}

func shapeOf(t reflect.Type) shape {
	switch t.Kind() {
	case reflect.String:
		return text
	case reflect.Bool:
		return boolean
	case reflect.Int, reflect.Int32, reflect.Int64:
		return integer
	case reflect.Uint, reflect.Uint32, reflect.Uint64:
		return natural
	case reflect.Float32, reflect.Float64:
		return double
	case reflect.Struct:
		return structure
	case reflect.Slice:
		switch {
		case gotype.HasOwnProtobuf(t):
			return wrapped
		case t.Elem().Kind() == reflect.Uint8:
			return blob
		}
		return list
	case reflect.Map:
		if t.Key().Kind() == reflect.String && !gotype.HasOwnProtobuf(t) {
			return mapping
		}
	}
	return opaque
}

// member returns the field of a struct with a name in JSON, nil if there is none.
func (t *Type) member(name string) *member {
	t.once.Do(func() {
		t.members = map[string]*member{}
		t.read(t.of, nil, nil)
	})
	return t.members[name]
}

// read adds the fields of a struct, to which the numbers lead. Fields of a struct hide those of
// what is inlined in it. A struct that is inlined in itself, in the structs of around, has no others.
func (t *Type) read(of reflect.Type, numbers []int32, around []reflect.Type) {
	if slices.Contains(around, of) {
		return
	}
	around = append(around[:len(around):len(around)], of)
	for inlined := range 2 {
		for i := range of.NumField() {
			field := of.Field(i)
			name, inline := gotype.JSONName(field)
			_, known := t.members[name]
			path := append(numbers[:len(numbers):len(numbers)], int32(gotype.ProtobufNumber(field)))
			switch {
			case inline != (inlined == 1), known && !inline, name == "-", !inline && !field.IsExported():
			case inline && gotype.IsTypeMeta(field.Type):
				t.members["kind"] = &member{Type: &Type{}}
				t.members["apiVersion"] = &member{Type: &Type{}}
			case inline:
				t.read(gotype.Pointed(field.Type), path, around)
			default:
				t.members[name] = newMember(field, path)
			}
		}
	}
}

func newMember(field reflect.StructField, numbers []int32) *member {
	_, options, _ := strings.Cut(field.Tag.Get("json"), ",")
	has := map[string]bool{}
	for option := range strings.SplitSeq(options, ",") {
		has[option] = true
	}
	m := &member{Type: Of(field.Type), numbers: numbers, omitEmpty: has["omitempty"] && field.Type.Kind() != reflect.Pointer}
	var unset bool
	for _, number := range numbers {
		unset = unset || number == 0
	}
	// A zero time is null in any case.
	if omitsZero := has["omitzero"] && m.shape != instant && m.shape != microInstant; unset || omitsZero || has["string"] {
		m.Type = &Type{}
	}
	return m
}
