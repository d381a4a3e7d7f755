package informer

import (
	"reflect"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/rvinformer/informer/internal/engine/object"
	"github.com/rvinformer/informer/internal/leaf/field"
)

// RawObjectOf returns an ExampleObject for RawObjects of the Go type of example, such as
// &corev1.Pod{}. Where they come in protobuf, Field finds all fields of the type, and Keep and
// Prune may name them. Objects of another kind are skipped and reported. A
// *metav1.PartialObjectMetadata says nothing more than &RawObject{}.
func RawObjectOf(example runtime.Object) *RawObject {
	raw := &object.Raw{}
	t := reflect.TypeOf(example)
	if t == nil || t.Kind() != reflect.Pointer || t.Elem().Kind() != reflect.Struct || t == reflect.TypeFor[*metav1.PartialObjectMetadata]() {
		return (*RawObject)(raw)
	}
	return (*RawObject)(raw.Typed(field.Of(t)))
}

// FieldKind is what a FieldValue is in JSON.
type FieldKind uint8

// The kinds of values. Whole numbers that int64 can hold are FieldInt, and all others are
// FieldFloat.
const (
	FieldAbsent = FieldKind(field.Absent)
	FieldString = FieldKind(field.String)
	FieldInt    = FieldKind(field.Int)
	FieldFloat  = FieldKind(field.Float)
	FieldBool   = FieldKind(field.Bool)
	FieldObject = FieldKind(field.Object)
	FieldArray  = FieldKind(field.Array)
)

// String returns the kind in one word: "absent", "string", "int", "float", "bool", "object" or
// "array".
func (k FieldKind) String() string { return field.Kind(k).String() }

// FieldValue is the value of a field of a RawObject. It is lent like the RawObject. The zero value
// is that of an absent field.
type FieldValue field.Value

func (v FieldValue) value() field.Value { return field.Value(v) }

// Kind returns what the value is.
func (v FieldValue) Kind() FieldKind { return FieldKind(v.value().Kind()) }

// String returns a string as a copy that the caller may keep, and a number or a boolean as JSON
// writes it. It returns an empty string for other kinds.
func (v FieldValue) String() string { return v.value().String() }

// Int returns a FieldInt, and 0 for other kinds.
func (v FieldValue) Int() int64 { return v.value().Int() }

// Float returns a FieldFloat or a FieldInt, and 0 for other kinds.
func (v FieldValue) Float() float64 { return v.value().Float() }

// Bool returns a FieldBool, and false for other kinds.
func (v FieldValue) Bool() bool { return v.value().Bool() }

// Bytes returns a FieldString without quotes or escapes, or a FieldObject or FieldArray as it came,
// and nil for other kinds. The bytes are lent: they are valid as long as the RawObject is, and must
// not be written to.
//
// In JSON, an object or array is its text. In protobuf, an object is its message, for the Unmarshal
// method of its Go type. An array, or an object that is a map in Go, is not a message: it comes as
// the message around it with this field alone, so that a metav1.ObjectMeta can Unmarshal
// "metadata.labels".
func (v FieldValue) Bytes() []byte { return v.value().Bytes() }

// Field returns the value of a field without decoding the object, and whether the object has it.
// The path has the syntax of Keep and Prune: "spec.nodeName". A dot within a name is written `\.`:
//
//	name, ok := obj.Field(`metadata.labels.app\.kubernetes\.io/name`)
//
// The value is the one that the unstructured form of the object has, also in protobuf: a time, a
// quantity and a []byte are strings there, and an IntOrString is an int or a string. A null and a
// field that protobuf leaves out are absent. A path does not lead into an array, only to it. The
// last of repeated members counts.
//
// In protobuf, the numbers of fields have to be known. Those of the metadata are. For all others,
// the ExampleObject has to be a RawObjectOf the Go type; without it, the field is not found.
// LookupField says why a field is not found.
//
// It allocates only for strings that the object has in another form: with escapes or, in protobuf,
// times, durations and []byte.
func (o *RawObject) Field(path string) (FieldValue, bool) {
	value, why := o.raw().Field(path)
	return FieldValue(value), why == field.Found
}

// LookupField is Field with an error. Without a value it returns a FieldAbsent, and no error if the
// object does not have the field. The error says that the path has an empty name, that the object
// cannot be read there, or, in protobuf, that the Go type is not known or has no such field.
func (o *RawObject) LookupField(path string) (FieldValue, error) {
	value, why := o.raw().Field(path)
	return FieldValue(value), o.raw().FieldError(path, why)
}

// Labels returns the labels without decoding the object. The map belongs to the caller. It is nil
// if there are no labels, or if they cannot be read.
func (o *RawObject) Labels() map[string]string { return o.raw().Labels() }

// OwnerReferences returns the owner references without decoding the object. They belong to the
// caller. It returns nil if there are none, or if they cannot be read.
func (o *RawObject) OwnerReferences() []metav1.OwnerReference { return o.raw().Owners() }
