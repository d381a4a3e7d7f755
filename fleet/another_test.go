package fleet_test

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/fleet"
	"github.com/rvinformer/informer/informertest"
)

var namespaces = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}

// identified is a server of a cluster of its own, which serves resources.
func identified(t *testing.T, resources ...schema.GroupVersionResource) *informertest.Server {
	served := []informertest.Resource{{GroupVersionResource: namespaces, Kind: "Namespace"}}
	for _, r := range resources {
		served = append(served, informertest.Resource{GroupVersionResource: r, Kind: kinds[r.Resource], Namespaced: true})
	}
	s := serve(t, informertest.Options{Resources: served})
	kubeSystem(t, s)
	return s
}

// Another cluster is at the address when the next process begins. It does not serve a resource, and
// that says nothing about the objects of the cluster before: nothing is deleted, and the reason is shown.
func TestNothingIsGoneFromAnotherCluster(t *testing.T) {
	bubble(t, func(t *testing.T) {
		east, other := identified(t, pods, widgets), identified(t, pods)
		create(t, east, pods, "a")
		create(t, east, widgets, "a", "b")
		create(t, other, pods, "c")
		m, folder := newMirror(), t.TempDir()
		begin := func(at *informertest.Server) (f *fleet.Fleet, stop func()) {
			f = newFleet(t, m, fleet.Config{
				Groups: []fleet.Group{{Resources: []string{"pods", "widgets"}}},
				Known: func(context.Context, fleet.Unit) ([]schema.GroupVersionResource, error) {
					return []schema.GroupVersionResource{pods, widgets}, nil
				},
				Configure: func(ctx context.Context, target fleet.Target) (informer.InformerConfig, error) {
					config, err := m.seeded(ctx, target)
					config.Checkpoint = informer.FileCheckpoint(filepath.Join(folder, target.Resource.Resource))
					return config, err
				},
			})
			require.NoError(t, f.Add("east", at.Config()))
			return f, start(t, f.Run)
		}
		_, stop := begin(east)
		time.Sleep(2 * time.Minute)
		stop()
		m.requireRight(t, "east", east, widgets)

		f, stop := begin(other)
		time.Sleep(time.Hour)
		m.requireRight(t, "east", east, widgets)
		m.requireRight(t, "east", east, pods)
		for _, i := range f.Registry().Informers() {
			if i.Labels().Resource != "" {
				require.ErrorIs(t, i.Status().CheckpointError, informer.ErrCheckpointSource, i.Labels().Resource)
			}
		}
		stop()

		_, stop = begin(east)
		east.RemoveResource(widgets)
		time.Sleep(time.Hour)
		require.Empty(t, m.keys("east", widgets), "it is the same cluster")
		stop()
	})
}

// Another cluster takes the place of the one that is followed. A resource that it does not serve, or
// serves as another kind, is not gone.
func TestNothingIsGoneWhileAnotherClusterIsInThePlace(t *testing.T) {
	for name, serves := range map[string][]schema.GroupVersionResource{
		"nothing of the name": {pods, crds},
		"another kind":        {pods, crds, gadgets},
	} {
		bubbleRun(t, name, func(t *testing.T) {
			east, other := identified(t, pods, crds, gadgets), identified(t, serves...)
			create(t, east, pods, "a")
			create(t, east, gadgets, "a", "b")
			create(t, other, pods, "c")
			if len(serves) == 3 {
				other.RemoveResource(gadgets)
				other.AddResource(informertest.Resource{GroupVersionResource: gadgets, Kind: "Gizmo", Namespaced: true})
			}
			m := newMirror()
			f := newFleet(t, m, fleet.Config{Groups: []fleet.Group{{Resources: []string{"pods", "gadgets"}}}})
			follow(t, f, "east", east)
			time.Sleep(time.Minute)
			config := other.Config()
			config.Host = east.Config().Host
			require.NoError(t, f.Update("east", config))
			east.CloseClientConnections()
			time.Sleep(time.Hour)
			m.requireRight(t, "east", east, gadgets)
			m.requireRight(t, "east", other, pods)
			now, _ := f.Cluster("east")
			require.ErrorIs(t, now.LastError, informer.ErrClusterReplaced)

			require.NoError(t, f.Update("east", east.Config()))
			other.CloseClientConnections()
			time.Sleep(time.Hour)
			m.requireRight(t, "east", east, gadgets)
			m.requireRight(t, "east", east, pods)
			now, _ = f.Cluster("east")
			require.NoError(t, now.LastError)
		})
	}
}
