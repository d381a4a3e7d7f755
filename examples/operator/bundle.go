package main

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
)

// Bundle asks for one ConfigMap that has the data of several.
type Bundle struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   BundleSpec   `json:"spec"`
	Status BundleStatus `json:"status,omitempty"`
}

// BundleSpec is what a user asks for.
type BundleSpec struct {
	// Parts are names of ConfigMaps. Of two that have a key, the later one wins.
	Parts []string `json:"parts"`
}

// BundleStatus is what the operator has seen and done.
type BundleStatus struct {
	// ObservedGeneration is the generation of the spec that the status is of.
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// Keys is how many keys the result has.
	Keys int `json:"keys,omitempty"`
	// Missing are the parts that do not exist.
	Missing []string `json:"missing,omitempty"`
	// Problem is why there is no result, or an incomplete one.
	Problem string `json:"problem,omitempty"`
}

// BundleList is a list of bundles.
type BundleList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []Bundle `json:"items"`
}

// DeepCopyObject implements runtime.Object.
func (b *Bundle) DeepCopyObject() runtime.Object { return b.deepCopy() }

func (b *Bundle) deepCopy() *Bundle {
	copied := *b
	b.ObjectMeta.DeepCopyInto(&copied.ObjectMeta)
	copied.Spec.Parts = slices.Clone(b.Spec.Parts)
	copied.Status.Missing = slices.Clone(b.Status.Missing)
	return &copied
}

// DeepCopyObject implements runtime.Object.
func (l *BundleList) DeepCopyObject() runtime.Object {
	copied := *l
	l.ListMeta.DeepCopyInto(&copied.ListMeta)
	copied.Items = slices.Clone(l.Items)
	for i := range copied.Items {
		copied.Items[i] = *l.Items[i].deepCopy()
	}
	return &copied
}

// newScheme returns the kinds that the operator reads and writes.
func newScheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	if err := clientgoscheme.AddToScheme(scheme); err != nil {
		return nil, err
	}
	version := schema.GroupVersion{Group: "example.rvinformer.dev", Version: "v1"}
	scheme.AddKnownTypes(version, &Bundle{}, &BundleList{})
	metav1.AddToGroupVersion(scheme, version)
	return scheme, nil
}
