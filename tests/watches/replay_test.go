package watches_test

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/informertest"
	"github.com/rvinformer/informer/objectcache"
	"github.com/rvinformer/informer/tests/harness"
)

// replaying are pods of a server that begins each watch with all of them.
func replaying() *harness.Aggregated {
	a := &harness.Aggregated{Replays: true}
	for n, key := range harness.Keys(6) {
		a.Put(key, 100+n)
	}
	return a
}

// loses has a server end its watches, and delete a pod before the next ones begin.
func loses(a *harness.Aggregated, key string, version int) {
	a.Cut(func() {
		a.Delete(key, version)
		a.Put("a/0005", version+1)
	})
}

// A server accepts a resource version, and begins the watch with all objects. What was deleted before
// it is told by a list, which follows each watch from then on.
func TestServerThatReplaysInsteadOfResuming(t *testing.T) {
	a := replaying()
	harness.Bubble(t, informertest.Options{Wrap: a.Wrap}, func(t *testing.T, w *harness.World) {
		w.SetResourceVersion(1000)
		r, lw := &harness.Recorder{}, w.Lister()
		i := harness.Settled(w, informer.InformerConfig{ListerWatcher: lw, Handler: r, ListMode: informer.ListModePaged})
		for n, key := range harness.Keys(5) {
			time.Sleep(time.Minute)
			loses(a, key, 600+10*n)
			time.Sleep(time.Minute)
			require.Equal(t, a.Versions(), r.State(), key)
			require.ErrorContains(t, i.Status().Fallback, "does not go on from a resource version")
		}
		told := slices.DeleteFunc(r.Events(), func(call string) bool { return strings.HasPrefix(call, "sync ") })
		require.Len(t, told, 6+2*5)
		lists, watches := a.Asked()
		require.LessOrEqual(t, lists, 1+5)
		require.LessOrEqual(t, watches, 1+5)

		other := &harness.Recorder{} // it knows from the beginning
		later := harness.Settled(w, informer.InformerConfig{ListerWatcher: lw, Handler: other, ListMode: informer.ListModePaged})
		require.ErrorContains(t, later.Status().Fallback, "does not go on from a resource version")
	})
}

// What was learnt is forgotten after an hour. A server that goes on from a version by then is not asked
// for lists any more.
func TestServerThatResumesAgain(t *testing.T) {
	a := replaying()
	harness.Bubble(t, informertest.Options{Wrap: a.Wrap}, func(t *testing.T, w *harness.World) {
		w.SetResourceVersion(1000)
		r := &harness.Recorder{}
		i := harness.Settled(w, informer.InformerConfig{Handler: r, ListMode: informer.ListModePaged})
		loses(a, "a/0001", 600)
		time.Sleep(time.Minute)
		a.Cut(a.Resume)
		time.Sleep(time.Hour)
		before, _ := a.Asked()
		for n, key := range []string{"a/0002", "a/0003"} {
			loses(a, key, 700+10*n)
			time.Sleep(time.Minute)
			require.Equal(t, a.Versions(), r.State())
		}
		after, _ := a.Asked()
		require.LessOrEqual(t, after-before, 1)
		require.NoError(t, i.Status().Fallback)
	})
}

// It is remembered for as long as watches begin with all objects: when all are deleted between two
// watches an hour later, nothing would tell that.
func TestServerThatReplaysIsRemembered(t *testing.T) {
	a := replaying()
	harness.Bubble(t, informertest.Options{Wrap: a.Wrap}, func(t *testing.T, w *harness.World) {
		w.SetResourceVersion(1000)
		r := &harness.Recorder{}
		harness.Settled(w, informer.InformerConfig{Handler: r, ListMode: informer.ListModePaged})
		time.Sleep(30 * time.Minute)
		a.Cut(func() {})
		time.Sleep(31 * time.Minute)
		require.Equal(t, a.Versions(), r.State())
		a.Cut(func() {
			for n, key := range harness.Keys(6) {
				a.Delete(key, 600+n)
			}
		})
		time.Sleep(time.Minute)
		require.Empty(t, r.State())
	})
}

// Versions without an order show a replay as well.
func TestServerThatReplaysVersionsWithoutAnOrder(t *testing.T) {
	opts := informertest.Options{Dialect: informertest.Replaying(), OpaqueVersions: true}
	harness.Bubble(t, opts, func(t *testing.T, w *harness.World) {
		w.CreatePods(harness.Keys(6)...)
		r := &harness.Recorder{}
		i := harness.Settled(w, informer.InformerConfig{Handler: r, ListMode: informer.ListModePaged})
		for _, key := range harness.Keys(4) {
			time.Sleep(time.Minute)
			w.CloseClientConnections()
			w.DeletePods(key)
			time.Sleep(time.Minute)
			w.RequireState(r)
		}
		require.ErrorContains(t, i.Status().Fallback, "does not go on from a resource version")
	})
}

// One object is told again by two watches.
func TestServerThatReplaysOneObject(t *testing.T) {
	a := &harness.Aggregated{Replays: true}
	a.Put("a/0001", 1)
	a.Put("a/0002", 2)
	harness.Bubble(t, informertest.Options{Wrap: a.Wrap}, func(t *testing.T, w *harness.World) {
		w.SetResourceVersion(1000)
		r := &harness.Recorder{}
		harness.Settled(w, informer.InformerConfig{Handler: r, ListMode: informer.ListModePaged})
		a.Cut(func() { a.Delete("a/0001", 5) })
		time.Sleep(time.Minute)
		a.Cut(func() {})
		time.Sleep(time.Minute)
		require.Equal(t, a.Versions(), r.State())
	})
}

func TestHandlersAtAServerThatReplays(t *testing.T) {
	a := replaying()
	harness.Bubble(t, informertest.Options{Wrap: a.Wrap}, func(t *testing.T, w *harness.World) {
		w.SetResourceVersion(1000)
		s := harness.Share(w, informer.InformerConfig{ListMode: informer.ListModePaged})
		first, second, late := &harness.Recorder{}, &harness.Recorder{}, &harness.Recorder{}
		harness.AddHandler(t, s, first)
		harness.AddHandler(t, s, second)
		defer harness.Settle(s.RunWithContext)()
		for n, key := range harness.Keys(5) {
			time.Sleep(time.Minute)
			loses(a, key, 600+10*n)
			time.Sleep(time.Minute)
			require.Equal(t, a.Versions(), first.State(), key)
			require.Equal(t, a.Versions(), second.State(), key)
			if n == 2 {
				harness.AddHandler(t, s, late)
				synctest.Wait()
			}
		}
		require.Equal(t, a.Versions(), late.State())
		require.ErrorContains(t, s.Status().Fallback, "does not go on from a resource version")
		require.EqualValues(t, 1, w.Watching.Load())
	})
}

func TestObjectCacheAtAServerThatReplays(t *testing.T) {
	for _, decoded := range []bool{false, true} {
		a := replaying()
		harness.Bubble(t, informertest.Options{Wrap: a.Wrap}, func(t *testing.T, w *harness.World) {
			w.SetResourceVersion(1000)
			r := &harness.Recorder{}
			snapshot := informer.FileCheckpoint(t.TempDir() + "/snapshot")
			opts := objectcache.Options{ListMode: informer.ListModePaged, Decoded: decoded}
			if !decoded {
				opts.Snapshot = snapshot
			}
			i := objectcache.NewSharedIndexInformerWithOptions(w.Lister(), harness.ExampleObject("v1", "Pod"), opts)
			_, err := i.AddEventHandler(r)
			require.NoError(t, err)
			stop := harness.Settle(i.RunWithContext)
			time.Sleep(time.Minute)
			loses(a, "a/0001", 600)
			time.Sleep(time.Minute)
			require.Equal(t, a.Versions(), r.State())
			stop()
			if decoded {
				return
			}
			a.Delete("a/0002", 700)
			other := &harness.Recorder{}
			i = objectcache.NewSharedIndexInformerWithOptions(w.Lister(), harness.ExampleObject("v1", "Pod"), opts)
			_, err = i.AddEventHandler(other)
			require.NoError(t, err)
			defer harness.Settle(i.RunWithContext)()
			time.Sleep(time.Minute)
			require.Equal(t, a.Versions(), other.State())
		})
	}
}

// A bare Reflector lists as well, if its store can say what it has.
func TestReflectorAtAServerThatReplays(t *testing.T) {
	a := replaying()
	harness.Bubble(t, informertest.Options{Wrap: a.Wrap}, func(t *testing.T, w *harness.World) {
		w.SetResourceVersion(1000)
		store := cache.NewStore(cache.MetaNamespaceKeyFunc)
		r := informer.NewReflector(w.Lister(), &metav1.PartialObjectMetadata{}, store, 0)
		defer harness.Settle(r.RunWithContext)()
		time.Sleep(time.Minute)
		loses(a, "a/0001", 600)
		time.Sleep(time.Minute)
		require.Len(t, store.ListKeys(), len(a.Versions()))
	})
}

// A run that goes on from a checkpoint lists when the server begins its watch with all objects.
func TestCheckpointAtAServerThatReplays(t *testing.T) {
	a := replaying()
	harness.Bubble(t, informertest.Options{Wrap: a.Wrap}, func(t *testing.T, w *harness.World) {
		w.SetResourceVersion(1000)
		a.Bookmark(150)
		r := &harness.Recorder{}
		path := t.TempDir() + "/checkpoint"
		run := func() (stop func()) {
			config := informer.InformerConfig{Handler: r, ListMode: informer.ListModePaged, Checkpoint: informer.FileCheckpoint(path)}
			return harness.Settle(harness.Follow(w, config).RunWithContext)
		}
		run()()
		for n, key := range harness.Keys(4) {
			a.Delete(key, 600+n)
			stop := run()
			time.Sleep(time.Minute)
			require.Equal(t, a.Versions(), r.State(), key)
			stop()
		}
	})
}
