package object

import (
	"fmt"
	"reflect"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// Taken is the type of the objects that a handler takes. The zero value is any.
type Taken struct {
	Type reflect.Type
	// Accepts reports whether obj is of the type; nil if it is any.
	Accepts func(obj interface{}) bool
}

// TakenAs is the type T.
func TakenAs[T runtime.Object]() Taken {
	return Taken{reflect.TypeFor[T](), func(obj interface{}) bool {
		_, ok := obj.(T)
		return ok
	}}
}

// Example is the example object of an informer for a handler of this type, which is to be
// another one than is given if none is. The error says that the handler could not be called.
// A Transform may change the type: what it makes is checked one by one.
func (t Taken) Example(given runtime.Object, transforms bool) (runtime.Object, error) {
	switch {
	case t.Type == nil, t.Type.Kind() == reflect.Interface, transforms:
		return given, nil
	case given != nil && reflect.TypeOf(given) != t.Type:
		return nil, fmt.Errorf("the handler takes a %v, and ExampleObject is a %T", t.Type, given)
	case given != nil:
		return given, nil
	case t.Type.Kind() != reflect.Pointer:
		return nil, fmt.Errorf("the handler takes a %v, which is no pointer: ExampleObject is required", t.Type)
	}
	return reflect.New(t.Type.Elem()).Interface().(runtime.Object), nil
}

// CheckShared returns an error if a handler of this type could not be called with what it shares
// with others: they all see objects of the type of the example, or else of Unstructured.
func (t Taken) CheckShared(given runtime.Object, transforms bool) error {
	if given == nil {
		given = &unstructured.Unstructured{}
	}
	if _, err := t.Example(given, transforms); err != nil {
		return fmt.Errorf("%w, for all handlers", err)
	}
	return nil
}
