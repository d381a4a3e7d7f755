package informer

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/rvinformer/informer/internal/engine/object"
)

// RawObject is an object as it came off the wire, not decoded. An informer whose
// ExampleObject is a *RawObject hands out nothing else; it needs a ListerWatcher
// of a DynamicListerWatcherFactory.
//
// It comes in JSON. It comes in protobuf where the rest.Config of the factory asks for that
// (ContentType or AcceptContentTypes) and the server has it, unless Keep or Prune need JSON.
// ContentType says what it is. The informer never chooses protobuf by itself, because the handler
// gets the bytes as they come.
//
// A RawObject is lent: it and its bytes are valid until the handler returns. A handler that
// keeps it longer keeps what DeepCopyObject returns. A test that is built with
// -tags wirepoison finds a handler that does not: the bytes are overwritten when
// the loan ends.
//
// It is a runtime.Object and a metav1.Object. Name, namespace, UID and resource version are at
// hand, and Field, Labels and OwnerReferences find what else is needed without decoding. The first
// call of another getter of metav1.Object decodes all metadata, and finds nothing in an object
// whose metadata cannot be decoded. It cannot be changed: the setters of metav1.Object panic.
type RawObject object.Raw

var (
	_ runtime.Object = &RawObject{}
	_ metav1.Object  = &RawObject{}
)

// publicRaw says how users see an object.Raw. The conversions cost nothing.
var publicRaw = object.Public{
	HandOver: func(raw *object.Raw) runtime.Object { return (*RawObject)(raw) },
	TakeBack: func(obj interface{}) (*object.Raw, bool) {
		o, ok := obj.(*RawObject)
		return o.raw(), ok
	},
}

func (o *RawObject) raw() *object.Raw { return (*object.Raw)(o) }

// Bytes returns the object: in JSON its text, in protobuf its message in the
// envelope of Kubernetes ("k8s\0" and runtime.Unknown), as the API machinery's
// serializers take them. It says its kind and apiVersion, also where a list had
// left that out. The pruned fields are not in it. It must not be written to.
func (o *RawObject) Bytes() []byte { return o.raw().Bytes() }

// ContentType returns what Bytes are: application/json or
// application/vnd.kubernetes.protobuf.
func (o *RawObject) ContentType() string { return o.raw().ContentType() }

// Decode decodes the object into an empty object of its type, into a
// *metav1.PartialObjectMetadata, or, from JSON, into an
// *unstructured.Unstructured. Numbers and unknown fields are treated as client-go
// treats them. The error is that of the decoder, or says that into cannot be
// decoded from protobuf.
func (o *RawObject) Decode(into runtime.Object) error { return o.raw().DecodeFor(into) }

// Unstructured decodes the object to a map. Only JSON can be: the error for
// protobuf says so.
func (o *RawObject) Unstructured() (*unstructured.Unstructured, error) {
	obj := &unstructured.Unstructured{}
	if err := o.Decode(obj); err != nil {
		return nil, err
	}
	return obj, nil
}

// GetObjectKind returns the kind of the object.
func (o *RawObject) GetObjectKind() schema.ObjectKind { return o.raw().Kind() }

// DeepCopyObject returns a RawObject whose bytes are its own, to keep.
func (o *RawObject) DeepCopyObject() runtime.Object { return (*RawObject)(o.raw().Copy()) }

// GetNamespace returns the namespace, empty for a cluster-scoped object.
func (o *RawObject) GetNamespace() string { return o.raw().Name().Namespace }

// GetName returns the name.
func (o *RawObject) GetName() string { return o.raw().Name().Name }

// GetUID returns the UID.
func (o *RawObject) GetUID() types.UID { return o.raw().Version().UID }

// GetResourceVersion returns the resource version.
func (o *RawObject) GetResourceVersion() string { return o.raw().Version().ResourceVersion }

// The other getters of metav1.Object. What they return belongs to the object, but for labels and
// owner references.

func (o *RawObject) GetGenerateName() string { return o.raw().Metadata().GetGenerateName() }
func (o *RawObject) GetGeneration() int64    { return o.raw().Metadata().GetGeneration() }
func (o *RawObject) GetSelfLink() string     { return o.raw().Metadata().GetSelfLink() }
func (o *RawObject) GetCreationTimestamp() metav1.Time {
	return o.raw().Metadata().GetCreationTimestamp()
}
func (o *RawObject) GetDeletionTimestamp() *metav1.Time {
	return o.raw().Metadata().GetDeletionTimestamp()
}
func (o *RawObject) GetDeletionGracePeriodSeconds() *int64 {
	return o.raw().Metadata().GetDeletionGracePeriodSeconds()
}
func (o *RawObject) GetLabels() map[string]string      { return o.raw().Labels() }
func (o *RawObject) GetAnnotations() map[string]string { return o.raw().Metadata().GetAnnotations() }
func (o *RawObject) GetFinalizers() []string           { return o.raw().Metadata().GetFinalizers() }
func (o *RawObject) GetOwnerReferences() []metav1.OwnerReference {
	return o.raw().Owners()
}
func (o *RawObject) GetManagedFields() []metav1.ManagedFieldsEntry {
	return o.raw().Metadata().GetManagedFields()
}

// The setters of metav1.Object panic.

func (o *RawObject) SetNamespace(string)                          { o.readOnly() }
func (o *RawObject) SetName(string)                               { o.readOnly() }
func (o *RawObject) SetGenerateName(string)                       { o.readOnly() }
func (o *RawObject) SetUID(types.UID)                             { o.readOnly() }
func (o *RawObject) SetResourceVersion(string)                    { o.readOnly() }
func (o *RawObject) SetGeneration(int64)                          { o.readOnly() }
func (o *RawObject) SetSelfLink(string)                           { o.readOnly() }
func (o *RawObject) SetCreationTimestamp(metav1.Time)             { o.readOnly() }
func (o *RawObject) SetDeletionTimestamp(*metav1.Time)            { o.readOnly() }
func (o *RawObject) SetDeletionGracePeriodSeconds(*int64)         { o.readOnly() }
func (o *RawObject) SetLabels(map[string]string)                  { o.readOnly() }
func (o *RawObject) SetAnnotations(map[string]string)             { o.readOnly() }
func (o *RawObject) SetFinalizers([]string)                       { o.readOnly() }
func (o *RawObject) SetOwnerReferences([]metav1.OwnerReference)   { o.readOnly() }
func (o *RawObject) SetManagedFields([]metav1.ManagedFieldsEntry) { o.readOnly() }
func (o *RawObject) readOnly() {
	panic(fmt.Sprintf("RawObject %q cannot be changed: decode it first", o.raw().Key()))
}
