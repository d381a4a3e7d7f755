package controllerruntime

import (
	"fmt"
	"reflect"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// form is how objects of a kind are read. Each form of a kind has informers of its own, as in
// controller-runtime.
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

// checkList returns the error of a kind that the scheme has no list for, as controller-runtime does. Such
// kinds are those of requests, as a Binding is: no server lists them.
func (f form) checkList(gvk schema.GroupVersionKind, scheme *runtime.Scheme) error {
	if f != typed {
		return nil
	}
	_, err := scheme.New(gvk.GroupVersion().WithKind(gvk.Kind + "List"))
	return err
}

// fields returns those of the fields to keep that objects of the form can have. The type of typed
// objects is checked by their informer.
func (f form) fields(keep []string) (has []string) {
	if f != metadataOnly || len(keep) == 0 {
		return keep
	}
	has = []string{"metadata.name"} // which stays anyway: no fields at all would mean that everything is kept
	for _, path := range keep {
		switch field, _, _ := strings.Cut(path, "."); field {
		case "apiVersion", "kind", "metadata":
			has = append(has, path)
		}
	}
	return has
}

// checkType says that an object read into is not of the cached type.
func checkType(cached reflect.Type, into runtime.Object) error {
	if asked := reflect.TypeOf(into); asked != cached {
		return fmt.Errorf("cache had type %v, but %v was asked for", cached, asked)
	}
	return nil
}
