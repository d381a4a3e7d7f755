package lists_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/informertest"
	"github.com/rvinformer/informer/tests/harness"
)

// The server has said with a 404 that a resource is gone. What comes back under its name may be of
// another kind, also with an empty list.
func TestKindIsForgottenAfterNotFound(t *testing.T) {
	gadgets := schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "gadgets"}
	of := func(kind string) informertest.Resource {
		return informertest.Resource{GroupVersionResource: gadgets, Kind: kind, Namespaced: true}
	}
	for name, c := range map[string]struct {
		mode    informer.ListMode
		dialect informertest.Dialect
	}{
		"paged":        {mode: informer.ListModePaged},
		"watch-list":   {mode: informer.ListModeWatchList},
		"paged sorted": {mode: informer.ListModePaged, dialect: informertest.SortingProxy()}, // the kind comes after the items
	} {
		mode := c.mode
		t.Run(name, func(t *testing.T) {
			options := informertest.Options{Resources: []informertest.Resource{of("Gadget")}, Dialect: c.dialect}
			harness.Bubble(t, options, func(t *testing.T, w *harness.World) {
				object := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "example.com/v1", "kind": "Gadget"}}
				object.SetNamespace("a")
				object.SetName("1")
				_, err := w.Create(gadgets, object)
				require.NoError(t, err)
				r := &harness.Recorder{}
				i := harness.Running(w, informer.InformerConfig{ListerWatcher: w.Factory().ForResource("", gadgets), Handler: r, ListMode: mode})
				harness.Sleep(20 * time.Second)
				require.True(t, i.HasSynced())
				w.RemoveResource(gadgets)
				w.CloseClientConnections()
				harness.Sleep(5 * time.Minute)
				w.AddResource(of("Gizmo"))
				harness.Sleep(10 * time.Minute)
				require.NoError(t, i.Status().LastError)
				require.Empty(t, r.State())
				object.SetKind("Gizmo")
				created, err := w.Create(gadgets, object)
				require.NoError(t, err)
				harness.Sleep(time.Minute)
				w.Compact()
				w.CloseClientConnections()
				harness.Sleep(10 * time.Minute)
				require.NoError(t, i.Status().LastError)
				require.Equal(t, map[string]string{"a/1": created.GetResourceVersion()}, r.State())
			})
		})
	}
}
