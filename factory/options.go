package factory

import (
	"fmt"

	"github.com/rvinformer/informer"
)

// InformerType says what an informer hands out and keeps. Which one it really is
// depends on what newFunc returns; informers of two types are never the same.
type InformerType int

const (
	// StandardInformer: typed objects.
	StandardInformer InformerType = iota
	// DynamicInformer: *unstructured.Unstructured.
	DynamicInformer
	// MetadataInformer: *metav1.PartialObjectMetadata.
	MetadataInformer
	// ResourceVersionInformer: an informer.ResourceVersionInformer, which keeps no
	// objects. It is asked for with AcquireResourceVersion.
	ResourceVersionInformer
	// SharedResourceVersionInformer: an informer.SharedResourceVersionInformer, which
	// keeps no objects either and has any number of handlers. It is asked for with
	// ResourceVersionInformerFor and AcquireSharedResourceVersion.
	SharedResourceVersionInformer
)

func (t InformerType) String() string {
	switch t {
	case StandardInformer:
		return "standard"
	case DynamicInformer:
		return "dynamic"
	case MetadataInformer:
		return "metadata"
	case ResourceVersionInformer:
		return "resource-version"
	case SharedResourceVersionInformer:
		return "shared resource-version"
	}
	return fmt.Sprintf("InformerType(%d)", int(t))
}

// InformerOptions say which objects of a resource an informer is about, and of
// what kind it is. The zero value is a standard informer of all of them.
//
// They tell informers apart. To list and watch accordingly is up to newFunc, as is
// the use of ObjectTransform.
type InformerOptions struct {
	// LabelSelector and FieldSelector restrict the objects, in the syntax of the
	// Kubernetes API; empty: all. How they are written does not matter: "b=2,a in (1)"
	// is "a=1,b=2".
	LabelSelector string
	FieldSelector string
	// Namespace is the only one; empty: all, or a resource without namespaces.
	Namespace string
	// Shard is the only part of them; the zero value: all. A SharedResourceVersionInformer whose
	// configuration has no Shard follows it. If only the configuration has one, that counts.
	Shard informer.Shard
	// Cluster is the name of the cluster, any text; empty is a cluster as well.
	Cluster string
	// ObjectTransform is what newFunc gives to SetTransform; nil: nothing. The factory
	// never calls it. Of a SharedResourceVersionInformer, which has no newFunc, it is the
	// Transform, unless the configuration has one.
	ObjectTransform func(obj any) (any, error)
	// TransformName is the identity of ObjectTransform, since functions have none: two
	// transforms are the same if they have the same name, and one that has none is the
	// same as no other. It has no meaning without ObjectTransform.
	TransformName string
	// Variant tells informers apart that nothing else here tells apart: any text that
	// the users of one agree on. Empty is a variant as well, the default.
	Variant string
	// InformerType is the kind of informer.
	InformerType InformerType
}
