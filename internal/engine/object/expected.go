package object

import (
	"fmt"
	"reflect"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/rvinformer/informer/internal/leaf/field"
)

// Expected is what a reflector takes: anything, a Go type, or a kind. An example object decides it:
// a Raw, *metav1.PartialObjectMetadata, a Go type of the API, or, for anything else, unstructured.
//
// It does not keep the example, which may be large.
type Expected struct {
	public Public
	// raw tells that the example is a Raw.
	raw bool
	// typed is the Go type that the example of a Raw has, nil if it has none.
	typed  *field.Type
	goType reflect.Type
	// apiType is the Go type of the API that the objects have, nil if they have none. Each object is
	// compared with it, and to find it takes longer than that.
	apiType reflect.Type
	// kind is that of the example, empty where it does not say one.
	kind metav1.TypeMeta
	// description, if set, is what it is called.
	description string
}

// Expect returns what is expected by an example, nil for anything. Description is what it is
// called, empty for its kind or its type.
func Expect(example interface{}, description string, public Public) Expected {
	e := Expected{public: public, goType: reflect.TypeOf(example), description: description}
	if public.TakeBack != nil {
		if raw, ok := public.TakeBack(example); ok {
			e.raw = true
			if raw != nil {
				e.typed = raw.typed
			}
		}
	}
	switch {
	case e.typed != nil:
		e.apiType = reflect.PointerTo(e.typed.Go())
	case !e.raw && e.goType != nil && isAPIType(e.goType):
		e.apiType = e.goType
	}
	if obj, ok := example.(runtime.Object); ok && !(e.goType.Kind() == reflect.Pointer && reflect.ValueOf(obj).IsNil()) {
		e.kind.APIVersion, e.kind.Kind = obj.GetObjectKind().GroupVersionKind().ToAPIVersionAndKind()
	}
	return e
}

func (e Expected) String() string {
	switch {
	case e.description != "":
		return e.description
	case e.kind.Kind != "":
		return e.kind.GroupVersionKind().String()
	case e.goType != nil:
		return e.goType.String()
	default:
		return "<unspecified>"
	}
}

// Type returns the Go type of the objects, nil for any.
func (e Expected) Type() reflect.Type { return e.goType }

// Partial reports whether no more than metadata is expected.
func (e Expected) Partial() bool { return e.goType == partialType }

// anyKind reports whether objects off the wire may be of any kind.
func (e Expected) anyKind() bool { return e.goType == nil || e.raw && e.typed == nil || e.Partial() }

// Check says what is wrong with an object that is not what is expected.
func (e Expected) Check(obj interface{}) error {
	if e.goType != nil && reflect.TypeOf(obj) != e.goType {
		return fmt.Errorf("is a %T, expected a %v", obj, e.goType)
	}
	if u, ok := obj.(*unstructured.Unstructured); ok && e.kind.Kind != "" {
		return e.CheckKind(metav1.TypeMeta{APIVersion: u.GetAPIVersion(), Kind: u.GetKind()})
	}
	return nil
}

// CheckKind is Check for an object off the wire, when only its kind is known. A Go type has the
// name of its kind.
func (e Expected) CheckKind(kind metav1.TypeMeta) error {
	if e.anyKind() {
		return nil
	}
	switch {
	case e.kind.Kind != "" && kind != e.kind:
		return fmt.Errorf("is of kind %v, expected %v", kind.GroupVersionKind(), e.kind.GroupVersionKind())
	case e.kind.Kind == "" && e.apiType != nil && e.apiType.Elem().Name() != kind.Kind:
		return fmt.Errorf("is of kind %v, expected a %v", kind.GroupVersionKind(), e.apiType)
	}
	return nil
}

// ItemKind returns the kind of the expected objects, empty where they may be of any.
func (e Expected) ItemKind() string {
	if e.anyKind() {
		return ""
	}
	if e.kind.Kind == "" && e.apiType != nil {
		return e.apiType.Elem().Name()
	}
	return e.kind.Kind
}

// ItemType returns the kind that an object of this type has, and its version where the example says
// that. Both are empty where the objects may be of any kind.
func (e Expected) ItemType() metav1.TypeMeta {
	if e.Partial() {
		return metav1.TypeMeta{APIVersion: metav1.SchemeGroupVersion.String(), Kind: "PartialObjectMetadata"}
	}
	if e.anyKind() {
		return metav1.TypeMeta{}
	}
	return metav1.TypeMeta{APIVersion: e.kind.APIVersion, Kind: e.ItemKind()}
}

var partialType = reflect.TypeFor[*metav1.PartialObjectMetadata]()

var unstructuredType = reflect.TypeFor[*unstructured.Unstructured]()

// isAPIType reports whether objects off the wire can be decoded into a type of
// the API: a pointer to a struct, and not to a map in one.
func isAPIType(t reflect.Type) bool {
	return t != unstructuredType && t.Kind() == reflect.Pointer && t.Elem().Kind() == reflect.Struct &&
		t.Implements(reflect.TypeFor[runtime.Object]())
}
