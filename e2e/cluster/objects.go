package cluster

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
)

// Objects are the objects of one resource in one namespace, as a test writes
// them and as the server has them.
type Objects struct {
	Namespace string
	Resource  schema.GroupVersionResource

	// Padding is how many bytes larger than needed the objects are that are
	// created from now on. Gzip saves a quarter of them.
	Padding int

	client   dynamic.ResourceInterface
	metadata metadata.ResourceInterface
	build    func(name string) *unstructured.Unstructured
}

func (c *Cluster) objects(namespace string, resource schema.GroupVersionResource, build func(string) *unstructured.Unstructured) (*Objects, error) {
	config := c.Config()
	config.WarningHandler = rest.NoWarnings{} // the sample server has one in each answer
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("client for %s: %w", resource.Resource, err)
	}
	// Versions is called often, over many objects; metadata alone is cheap.
	metadata, err := metadata.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("metadata client for %s: %w", resource.Resource, err)
	}
	return &Objects{
		Namespace: namespace,
		Resource:  resource,
		client:    client.Resource(resource).Namespace(namespace),
		metadata:  metadata.Resource(resource).Namespace(namespace),
		build:     build,
	}, nil
}

// Name of the i-th object that Fill creates. Names sort like their numbers, so
// that a test knows on which page of a list an object is.
func Name(i int) string { return fmt.Sprintf("object-%06d", i) }

// Fill creates n objects, side by side.
func (o *Objects) Fill(ctx context.Context, n int) error {
	return inParallel(ctx, n, func(ctx context.Context, i int) error {
		return o.Create(ctx, Name(i))
	})
}

// Create creates one object.
func (o *Objects) Create(ctx context.Context, name string) error {
	object := o.build(name)
	if o.Padding > 0 {
		padding := make([]byte, o.Padding)
		_, _ = rand.Read(padding) // it never fails
		object.SetAnnotations(map[string]string{"example.com/padding": base64.StdEncoding.EncodeToString(padding)[:o.Padding]})
	}
	if _, err := o.client.Create(ctx, object, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("creating %s %s/%s: %w", o.Resource.Resource, o.Namespace, name, err)
	}
	return nil
}

// Update changes one object: its label "step" becomes the given one.
func (o *Objects) Update(ctx context.Context, name, step string) error {
	patch := fmt.Appendf(nil, `{"metadata":{"labels":{"step":%q}}}`, step)
	if _, err := o.client.Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		return fmt.Errorf("updating %s %s/%s: %w", o.Resource.Resource, o.Namespace, name, err)
	}
	return nil
}

// UpdateAll changes the objects of these names as Update does, side by side.
func (o *Objects) UpdateAll(ctx context.Context, names []string, step string) error {
	return inParallel(ctx, len(names), func(ctx context.Context, i int) error {
		return o.Update(ctx, names[i], step)
	})
}

// Delete deletes one object, which is gone when Delete returns.
func (o *Objects) Delete(ctx context.Context, name string) error {
	var now int64
	if err := o.client.Delete(ctx, name, metav1.DeleteOptions{GracePeriodSeconds: &now}); err != nil {
		return fmt.Errorf("deleting %s %s/%s: %w", o.Resource.Resource, o.Namespace, name, err)
	}
	return nil
}

// Version tells one state of an object from every other.
type Version struct {
	UID             types.UID
	ResourceVersion string
}

// Versions asks the server for all objects, and returns their versions by key
// ("namespace/name") at one moment that is not before the call.
func (o *Objects) Versions(ctx context.Context) (map[string]Version, error) {
	list, err := o.metadata.List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("listing %s in %s: %w", o.Resource.Resource, o.Namespace, err)
	}
	versions := make(map[string]Version, len(list.Items))
	for i := range list.Items {
		item := &list.Items[i]
		versions[item.GetNamespace()+"/"+item.GetName()] = Version{
			UID:             item.GetUID(),
			ResourceVersion: item.GetResourceVersion(),
		}
	}
	return versions, nil
}
