package informertest

import (
	"encoding/binary"
	"fmt"
	"reflect"
	"strconv"
	"strings"

	"k8s.io/client-go/kubernetes/scheme"
)

// mistypedValue is what no field of an object is: neither text, a number, an object, nor a list of
// any of them.
var mistypedValue = []any{true}

// mistyped is the same state with all but its metadata of another type, and with a field that its
// Go type has, so that something is even of an object without fields.
func (o *object) mistyped(r Resource) (*object, error) {
	u, err := o.decode(r)
	if err != nil {
		return nil, err
	}
	for name := range u.Object {
		if name != "apiVersion" && name != "kind" && name != "metadata" {
			u.Object[name] = mistypedValue
		}
	}
	name := "spec" // as most definitions have it
	if r.hasProtobuf() {
		field, err := firstField(r)
		if err != nil {
			return nil, err
		}
		name = field.name
	}
	u.Object[name] = mistypedValue
	out, err := encode(r, u, o.identity)
	if err != nil {
		return nil, fmt.Errorf("mistyping %s/%s: %w", o.namespace, o.name, err)
	}
	return out.at(o.rv), nil
}

// typeField is a field of the Go type of a resource.
type typeField struct {
	name     string // in JSON
	number   uint64 // in protobuf
	isVarint bool   // in protobuf; else it is not
}

// firstField is the first field of the Go type of a resource after its metadata.
func firstField(r Resource) (typeField, error) {
	obj, err := scheme.Scheme.New(r.gvk())
	if err != nil {
		return typeField{}, err
	}
	goType := reflect.TypeOf(obj).Elem()
	for i := range goType.NumField() {
		field := goType.Field(i)
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		wire := strings.Split(field.Tag.Get("protobuf"), ",")
		if field.Anonymous || name == "" || len(wire) < 2 {
			continue
		}
		number, err := strconv.ParseUint(wire[1], 10, 29)
		if err != nil {
			return typeField{}, fmt.Errorf("the field %s of %s: %w", field.Name, goType, err)
		}
		return typeField{name: name, number: number, isVarint: wire[0] == "varint"}, nil
	}
	return typeField{}, fmt.Errorf("%s has no fields besides its metadata", goType)
}

// appendMistyped appends a field of the wrong wire type to a message.
func (f typeField) appendMistyped(message []byte) []byte {
	const varint, bytes = 0, 2
	if f.isVarint {
		return append(binary.AppendUvarint(message, f.number<<3|bytes), 0)
	}
	return append(binary.AppendUvarint(message, f.number<<3|varint), 7)
}
