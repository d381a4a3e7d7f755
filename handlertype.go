package informer

import (
	"fmt"
	"reflect"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// objectType is the type of the objects that a handler takes. The zero value is any.
type objectType struct {
	goType  reflect.Type
	accepts func(obj interface{}) bool
}

func objectTypeOf[T runtime.Object]() objectType {
	return objectType{reflect.TypeFor[T](), func(obj interface{}) bool {
		_, ok := obj.(T)
		return ok
	}}
}

// taker is a handler that takes objects of one type.
type taker interface{ takes() objectType }

// takenBy is the type of the objects that a handler takes.
func takenBy(handler interface{}) objectType {
	if t, ok := handler.(taker); ok {
		return t.takes()
	}
	return objectType{}
}

// example is the example object of an informer for a handler of this type, which is to be
// another one than is given if none is. The error says that the handler could not be called.
// A Transform may change the type: what it makes is checked one by one.
func (t objectType) example(given runtime.Object, transforms bool) (runtime.Object, error) {
	switch {
	case t.goType == nil, t.goType.Kind() == reflect.Interface, transforms:
		return given, nil
	case given != nil && reflect.TypeOf(given) != t.goType:
		return nil, fmt.Errorf("the handler takes a %v, and ExampleObject is a %T", t.goType, given)
	case given != nil:
		return given, nil
	case t.goType.Kind() != reflect.Pointer:
		return nil, fmt.Errorf("the handler takes a %v, which is no pointer: ExampleObject is required", t.goType)
	}
	return reflect.New(t.goType.Elem()).Interface().(runtime.Object), nil
}

// sharedExample is example for a handler that shares what is read with others: they all see
// objects of one type.
func (t objectType) sharedExample(given runtime.Object, transforms bool) (runtime.Object, error) {
	shared := given
	if shared == nil {
		shared = &unstructured.Unstructured{}
	}
	if _, err := t.example(shared, transforms); err != nil {
		return nil, fmt.Errorf("%w, for all handlers", err)
	}
	return given, nil
}
