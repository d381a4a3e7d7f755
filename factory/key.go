package factory

import (
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/registry"
)

// Key is what tells informers of a factory apart. It is made by NewKey, and
// comparable: same key, same informer.
type Key struct {
	Resource schema.GroupVersionResource
	// The selectors are normalised.
	LabelSelector string
	FieldSelector string
	Namespace     string
	Shard         informer.Shard
	Cluster       string
	Variant       string
	InformerType  InformerType
}

// NewKey returns the key of the informer that a factory has for resource and
// opts. The error is a *RequestError: a resource without name or version, a
// selector that does not parse, a Shard that makes no sense, an InformerType that does not exist.
func NewKey(resource schema.GroupVersionResource, opts InformerOptions) (Key, error) {
	k := Key{Resource: resource, Namespace: opts.Namespace, Shard: opts.Shard, Cluster: opts.Cluster, Variant: opts.Variant, InformerType: opts.InformerType}
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
	if err := k.Shard.Validate(); err != nil {
		return invalid(err)
	}
	if k.Shard.IsAll() {
		k.Shard = informer.Shard{} // whatever its Key
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
	for _, p := range k.restrictions() {
		b.WriteString(", " + p.name + " " + p.value)
	}
	b.WriteString(", " + k.kind())
	return b.String()
}

// kind is the type of the informer and, if it has one, its Variant: "dynamic/index".
func (k Key) kind() string {
	if k.Variant == "" {
		return k.InformerType.String()
	}
	return k.InformerType.String() + "/" + k.Variant
}

// Labels returns the labels of the informer of the key. Two keys have different labels: Informer is
// the InformerType and the Variant, and in brackets whatever restricts the informer to some of the
// objects of its resource, for instance "dynamic", "dynamic/index" or "dynamic (namespace shop,
// labels app=web)". Metrics leave the brackets out.
func (k Key) Labels() registry.Labels {
	l := registry.Labels{Cluster: k.Cluster, Group: k.Resource.Group, Version: k.Resource.Version, Resource: k.Resource.Resource, Informer: k.kind()}
	k.Cluster = ""
	var restrictions []string
	for _, p := range k.restrictions() {
		restrictions = append(restrictions, p.name+" "+p.value)
	}
	if len(restrictions) > 0 {
		l.Informer += " (" + strings.Join(restrictions, ", ") + ")"
	}
	return l
}

// shardText writes a shard in less than its String: "uid 0000000000000000-7fffffffffffffff".
func shardText(s informer.Shard) string {
	if s.IsAll() {
		return ""
	}
	return fmt.Sprintf("%s %016x-%016x", strings.TrimPrefix(string(s.Key), "object.metadata."), s.Start, s.End-1)
}

type restriction struct{ name, value string }

// restrictions are the parts of the key that restrict the informer to some of the objects of the
// resource.
func (k Key) restrictions() (all []restriction) {
	for _, r := range [...]restriction{
		{"namespace", k.Namespace},
		{"cluster", k.Cluster},
		{"labels", k.LabelSelector},
		{"fields", k.FieldSelector},
		{"shard", shardText(k.Shard)},
	} {
		if r.value != "" {
			all = append(all, r)
		}
	}
	return all
}
