// Package gotype says how the Go types of the API are written: names in JSON, numbers in protobuf.
package gotype

import (
	"encoding/json"
	"reflect"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Pointed is the type behind pointers.
func Pointed(t reflect.Type) reflect.Type {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t
}

// HasOwnJSON reports whether a type says itself what its JSON is.
func HasOwnJSON(t reflect.Type) bool {
	p := reflect.PointerTo(t)
	return p.Implements(reflect.TypeFor[json.Unmarshaler]()) || p.Implements(reflect.TypeFor[json.Marshaler]())
}

// RawJSON returns the field of a type that keeps the text of its JSON, such as
// runtime.RawExtension.
func RawJSON(t reflect.Type) (field reflect.StructField, ok bool) {
	if t.Kind() != reflect.Struct {
		return field, false
	}
	field, ok = t.FieldByName("Raw")
	return field, ok && field.Type == reflect.TypeFor[[]byte]()
}

// HasOwnProtobuf reports whether a slice or map is a message itself.
func HasOwnProtobuf(t reflect.Type) bool {
	return reflect.PointerTo(t).Implements(reflect.TypeFor[interface{ Unmarshal([]byte) error }]())
}

// IsTypeMeta reports whether a field is the kind of an object, which is in JSON only.
func IsTypeMeta(t reflect.Type) bool { return t == reflect.TypeFor[metav1.TypeMeta]() }

// JSONName returns the name of a field in JSON, "-" if it has none there, or that it is inlined.
func JSONName(field reflect.StructField) (name string, inlined bool) {
	tag := field.Tag.Get("json")
	name, options, _ := strings.Cut(tag, ",")
	switch {
	case tag == "-":
		return "-", false
	case name != "":
		return name, false
	case field.Anonymous || strings.Contains(options, "inline"):
		t := Pointed(field.Type)
		return field.Name, t.Kind() == reflect.Struct && !HasOwnJSON(t)
	default:
		return field.Name, false
	}
}

// ProtobufNumber returns the number of a field, 0 if it has none. The tag is
// `protobuf:"bytes,3,opt,name=x"`.
func ProtobufNumber(field reflect.StructField) int {
	_, rest, _ := strings.Cut(field.Tag.Get("protobuf"), ",")
	number, _, _ := strings.Cut(rest, ",")
	n, err := strconv.Atoi(number)
	if err != nil || n < 0 || n > maxNumber {
		return 0
	}
	return n
}

// maxNumber bounds the tables. No generated type has a field with a larger number.
const maxNumber = 1 << 12
