package controllerruntime

import (
	"fmt"
	"reflect"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// form is how objects of a kind are read. Each form of a kind has informers of its own, as in controller-runtime.
type form string

const (
	typed            form = "typed"
	unstructuredForm form = "unstructured"
	metadataOnly     form = "metadata"
)

// formOf returns the form of an object or a list.
func formOf(obj runtime.Object) form {
	switch obj.(type) {
	case runtime.Unstructured:
		return unstructuredForm
	case *metav1.PartialObjectMetadata, *metav1.PartialObjectMetadataList:
		return metadataOnly
	default:
		return typed
	}
}

// example returns an empty object of a kind. The error says that the scheme does not have it.
func (f form) example(gvk schema.GroupVersionKind, scheme *runtime.Scheme) (runtime.Object, error) {
	var obj runtime.Object
	switch f {
	case unstructuredForm:
		obj = &unstructured.Unstructured{}
	case metadataOnly:
		obj = &metav1.PartialObjectMetadata{}
	default:
		var err error
		if obj, err = scheme.New(gvk); err != nil {
			return nil, err
		}
	}
	obj.GetObjectKind().SetGroupVersionKind(gvk)
	return obj, nil
}

// checkType says that an object read into is not of the cached type.
func checkType(cached reflect.Type, into runtime.Object) error {
	if asked := reflect.TypeOf(into); asked != cached {
		return fmt.Errorf("cache had type %v, but %v was asked for", cached, asked)
	}
	return nil
}
