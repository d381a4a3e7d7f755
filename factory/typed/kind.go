package typed

import (
	"reflect"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/rvinformer/informer/factory"
)

// kind is what tells the informers of one factory apart: the Go type of their objects
// and, where objects of one Go type may be of any kind, their kind.
type kind struct {
	goType reflect.Type
	gvk    schema.GroupVersionKind
}

func kindOf(obj runtime.Object) kind {
	k := kind{goType: reflect.TypeOf(obj)}
	if typeOf(obj) != factory.StandardInformer {
		k.gvk = obj.GetObjectKind().GroupVersionKind()
	}
	return k
}

// typeOf is the type of an informer of such objects.
func typeOf(obj runtime.Object) factory.InformerType {
	switch obj.(type) {
	case runtime.Unstructured:
		return factory.DynamicInformer
	case *metav1.PartialObjectMetadata:
		return factory.MetadataInformer
	}
	return factory.StandardInformer
}

// resourceOf names the resource of such objects. Where neither the scheme nor the
// object knows it, that is the Go type: it has no namesake.
func resourceOf(obj runtime.Object) schema.GroupVersionResource {
	gvk := obj.GetObjectKind().GroupVersionKind()
	if known, _, err := scheme.Scheme.ObjectKinds(obj); err == nil {
		gvk = known[0]
	}
	if gvk.Kind != "" && gvk.Version != "" {
		resource, _ := meta.UnsafeGuessKindToResource(gvk)
		return resource
	}
	goType := reflect.TypeOf(obj)
	if goType.Kind() == reflect.Pointer {
		goType = goType.Elem()
	}
	return schema.GroupVersionResource{Group: goType.PkgPath(), Version: "type", Resource: goType.Name()}
}

// types are the Go types of client-go's scheme by resource.
var types = sync.OnceValue(func() map[schema.GroupVersionResource]reflect.Type {
	types := map[schema.GroupVersionResource]reflect.Type{}
	for gvk, goType := range scheme.Scheme.AllKnownTypes() {
		resource, _ := meta.UnsafeGuessKindToResource(gvk)
		types[resource] = goType
	}
	return types
})

// exampleOf returns an empty object of a resource, nil if the scheme has none.
func exampleOf(resource schema.GroupVersionResource) runtime.Object {
	goType := types()[resource]
	if goType == nil {
		return nil
	}
	example, _ := reflect.New(goType).Interface().(runtime.Object)
	return example
}
