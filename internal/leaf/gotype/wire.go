package gotype

import (
	"reflect"
	"strings"
)

// The wire types of protobuf.
const (
	Varint, Fixed64, Bytes, Fixed32 = 0, 1, 2, 5
)

// WireType returns the wire type that the generated code writes a field with, or its elements, and whether it is
// known. The Go type says it: dozens of tags in k8s.io/api say "bytes" for a number, that of PodSpec.Priority
// among them. The tag says only of a number whether it has a fixed length.
func WireType(field reflect.StructField) (wire uint8, known bool) {
	if ProtobufNumber(field) == 0 {
		return 0, false
	}
	t := Pointed(field.Type)
	if t.Kind() == reflect.Slice && t.Elem().Kind() != reflect.Uint8 && !HasOwnProtobuf(t) {
		t = Pointed(t.Elem())
	}
	if HasOwnProtobuf(t) {
		return Bytes, true
	}
	written, _, _ := strings.Cut(field.Tag.Get("protobuf"), ",")
	switch t.Kind() {
	case reflect.String, reflect.Struct, reflect.Map, reflect.Slice:
		return Bytes, true
	case reflect.Float64:
		return Fixed64, true
	case reflect.Float32:
		return Fixed32, true
	case reflect.Bool, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64, reflect.Int, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uint:
		switch written {
		case "fixed64":
			return Fixed64, true
		case "fixed32":
			return Fixed32, true
		default:
			return Varint, true
		}
	default:
		return 0, false
	}
}
