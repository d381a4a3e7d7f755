package factory

import (
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Key is what tells informers of a factory apart. It is made by NewKey, and
// comparable: same key, same informer.
type Key struct {
	Resource schema.GroupVersionResource
	// The selectors are normalised.
	LabelSelector string
	FieldSelector string
	Namespace     string
	Cluster       string
	Variant       string
	InformerType  InformerType
}

// NewKey returns the key of the informer that a factory has for resource and
// opts. The error is a *RequestError: a resource without name or version, a
// selector that does not parse, an InformerType that does not exist.
func NewKey(resource schema.GroupVersionResource, opts InformerOptions) (Key, error) {
	k := Key{Resource: resource, Namespace: opts.Namespace, Cluster: opts.Cluster, Variant: opts.Variant, InformerType: opts.InformerType}
	invalid := func(err error) (Key, error) {
		k.LabelSelector, k.FieldSelector = opts.LabelSelector, opts.FieldSelector
		return Key{}, &RequestError{Key: k, Err: err}
	}
	switch {
	case resource.Resource == "":
		return invalid(errors.New("the resource has no name"))
	case resource.Version == "":
		return invalid(errors.New("the resource has no version"))
	case opts.InformerType < StandardInformer || opts.InformerType > SharedResourceVersionInformer:
		return invalid(errors.New("there is no such InformerType"))
	}
	var err error
	if k.LabelSelector, err = normalLabels(opts.LabelSelector); err != nil {
		return invalid(fmt.Errorf("label selector %q: %w", opts.LabelSelector, err))
	}
	if k.FieldSelector, err = normalFields(opts.FieldSelector); err != nil {
		return invalid(fmt.Errorf("field selector %q: %w", opts.FieldSelector, err))
	}
	return k, nil
}

// String is for people: "apps/v1/deployments, namespace shop, cluster east, labels
// app=web, dynamic". What is not restricted is left out.
func (k Key) String() string {
	var b strings.Builder
	if k.Resource.Group != "" {
		b.WriteString(k.Resource.Group + "/")
	}
	b.WriteString(k.Resource.Version + "/" + k.Resource.Resource)
	for _, part := range []struct{ name, value string }{
		{"namespace", k.Namespace},
		{"cluster", k.Cluster},
		{"labels", k.LabelSelector},
		{"fields", k.FieldSelector},
		{"variant", k.Variant},
	} {
		if part.value != "" {
			b.WriteString(", " + part.name + " " + part.value)
		}
	}
	b.WriteString(", " + k.InformerType.String())
	return b.String()
}
