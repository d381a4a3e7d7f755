package objectcache

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/rvinformer/informer/internal/leaf/jsonmap"
	"github.com/rvinformer/informer/internal/leaf/protoobject"
	"github.com/rvinformer/informer/internal/leaf/typedjson"
)

// form is how the bytes of an object are decoded. Nearly all objects of a store have the same.
type form struct {
	// goType is the pointer type that the object had, or is decoded to.
	goType   reflect.Type
	protobuf bool
	// kind is what an object comes back with. An unstructured object has its kind in its bytes.
	kind metav1.TypeMeta
	// implied tells that kind is for reads into other types only. Typed objects off the wire have
	// none, because typed clients leave it out too.
	implied bool
	// decoders are the store's for unstructured objects; nil before the store has the form.
	decoders *jsonmap.Pool
	// siblings share strings where they come in protobuf; nil before the store has the form.
	siblings *protoobject.Pool
}

// same reports whether bytes of both forms are decoded alike.
func (f form) same(as form) bool {
	return f.goType == as.goType && f.protobuf == as.protobuf && f.kind == as.kind && f.implied == as.implied
}

// message is implemented by the generated API types.
type message interface {
	Reset()
	Marshal() ([]byte, error)
	Unmarshal([]byte) error
}

// metadataKind returns the kind that metadata off the wire is given, which is its example's.
func metadataKind(example runtime.Object) (kind metav1.TypeMeta) {
	if partial, ok := example.(*metav1.PartialObjectMetadata); ok && partial != nil {
		kind = partial.TypeMeta
	}
	return kind
}

var (
	unstructuredType = reflect.TypeFor[*unstructured.Unstructured]()
	partialType      = reflect.TypeFor[*metav1.PartialObjectMetadata]()
	messageType      = reflect.TypeFor[message]()
	objectType       = reflect.TypeFor[runtime.Object]()
)

// isStruct reports whether t is a pointer to a struct that is an object.
func isStruct(t reflect.Type) bool {
	return t != nil && t.Kind() == reflect.Pointer && t.Elem().Kind() == reflect.Struct && t.Implements(objectType)
}

// isMessage reports whether the methods of a message are t's own. A struct with a single embedded
// message has that one's methods, which know nothing of its other fields. Generated types embed
// two, TypeMeta and ObjectMeta, so that neither's methods count.
func isMessage(t reflect.Type) bool {
	if known, ok := messages.Load(t); ok {
		return known.(bool)
	}
	is := t.Implements(messageType) && !isPromoted(t)
	messages.Store(t, is)
	return is
}

// messages has what isMessage has found out of each type.
var messages sync.Map

// isPromoted reports whether the methods of a message that t has may be those of an embedded field.
func isPromoted(t reflect.Type) bool {
	embedded := 0
	for i := range t.Elem().NumField() {
		if f := t.Elem().Field(i); f.Anonymous && (f.Type.Implements(messageType) || reflect.PointerTo(f.Type).Implements(messageType)) {
			embedded++
		}
	}
	return embedded == 1
}

// encode returns the bytes of obj and their form.
func encode(obj runtime.Object) (form, []byte, error) {
	t := reflect.TypeOf(obj)
	if !isStruct(t) || reflect.ValueOf(obj).IsNil() {
		return form{}, nil, fmt.Errorf("is a %T, not a pointer to the struct of an object", obj)
	}
	f := form{goType: t}
	if u, ok := obj.(*unstructured.Unstructured); ok {
		text, err := json.Marshal(u.Object)
		return f, text, err
	}
	f.kind.APIVersion, f.kind.Kind = obj.GetObjectKind().GroupVersionKind().ToAPIVersionAndKind()
	if isMessage(t) {
		bytes, err := obj.(message).Marshal()
		if f.protobuf = err != nil || !loses(reflect.ValueOf(obj), true); f.protobuf {
			return f, bytes, err
		}
	}
	text, err := encodeJSON(obj)
	return f, text, err
}

// isSame reports whether bytes of this form are of the same content. Texts of JSON may differ in
// the order of their fields.
func (f form) isSame(a, b []byte) bool {
	if f.protobuf || bytes.Equal(a, b) {
		return bytes.Equal(a, b)
	}
	sortedA, errA := f.sorted(a)
	sortedB, errB := f.sorted(b)
	return errA == nil && errB == nil && bytes.Equal(sortedA, sortedB)
}

// sorted returns a text of JSON as encode writes it.
func (f form) sorted(text []byte) ([]byte, error) {
	obj, err := f.decode(text)
	if err != nil {
		return nil, err
	}
	_, text, err = encode(obj)
	return text, err
}

// decode returns a new object.
func (f form) decode(bytes []byte) (runtime.Object, error) {
	obj := reflect.New(f.goType.Elem()).Interface().(runtime.Object)
	return obj, f.fill(bytes, obj)
}

// decodeInto overwrites all of an object of any type: that of the form, unstructured, or metadata
// only.
func (f form) decodeInto(bytes []byte, into runtime.Object) error {
	t := reflect.TypeOf(into)
	if !isStruct(t) || reflect.ValueOf(into).IsNil() {
		return fmt.Errorf("cannot decode into a %T", into)
	}
	u, isUnstructured := into.(*unstructured.Unstructured)
	switch {
	case isUnstructured && f.protobuf:
		typed, err := f.decode(bytes)
		if err == nil {
			u.Object, err = runtime.DefaultUnstructuredConverter.ToUnstructured(typed)
		}
		if err == nil && f.implied {
			u.SetGroupVersionKind(f.kind.GroupVersionKind())
		}
		return err
	case f.protobuf && t != f.goType && t != partialType:
		return fmt.Errorf("cannot decode the protobuf of a %v into a %T", f.goType, into)
	}
	reflect.ValueOf(into).Elem().SetZero()
	err := f.fill(bytes, into)
	if isUnstructured && f.implied && u.GetKind() == "" && u.Object != nil {
		u.SetGroupVersionKind(f.kind.GroupVersionKind())
	}
	return err
}

// fill decodes into an empty object.
func (f form) fill(bytes []byte, into runtime.Object) (err error) {
	if u, ok := into.(*unstructured.Unstructured); ok {
		u.Object, err = f.decoders.Decode(bytes)
		return err
	}
	if f.protobuf {
		err = f.siblings.Unmarshal(bytes, protoobject.Known{}, into.(message))
	} else {
		err = typedjson.Decode(bytes, into)
	}
	switch {
	case f.goType == unstructuredType:
	case f.implied && reflect.TypeOf(into) == f.goType:
		into.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{})
	default:
		into.GetObjectKind().SetGroupVersionKind(f.kind.GroupVersionKind())
	}
	return err
}
