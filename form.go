package informer

import (
	"fmt"
	"reflect"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/rvinformer/informer/internal/prune"
)

// form is how objects are asked for on the wire and what becomes of them. An
// example object decides it: *RawObject, *metav1.PartialObjectMetadata, a Go type
// of the API, or, for anything else, unstructured.
type form struct {
	// decode makes the object; nil where the RawObject is the object.
	decode func(*RawObject) (runtime.Object, error)
	// protobuf tells that objects may come in protobuf, partial that of each no more
	// than its metadata is asked for.
	protobuf, partial bool
	// prune are the fields to drop while reading. What protobuf has no name for is
	// left for pruneDecoded.
	prune, pruneProtobuf, pruneDecoded prune.Paths
}

// formOf returns the form of an example. A raw object may come in protobuf if
// the client's configuration asks for it, and everything can be pruned from it.
func formOf(example interface{}, clientAsksProtobuf bool, paths prune.Paths) form {
	f := form{prune: paths}
	f.pruneProtobuf, f.pruneDecoded = paths.InProtobuf()
	switch example.(type) {
	case *RawObject:
		f.protobuf = clientAsksProtobuf && len(f.pruneDecoded) == 0
	case *metav1.PartialObjectMetadata:
		f.partial, f.protobuf, f.decode = true, true, decodePartial
	default:
		f.decode = decodeUnstructured
		if goType := reflect.TypeOf(example); goType != nil && isAPIType(goType) {
			_, f.protobuf = example.(fromProtobuf)
			f.decode = func(raw *RawObject) (runtime.Object, error) {
				return decodeTyped(raw, reflect.New(goType.Elem()).Interface().(runtime.Object))
			}
		}
	}
	return f
}

func decodeUnstructured(raw *RawObject) (runtime.Object, error) {
	obj := &unstructured.Unstructured{}
	return obj, raw.decode(obj)
}

func decodePartial(raw *RawObject) (runtime.Object, error) {
	obj := &metav1.PartialObjectMetadata{}
	return obj, raw.decode(obj)
}

// decodeTyped leaves the kind out, as typed clients do: the Go type says it.
func decodeTyped(raw *RawObject, obj runtime.Object) (runtime.Object, error) {
	err := raw.decode(obj)
	obj.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{})
	return obj, err
}

// accept is the Accept header of a list or a watch, the best first.
func (f form) accept(list bool) string {
	media := []string{runtime.ContentTypeJSON}
	if f.protobuf {
		media = []string{runtime.ContentTypeProtobuf, runtime.ContentTypeJSON}
	}
	if !f.partial {
		return strings.Join(media, ",")
	}
	kind := "PartialObjectMetadata"
	if list {
		kind += "List"
	}
	for i := range media {
		media[i] += fmt.Sprintf(";as=%s;g=%s;v=v1", kind, metav1.GroupName)
	}
	// A server that knows no such form sends whole objects.
	return strings.Join(append(media, runtime.ContentTypeJSON), ",")
}
