package informertest

import (
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
)

// Resource describes one resource that a [Server] serves.
type Resource struct {
	// GroupVersionResource says where it is served; Group is empty for the core group. Version and
	// Resource are required.
	GroupVersionResource schema.GroupVersionResource
	// Kind of its objects; required.
	Kind     string
	ListKind string // default: Kind + "List"
	// Namespaced tells that every object is in a namespace; otherwise none is.
	Namespaced bool
	// Custom says that the resource is declared by a CustomResourceDefinition. A kube-apiserver
	// writes the lists of such resources in another order than those of its built-in types: keys
	// sorted, hence the list's metadata after its items, and every item with its own kind and
	// apiVersion. And it has no protobuf of them, only of their metadata. Other resources have it
	// if client-go/kubernetes/scheme knows their kind.
	Custom bool

	versions versions // of the store that serves it
}

// DefaultResources returns what a [Server] serves when [Options] name no resources: v1 pods,
// configmaps, secrets, namespaces and nodes (the last two cluster scoped), apps/v1 deployments, and
// the custom resource example.com/v1 widgets. The slice is the caller's.
func DefaultResources() []Resource {
	core := schema.GroupVersion{Version: "v1"}
	apps := schema.GroupVersion{Group: "apps", Version: "v1"}
	example := schema.GroupVersion{Group: "example.com", Version: "v1"}
	return []Resource{
		{GroupVersionResource: core.WithResource("pods"), Kind: "Pod", Namespaced: true},
		{GroupVersionResource: core.WithResource("configmaps"), Kind: "ConfigMap", Namespaced: true},
		{GroupVersionResource: core.WithResource("secrets"), Kind: "Secret", Namespaced: true},
		{GroupVersionResource: core.WithResource("namespaces"), Kind: "Namespace"},
		{GroupVersionResource: core.WithResource("nodes"), Kind: "Node"},
		{GroupVersionResource: apps.WithResource("deployments"), Kind: "Deployment", Namespaced: true},
		{GroupVersionResource: example.WithResource("widgets"), Kind: "Widget", Namespaced: true, Custom: true},
	}
}

// complete checks the description and fills in its defaults.
func (r Resource) complete() (Resource, error) {
	var missing []string
	if r.GroupVersionResource.Version == "" {
		missing = append(missing, "a version")
	}
	if r.GroupVersionResource.Resource == "" {
		missing = append(missing, "a resource name")
	}
	if r.Kind == "" {
		missing = append(missing, "a kind")
	}
	if len(missing) > 0 {
		return r, fmt.Errorf("informertest: resource %q lacks %s", r.GroupVersionResource, strings.Join(missing, " and "))
	}
	if strings.Contains(r.GroupVersionResource.Resource, "/") {
		return r, errors.New("informertest: a resource name holds no slash: " + r.GroupVersionResource.Resource)
	}
	if r.ListKind == "" {
		r.ListKind = r.Kind + "List"
	}
	return r, nil
}

func (r Resource) gvk() schema.GroupVersionKind {
	return r.GroupVersionResource.GroupVersion().WithKind(r.Kind)
}

// hasProtobuf reports whether its objects can be written in protobuf, for which their Go type must
// be known.
func (r Resource) hasProtobuf() bool { return !r.Custom && scheme.Scheme.Recognizes(r.gvk()) }

func (r Resource) apiVersion() string { return r.GroupVersionResource.GroupVersion().String() }

func (r Resource) groupResource() schema.GroupResource {
	return r.GroupVersionResource.GroupResource()
}

// key is the place of an object in the order of a list, which is that of the paths under which etcd
// keeps objects.
func (r Resource) key(namespace, name string) string {
	if r.Namespaced {
		return namespace + "/" + name
	}
	return name
}

// prefix is what all keys of a namespace begin with; the empty namespace means every one.
func (r Resource) prefix(namespace string) string {
	if r.Namespaced && namespace != "" {
		return namespace + "/"
	}
	return ""
}
