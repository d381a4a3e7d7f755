package e2e

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/e2e/cluster"
	"github.com/rvinformer/informer/factory"
	"github.com/rvinformer/informer/fleet"
)

// servedSoon bounds each step. When another test defines resources of the same server, the fleet
// puts its next discovery off, by up to 30 s each time.
const servedSoon = 4 * time.Minute

// A fleet follows everything that a cluster serves. A custom resource is defined, gets another
// version, which takes the place of the first, and is deleted with its objects.
func TestFleetFollowsDefinition(t *testing.T) {
	t.Parallel()
	ctx := testContext(t)
	c := usual.Get(t)
	pods := newPods(ctx, t, c, 20)
	client, err := apiextensions.NewForConfig(c.Config())
	require.NoError(t, err)
	objects, err := dynamic.NewForConfig(c.Config())
	require.NoError(t, err)

	b := &believed{objects: map[string]map[string]string{}}
	informers := factory.New()
	f, err := fleet.New(fleet.Config{Groups: []fleet.Group{{Except: []string{"events", "events.events.k8s.io"}}}, Configure: b.configure, Factory: informers})
	require.NoError(t, err)
	require.NoError(t, f.Add("east", c.Config()))
	running, stop := context.WithCancel(ctx)
	var fleetRuns sync.WaitGroup
	fleetRuns.Go(func() { f.Run(running) })
	defer fleetRuns.Wait()
	defer stop()
	require.NoError(t, f.WaitForSync(ctx))
	now, _ := f.Cluster("east")
	require.Equal(t, fleet.ClusterKnown, now.State)
	require.Greater(t, now.Informers, 30, "every server has so many")
	known := versions(ctx, t, pods)
	require.Eventually(t, func() bool { return len(b.of("v1/pods", known)) == len(known) }, servedSoon, 50*time.Millisecond)

	definitions := client.ApiextensionsV1().CustomResourceDefinitions()
	definition := gadgetDefinition()
	_, err = definitions.Create(ctx, definition, metav1.CreateOptions{})
	require.NoError(t, err)
	defer func() { _ = definitions.Delete(context.WithoutCancel(ctx), definition.Name, metav1.DeleteOptions{}) }()
	v1, v2 := schema.GroupVersionResource{Group: "fleet.example.com", Version: "v1", Resource: "gadgets"}, schema.GroupVersionResource{Group: "fleet.example.com", Version: "v2", Resource: "gadgets"}
	namespace, err := c.CreateNamespace(ctx, "gadgets")
	require.NoError(t, err)
	gadget := func(r schema.GroupVersionResource, name string) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{"apiVersion": r.GroupVersion().String(), "kind": "Gadget", "metadata": map[string]any{"name": name}}}
	}
	create := func(r schema.GroupVersionResource, name string) {
		require.EventuallyWithT(t, func(t *assert.CollectT) {
			_, err := objects.Resource(r).Namespace(namespace).Create(ctx, gadget(r, name), metav1.CreateOptions{})
			require.True(t, err == nil || apierrors.IsAlreadyExists(err), "%v", err)
		}, servedSoon, 100*time.Millisecond)
	}
	has := func(version string, names ...string) {
		t.Helper()
		require.EventuallyWithT(t, func(t *assert.CollectT) {
			require.Equal(t, len(names), b.count("gadgets"))
			for _, name := range names {
				require.Equal(t, version, b.version("gadgets", namespace+"/"+name))
			}
		}, servedSoon, 100*time.Millisecond)
	}
	create(v1, "a")
	create(v1, "b")
	has("v1", "a", "b")

	// v2 is served beside v1, and preferred.
	update := func(change func(*apiextensionsv1.CustomResourceDefinition)) {
		require.EventuallyWithT(t, func(t *assert.CollectT) {
			current, err := definitions.Get(ctx, definition.Name, metav1.GetOptions{})
			require.NoError(t, err)
			change(current)
			_, err = definitions.Update(ctx, current, metav1.UpdateOptions{})
			require.NoError(t, err)
		}, servedSoon, 100*time.Millisecond)
	}
	update(func(d *apiextensionsv1.CustomResourceDefinition) {
		second := *d.Spec.Versions[0].DeepCopy()
		second.Name, second.Storage = "v2", false
		d.Spec.Versions = append(d.Spec.Versions, second)
	})
	has("v2", "a", "b")

	// v1 is stored no more, and then served no more; v2 is, as in a migration.
	update(func(d *apiextensionsv1.CustomResourceDefinition) {
		d.Spec.Versions[0].Storage, d.Spec.Versions[1].Storage = false, true
	})
	update(func(d *apiextensionsv1.CustomResourceDefinition) { d.Spec.Versions[0].Served = false })
	create(v2, "c")
	require.NoError(t, objects.Resource(v2).Namespace(namespace).Delete(ctx, "a", metav1.DeleteOptions{}))
	has("v2", "b", "c")

	// And back: the version that is followed is not served any more.
	update(func(d *apiextensionsv1.CustomResourceDefinition) {
		d.Spec.Versions[0].Served, d.Spec.Versions[0].Storage = true, true
		d.Spec.Versions[1].Served, d.Spec.Versions[1].Storage = false, false
	})
	has("v1", "b", "c")

	// Other tests define resources of the same server, and delete them, at any time: the informers
	// of gadgets alone say whether theirs has ended.
	followed := func() bool {
		return slices.ContainsFunc(informers.Statuses(), func(s factory.Status) bool { return s.Key.Resource.Group == definition.Spec.Group })
	}
	require.True(t, followed())
	require.NoError(t, definitions.Delete(ctx, definition.Name, metav1.DeleteOptions{}))
	has("")
	require.Eventually(t, func() bool { return !followed() }, servedSoon, 100*time.Millisecond)

	<-f.Remove("east")
	require.NoError(t, b.wrong())
	require.Len(t, b.of("v1/pods", known), len(known), "nothing is told deleted")
}

func gadgetDefinition() *apiextensionsv1.CustomResourceDefinition {
	preserve := true
	return &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "gadgets.fleet.example.com"},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: "fleet.example.com",
			Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: "gadgets", Singular: "gadget", Kind: "Gadget", ListKind: "GadgetList"},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: "v1", Served: true, Storage: true,
				Schema: &apiextensionsv1.CustomResourceValidation{
					OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: &preserve},
				},
			}},
		},
	}
}

// believed is what handlers of a fleet believe: the version in which they were told each object, by
// resource.
type believed struct {
	mu      sync.Mutex
	objects map[string]map[string]string
	err     error
}

func (b *believed) configure(_ context.Context, target fleet.Target) (informer.InformerConfig, error) {
	return informer.InformerConfig{ExampleObject: &informer.RawObject{}, BatchHandler: informer.BatchHandlerFunc(func(_ context.Context, events []informer.Event) error {
		b.mu.Lock()
		defer b.mu.Unlock()
		at := target.Resource.Resource
		if target.Resource.Group == "" {
			at = "v1/" + at
		}
		if b.objects[at] == nil {
			b.objects[at] = map[string]string{}
		}
		for _, e := range events {
			_, known := b.objects[at][e.Key]
			switch {
			case e.Type != informer.Deleted:
				b.objects[at][e.Key] = target.Resource.Version
			case !known:
				b.err = fmt.Errorf("%v: %s is told deleted, and was not there", target, e.Key)
			default:
				delete(b.objects[at], e.Key)
			}
		}
		return nil
	})}, nil
}

// of returns the keys of known that are believed of a resource.
func (b *believed) of(resource string, known map[string]cluster.Version) (keys []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for key := range known {
		if b.objects[resource][key] != "" {
			keys = append(keys, key)
		}
	}
	return keys
}

func (b *believed) count(resource string) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.objects[resource])
}

func (b *believed) version(resource, key string) string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.objects[resource][key]
}

func (b *believed) wrong() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.err
}
