package sharing_test

import (
	"fmt"
	"maps"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/informertest"
	"github.com/rvinformer/informer/tests/harness"
)

// half is the half of all hashes that begins with 0.
var half = informer.Shard{Key: informer.ShardByUID, End: 1 << 63}

// shardOf are the versions of those objects of the server that are in a shard.
func shardOf(w *harness.World, gvr schema.GroupVersionResource, s informer.Shard) map[string]string {
	w.T.Helper()
	objects, err := w.List(gvr, "")
	require.NoError(w.T, err)
	versions := map[string]string{}
	for _, o := range objects {
		if s.Includes(o.GetNamespace(), string(o.GetUID())) {
			versions[harness.Key(o)] = o.GetResourceVersion()
		}
	}
	return versions
}

// asked is how many lists and watches asked for a shard, and how many did not.
func asked(w *harness.World) (sharded, whole int) {
	for _, r := range w.Requests() {
		switch {
		case r.Verb != "list" && r.Verb != "watch" || r.Options.Limit == 1:
		case r.Options.ShardSelector != "":
			sharded++
		default:
			whole++
		}
	}
	return sharded, whole
}

// listerOf lists and watches a resource, in protobuf if the client is to ask for it.
func listerOf(w *harness.World, gvr schema.GroupVersionResource, protobuf bool) cache.ListerWatcher {
	w.T.Helper()
	config := w.Config()
	if protobuf {
		config.ContentType, config.AcceptContentTypes = runtime.ContentTypeProtobuf, runtime.ContentTypeProtobuf+","+runtime.ContentTypeJSON
	}
	factory, err := informer.NewDynamicListerWatcherFactory(config)
	require.NoError(w.T, err)
	return factory.ForResource("", gvr)
}

// TestShardsMakeUpTheWhole follows a set with an informer for each of its shards, however it is
// read and whether or not the server knows shards. Together they have each object once, at first
// and after changes.
func TestShardsMakeUpTheWhole(t *testing.T) {
	forms := map[string]struct {
		example  runtime.Object
		gvr      schema.GroupVersionResource
		protobuf bool
	}{
		"raw JSON":       {&informer.RawObject{}, harness.Pods, false},
		"raw protobuf":   {&informer.RawObject{}, harness.Pods, true},
		"typed protobuf": {&corev1.Pod{}, harness.Pods, true},
		"metadata":       {&metav1.PartialObjectMetadata{}, harness.Pods, true},
		"custom":         {nil, harness.Widgets, false},
	}
	for name, form := range forms {
		for _, mode := range []informer.ListMode{informer.ListModePaged, informer.ListModeFull, informer.ListModeWatchList} {
			for _, known := range []bool{false, true} {
				harness.BubbleRun(t, fmt.Sprintf("%s/%v/known=%v", name, mode, known), informertest.Options{ShardedListAndWatch: known}, func(t *testing.T, w *harness.World) {
					for _, k := range harness.Keys(40) {
						_, err := w.Create(form.gvr, harness.Object(form.gvr, k, "1"))
						require.NoError(t, err)
					}
					shards := informer.Shard{}.Split(3)
					handlers := make([]harness.Recorder, len(shards))
					for n, s := range shards {
						i := harness.Follow(w, informer.InformerConfig{
							ListerWatcher: listerOf(w, form.gvr, form.protobuf), ExampleObject: form.example, Handler: &handlers[n], Shard: s,
							ListMode: mode, WatchListPageSize: 7,
						})
						defer harness.Synced(i)()
					}
					check := func() {
						t.Helper()
						synctest.Wait()
						for n, s := range shards {
							require.Equal(t, shardOf(w, form.gvr, s), handlers[n].State(), "shard %d", n)
						}
					}
					check()
					for n, k := range harness.Keys(60) {
						switch {
						case n >= 40:
							_, err := w.Create(form.gvr, harness.Object(form.gvr, k, "1"))
							require.NoError(t, err)
						case n%3 == 0:
							_, err := w.Update(form.gvr, harness.Object(form.gvr, k, "2"))
							require.NoError(t, err)
						case n%3 == 1: // the next object of the name may be in another shard
							name, _ := cache.ParseObjectName(k)
							require.NoError(t, w.Delete(form.gvr, name.Namespace, name.Name))
							_, err := w.Create(form.gvr, harness.Object(form.gvr, k, "3"))
							require.NoError(t, err)
						}
					}
					check()
					sharded, whole := asked(w)
					require.Positive(t, sharded)
					require.Zero(t, whole)
				})
			}
		}
	}
}

// TestShardByNamespace keeps what a namespace has in one shard.
func TestShardByNamespace(t *testing.T) {
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		for n := range 20 {
			w.CreatePods(fmt.Sprintf("n%d/a", n), fmt.Sprintf("n%d/b", n))
		}
		shards := informer.Shard{Key: informer.ShardByNamespace}.Split(2)
		var all []string
		for _, s := range shards {
			var r harness.Recorder
			i := harness.Follow(w, informer.InformerConfig{Handler: &r, Shard: s})
			defer harness.Synced(i)()
			require.Equal(t, shardOf(w, harness.Pods, s), r.State())
			for k := range r.State() {
				namespace, _, _ := strings.Cut(k, "/")
				require.Contains(t, r.State(), namespace+"/a")
				require.Contains(t, r.State(), namespace+"/b")
				all = append(all, k)
			}
		}
		require.Len(t, all, 40)
	})
}

// TestShardOfForeignListerWatcher filters what a ListerWatcher of others has decoded, and asks it
// for no shard.
func TestShardOfForeignListerWatcher(t *testing.T) {
	harness.Bubble(t, informertest.Options{ShardedListAndWatch: true}, func(t *testing.T, w *harness.World) {
		w.CreatePods(harness.Keys(20)...)
		own := cache.ToListerWatcherWithContext(w.Lister())
		lw := &cache.ListWatch{ListWithContextFunc: own.ListWithContext, WatchFuncWithContext: own.WatchWithContext}
		var r harness.Recorder
		i := harness.Follow(w, informer.InformerConfig{ListerWatcher: lw, Handler: &r, Shard: half})
		defer harness.Synced(i)()
		require.Equal(t, shardOf(w, harness.Pods, half), r.State())
		w.CreatePods("b/1", "b/2", "b/3", "b/4")
		w.DeletePods(harness.Keys(10)...)
		synctest.Wait()
		require.Equal(t, shardOf(w, harness.Pods, half), r.State())
		sharded, _ := asked(w)
		require.Zero(t, sharded)
	})
}

// TestServerRefusesShard asks a server without a shard for an hour after it has refused one.
func TestServerRefusesShard(t *testing.T) {
	refuse := harness.Before(func(w http.ResponseWriter, r *http.Request) bool {
		if r.URL.Query().Has("shardSelector") {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusBadRequest)
			fmt.Fprint(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"BadRequest","message":"unknown parameter","code":400}`)
			return false
		}
		return true
	})
	for _, mode := range []informer.ListMode{informer.ListModePaged, informer.ListModeWatchList} {
		harness.BubbleRun(t, mode.String(), informertest.Options{Wrap: refuse}, func(t *testing.T, w *harness.World) {
			w.CreatePods(harness.Keys(20)...)
			var r harness.Recorder
			var f harness.Failures
			i := harness.Follow(w, informer.InformerConfig{Handler: &r, Shard: half, ListMode: mode, WatchListPageSize: 6, ErrorHandler: f.Handle})
			defer harness.Synced(i)()
			require.Equal(t, shardOf(w, harness.Pods, half), r.State())
			sharded, _ := asked(w)
			require.Equal(t, 1, sharded)
			require.Empty(t, f.Errors())
			time.Sleep(59 * time.Minute)
			sharded, _ = asked(w)
			require.Equal(t, 1, sharded)
			time.Sleep(time.Hour)
			sharded, _ = asked(w)
			require.Greater(t, sharded, 1, "it is tried again")
			require.Nil(t, i.Status().Fallback)
		})
	}
}

// TestServerListsAnotherShard takes a list of another shard for no list: it may lack objects, which
// would be taken for deleted.
func TestServerListsAnotherShard(t *testing.T) {
	other := informer.Shard{Key: informer.ShardByUID, Start: 1 << 63}
	proxy := harness.Before(func(w http.ResponseWriter, r *http.Request) bool {
		if query := r.URL.Query(); query.Has("shardSelector") {
			query.Set("shardSelector", other.String())
			r.URL.RawQuery = query.Encode()
		}
		return true
	})
	for _, gvr := range []schema.GroupVersionResource{harness.Pods, harness.Widgets} {
		harness.BubbleRun(t, gvr.Resource, informertest.Options{Wrap: proxy, ShardedListAndWatch: true}, func(t *testing.T, w *harness.World) {
			for _, k := range harness.Keys(20) {
				_, err := w.Create(gvr, harness.Object(gvr, k, "1"))
				require.NoError(t, err)
			}
			storage := informer.NewResourceVersionStorage()
			versions := map[string]interface{}{}
			for k, v := range shardOf(w, gvr, half) {
				versions[k] = v
			}
			require.NoError(t, storage.Replace(versions))
			var r harness.Recorder
			var f harness.Failures
			i := harness.Follow(w, informer.InformerConfig{ListerWatcher: listerOf(w, gvr, false), Handler: &r, Shard: half, Storage: storage, ErrorHandler: f.Handle})
			defer harness.Synced(i)()
			require.NotContains(t, strings.Join(r.Events(), "\n"), "delete")
			require.Equal(t, shardOf(w, gvr, half), r.State())
			require.ErrorContains(t, f.One(t), "the server has listed the shard")
		})
	}
}

// TestStorageBeyondTheShard forgets what is not in the shard, and tells no deletion of it.
func TestStorageBeyondTheShard(t *testing.T) {
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		w.CreatePods(harness.Keys(20)...)
		storage := informer.NewResourceVersionStorage()
		var all harness.Recorder
		i := harness.Follow(w, informer.InformerConfig{Handler: &all, Storage: storage})
		stop := harness.Synced(i)
		stop()

		var r harness.Recorder
		i = harness.Follow(w, informer.InformerConfig{Handler: &r, Storage: storage, Shard: half})
		defer harness.Synced(i)()
		for _, event := range r.Events() {
			require.True(t, strings.HasPrefix(event, "sync "), event)
		}
		require.Equal(t, shardOf(w, harness.Pods, half), maps.Collect(storage.All()))
	})
}

// TestCheckpointOfAShard goes on from a checkpoint of the shard, and waits for one of a shard that
// it has nothing in common with.
func TestCheckpointOfAShard(t *testing.T) {
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		w.CreatePods(harness.Keys(20)...)
		path := filepath.Join(t.TempDir(), "pods")
		run := func(s informer.Shard) (*harness.Recorder, informer.ResourceVersionInformer, *harness.Failures) {
			var r harness.Recorder
			var f harness.Failures
			i := harness.Follow(w, informer.InformerConfig{Handler: &r, Shard: s, Checkpoint: informer.FileCheckpoint(path), ErrorHandler: f.Handle})
			stop := harness.Start(i.RunWithContext)
			time.Sleep(time.Second) // what has changed since the checkpoint comes after that
			stop()
			return &r, i, &f
		}
		first, _, _ := run(half)
		require.Equal(t, shardOf(w, harness.Pods, half), first.State())
		w.CreatePods("b/1", "b/2", "b/3", "b/4", "b/5", "b/6")
		w.DeletePods(harness.Keys(8)...)
		w.ResetRequests()
		again, i, _ := run(half)
		require.NotEmpty(t, i.Status().ResumedFrom)
		require.Empty(t, w.Lists())
		maps.Copy(first.Folded, again.State())
		for k := range first.Folded {
			if _, exists := shardOf(w, harness.Pods, half)[k]; !exists {
				require.Contains(t, again.Events(), "delete "+k)
			}
		}
		other := informer.Shard{Key: informer.ShardByUID, Start: 1 << 63}
		_, i, f := run(other)
		var mismatch *informer.CheckpointSourceError
		require.ErrorAs(t, f.Errors()[0], &mismatch)
		require.Equal(t, []informer.CheckpointSourceDifference{{Field: "shard", Saved: half.String(), Wanted: other.String()}}, mismatch.Differences)
		require.Error(t, i.Status().CheckpointError)
	})
}

func TestShardThatMakesNoSense(t *testing.T) {
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		require.PanicsWithValue(t, `informer "pods": a shard with a range needs a key`, func() {
			harness.Follow(w, informer.InformerConfig{Handler: &harness.Recorder{}, Shard: informer.Shard{Start: 1}})
		})
	})
}
