package checkpoints_test

import (
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/tools/cache"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/informertest"
	"github.com/rvinformer/informer/tests/harness"
)

// elsewhere is another address of every simulated server.
const elsewhere = "http://elsewhere"

// listerElsewhere lists and watches the pods of a server at its other address.
func listerElsewhere(w *harness.World) cache.ListerWatcher {
	config := w.Config()
	config.Host = elsewhere
	return harness.ListerOf(w.T, config)
}

// inRenamedCluster runs test in a bubble with a cluster whose kube-system may be forbidden.
func inRenamedCluster(t *testing.T, test func(t *testing.T, w *harness.World, forbidden *atomic.Bool)) {
	t.Helper()
	forbidden := new(atomic.Bool)
	wrap := harness.Refusing(http.StatusForbidden, func(r *http.Request) bool {
		return strings.HasSuffix(r.URL.Path, "kube-system") && forbidden.Load()
	})
	harness.Bubble(t, informertest.Options{Wrap: wrap}, func(t *testing.T, w *harness.World) {
		w.CreateKubeSystem()
		w.CreatePods(harness.Keys(3)...)
		test(t, w, forbidden)
	})
}

// A cluster is known by the UID of its kube-system, so a checkpoint goes on at another address of it,
// and names that address soon.
func TestCheckpointGoesOnAtAnotherAddressOfTheCluster(t *testing.T) {
	for name, store := range map[string]func(t *testing.T) informer.CheckpointStore{
		"without a journal": func(*testing.T) informer.CheckpointStore { return &harness.MemoryCheckpoint{} },
		"with a journal": func(t *testing.T) informer.CheckpointStore {
			return informer.FileCheckpoint(filepath.Join(t.TempDir(), "pods"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			inRenamedCluster(t, func(t *testing.T, w *harness.World, forbidden *atomic.Bool) {
				r, s := &harness.Recorder{}, store(t)
				w.RunFor(harness.Follow(w, informer.InformerConfig{Handler: r, Checkpoint: s}), time.Minute)
				r.Forget()
				w.DeletePods("a/0000")
				w.UpdatePod("a/0001", "changed")
				w.ResetRequests()
				i := harness.Follow(w, informer.InformerConfig{ListerWatcher: listerElsewhere(w), Handler: r, Checkpoint: s})
				stop := w.Run(i)
				harness.Sleep(time.Minute)
				require.NoError(t, i.Status().CheckpointError)
				require.True(t, i.HasSynced())
				require.Empty(t, w.Lists())
				require.Equal(t, []string{"delete a/0000", "update a/0001"}, r.Events())
				require.Equal(t, elsewhere, serverOf(t, s), "before it ends")
				stop()

				// The address alone is enough from now on.
				forbidden.Store(true)
				r.Forget()
				w.UpdatePod("a/0002", "changed")
				i = harness.Follow(w, informer.InformerConfig{ListerWatcher: listerElsewhere(w), Handler: r, Checkpoint: s})
				w.RunFor(i, time.Minute)
				require.Empty(t, w.Lists())
				require.Equal(t, []string{"update a/0002"}, r.Events())
			})
		})
	}
}

// serverOf is the address that a checkpoint names.
func serverOf(t *testing.T, s informer.CheckpointStore) string {
	t.Helper()
	from, err := s.Load(t.Context())
	require.NoError(t, err)
	defer from.Close()
	content, err := io.ReadAll(from)
	require.NoError(t, err)
	return harness.ReadSaved(t, content).Metadata["server"]
}

// The address that nothing has changed at is saved as well.
func TestUnchangedCheckpointNamesTheNewAddress(t *testing.T) {
	inRenamedCluster(t, func(t *testing.T, w *harness.World, _ *atomic.Bool) {
		r := &harness.Recorder{}
		s := w.Lived(r)
		w.Run(harness.Follow(w, informer.InformerConfig{ListerWatcher: listerElsewhere(w), Handler: r, Checkpoint: s}))
		harness.Sleep(10 * time.Second)
		require.Equal(t, elsewhere, serverOf(t, s))
		require.Empty(t, r.Events())
		w.RequireSaved(s)
	})
}

// Where the UID of kube-system is not known now, or was not when the checkpoint was saved, another
// address may be that of another cluster.
func TestCheckpointOfAnotherAddressWaitsWhereTheClusterIsNotKnown(t *testing.T) {
	for name, known := range map[string]struct{ before, now bool }{
		"not now": {before: true}, "not before": {now: true}, "never": {},
	} {
		t.Run(name, func(t *testing.T) {
			inRenamedCluster(t, func(t *testing.T, w *harness.World, forbidden *atomic.Bool) {
				forbidden.Store(!known.before)
				r := &harness.Recorder{}
				s := w.Lived(r)
				before := s.Bytes()
				forbidden.Store(!known.now)
				i := harness.Follow(w, informer.InformerConfig{ListerWatcher: listerElsewhere(w), Handler: r, Checkpoint: s})
				stop := w.Run(i)
				harness.Sleep(10 * time.Minute)
				harness.RequireAwaited(t, i, informer.ErrCheckpointSource)
				require.ErrorContains(t, i.Status().CheckpointError, `server is "http://localhost", not "http://elsewhere"`)
				require.Empty(t, r.Events())
				stop()
				require.Equal(t, before, s.Bytes())
			})
		})
	}
}

// Another cluster at another address is told by both.
func TestCheckpointOfAnotherClusterAtAnotherAddressWaits(t *testing.T) {
	inRenamedCluster(t, func(t *testing.T, w *harness.World, _ *atomic.Bool) {
		r := &harness.Recorder{}
		s := w.Lived(r)
		require.NoError(t, w.Delete(harness.Namespaces, "", "kube-system"))
		w.CreateKubeSystem()
		i := harness.Follow(w, informer.InformerConfig{ListerWatcher: listerElsewhere(w), Handler: r, Checkpoint: s})
		w.Run(i)
		harness.Sleep(10 * time.Minute)
		harness.RequireAwaited(t, i, informer.ErrCheckpointSource)
		for _, field := range []string{"server", "cluster"} {
			require.ErrorContains(t, i.Status().CheckpointError, field+" is ")
		}
		require.Empty(t, r.Events())
	})
}
