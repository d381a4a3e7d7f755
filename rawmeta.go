package informer

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// metadata returns the other metadata.
func (o *RawObject) metadata() *metav1.ObjectMeta {
	if m := o.decoded.Load(); m != nil {
		return m
	}
	var obj metav1.PartialObjectMetadata
	if len(o.encoding) > 0 && o.decode(&obj) != nil {
		obj = metav1.PartialObjectMetadata{}
	}
	o.decoded.Store(&obj.ObjectMeta)
	return &obj.ObjectMeta
}

// The other getters of metav1.Object. What they return belongs to the object.

func (o *RawObject) GetGenerateName() string            { return o.metadata().GetGenerateName() }
func (o *RawObject) GetGeneration() int64               { return o.metadata().GetGeneration() }
func (o *RawObject) GetSelfLink() string                { return o.metadata().GetSelfLink() }
func (o *RawObject) GetCreationTimestamp() metav1.Time  { return o.metadata().GetCreationTimestamp() }
func (o *RawObject) GetDeletionTimestamp() *metav1.Time { return o.metadata().GetDeletionTimestamp() }
func (o *RawObject) GetDeletionGracePeriodSeconds() *int64 {
	return o.metadata().GetDeletionGracePeriodSeconds()
}
func (o *RawObject) GetLabels() map[string]string      { return o.metadata().GetLabels() }
func (o *RawObject) GetAnnotations() map[string]string { return o.metadata().GetAnnotations() }
func (o *RawObject) GetFinalizers() []string           { return o.metadata().GetFinalizers() }
func (o *RawObject) GetOwnerReferences() []metav1.OwnerReference {
	return o.metadata().GetOwnerReferences()
}
func (o *RawObject) GetManagedFields() []metav1.ManagedFieldsEntry {
	return o.metadata().GetManagedFields()
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
	panic(fmt.Sprintf("RawObject %q can not be changed: decode it first", o.key))
}
