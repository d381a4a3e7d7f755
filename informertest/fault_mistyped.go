package informertest

import (
	"encoding/binary"
	"fmt"
	"reflect"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
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

func (c jsonCodec) mistyped(b []byte, o *object) ([]byte, error) { return c.asMistyped(b, o, c.object) }

// mistypedItem is an item of a list.
func (c jsonCodec) mistypedItem(b []byte, o *object) ([]byte, error) {
	return c.asMistyped(b, o, c.item)
}

func (c jsonCodec) asMistyped(b []byte, o *object, write func(b []byte, o *object) ([]byte, error)) ([]byte, error) {
	o, err := o.mistyped(c.resource)
	if err != nil {
		return b, err
	}
	return write(b, o)
}

func (c protobufCodec) mistyped(b []byte, o *object) ([]byte, error) {
	if c.form == formMetadata {
		return c.object(b, o)
	}
	message, err := c.mistypedMessage(o)
	if err != nil {
		return b, err
	}
	apiVersion, name := c.resource.gvk().ToAPIVersionAndKind()
	text, err := (&runtime.Unknown{TypeMeta: runtime.TypeMeta{APIVersion: apiVersion, Kind: name}, Raw: message}).Marshal()
	return append(append(b, envelopeMark...), text...), err
}

// mistypedItem is an item of a list.
func (c protobufCodec) mistypedItem(b []byte, o *object) ([]byte, error) {
	if c.form == formMetadata {
		return c.item(b, o)
	}
	message, err := c.mistypedMessage(o)
	if err != nil {
		return b, err
	}
	b = binary.AppendUvarint(append(b, listItemsTag), uint64(len(message)))
	return append(b, message...), nil
}

// mistypedMessage is the object and, in the end, a field of it that no Go type can be decoded from.
func (c protobufCodec) mistypedMessage(o *object) ([]byte, error) {
	obj, err := c.typed(o)
	if err != nil {
		return nil, err
	}
	m, ok := obj.(runtime.ProtobufMarshaller)
	if !ok {
		return nil, fmt.Errorf("%T has no protobuf form", obj)
	}
	message := make([]byte, m.Size())
	n, err := m.MarshalTo(message)
	if err != nil {
		return nil, err
	}
	field, err := firstField(c.resource)
	if err != nil {
		return nil, err
	}
	return field.appendMistyped(message[:n]), nil
}
