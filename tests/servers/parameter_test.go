package servers_test

import (
	"fmt"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/informertest"
	"github.com/rvinformer/informer/tests/harness"
)

// A server, or a proxy, that refuses a query parameter which it does not know is asked without it for
// an hour. Each mode does its work as well, and refused requests are no failures.
func TestServerRefusesParameter(t *testing.T) {
	half := informer.Shard{Key: informer.ShardByUID, End: 1 << 63}
	modes := map[string]informer.InformerConfig{
		"auto":              {},
		"paged":             {ListMode: informer.ListModePaged, WatchListPageSize: 2},
		"full":              {ListMode: informer.ListModeFull},
		"watch-list":        {ListMode: informer.ListModeWatchList},
		"paged from cache":  {ForcePaginatedList: true, WatchListPageSize: 2},
		"shard, watch-list": {ListMode: informer.ListModeWatchList, Shard: half},
		"shard, paged":      {ListMode: informer.ListModePaged, WatchListPageSize: 2, Shard: half},
	}
	for _, parameter := range []string{"sendInitialEvents", "resourceVersionMatch", "shardSelector", "limit", "allowWatchBookmarks"} {
		for _, code := range []int{http.StatusBadRequest, http.StatusUnprocessableEntity} {
			for name, config := range modes {
				harness.BubbleRun(t, fmt.Sprint(parameter, " ", code, " ", name), informertest.Options{}, func(t *testing.T, w *harness.World) {
					w.Inject(informertest.Fault{Match: informertest.Match{With: parameter}, Effect: informertest.Status(code)})
					testRefusedParameter(t, w, config)
				})
			}
		}
	}
}

// A server that refuses parameters, and is too busy for the request without them, is not asked with
// them again: not three times a second if it wants to be asked each second.
func TestServerRefusesParameterAndIsBusy(t *testing.T) {
	for _, code := range []int{http.StatusBadRequest, http.StatusUnprocessableEntity} {
		harness.BubbleRun(t, fmt.Sprint(code), informertest.Options{}, func(t *testing.T, w *harness.World) {
			for _, parameter := range []string{"limit", "shardSelector"} {
				w.Inject(informertest.Fault{Match: informertest.Match{With: parameter}, Effect: informertest.Status(code)})
			}
			w.Inject(informertest.Fault{Match: informertest.Match{Verbs: []string{"list"}}, Effect: informertest.Status(429).RetryAfter(time.Second)})
			w.CreatePods(harness.Keys(5)...)
			var r harness.Recorder
			harness.RunningAuto(w, informer.InformerConfig{
				Handler: &r, ListMode: informer.ListModePaged, ErrorHandler: harness.IgnoreErrors, Shard: informer.Shard{Key: informer.ShardByUID, End: 1 << 63},
			})
			harness.Sleep(time.Minute)
			require.Less(t, len(w.Requests()), 70)
		})
	}
}

func testRefusedParameter(t *testing.T, w *harness.World, config informer.InformerConfig) {
	w.CreatePods(harness.Keys(5)...)
	var r harness.Recorder
	var f harness.Failures
	config.Handler, config.ErrorHandler = &r, f.Handle
	i := harness.RunningAuto(w, config)
	inShard := func() map[string]string {
		versions := map[string]string{}
		pods, err := w.List(harness.Pods, "")
		require.NoError(t, err)
		for _, pod := range pods {
			if config.Shard.Includes(pod.GetNamespace(), string(pod.GetUID())) {
				versions[pod.GetNamespace()+"/"+pod.GetName()] = pod.GetResourceVersion()
			}
		}
		return versions
	}
	synctest.Wait()
	require.True(t, i.HasSynced())
	require.Equal(t, inShard(), r.State())

	w.CreatePods("b/1", "b/2", "b/3")
	w.DeletePods("a/0000")
	synctest.Wait()
	require.Equal(t, inShard(), r.State())

	// Watches end and begin again; then the informer has to list.
	time.Sleep(50 * time.Minute)
	refused := 0
	lists := len(w.Lists())
	for _, request := range w.Requests() {
		if request.Verb != "get" && request.Code >= 400 {
			refused++
		}
	}
	require.LessOrEqual(t, refused, 3, "it is remembered: %q", w.Verbs())
	require.LessOrEqual(t, lists, 5, "%q", w.Verbs())
	heal := w.Inject(informertest.Fault{Effect: informertest.Refuse()})
	w.DeletePods("b/1")
	w.CreatePods("b/4")
	w.Compact()
	heal()
	time.Sleep(10 * time.Minute)
	require.Equal(t, inShard(), r.State())
}

// A Reflector lists pages that are not older than what it knows, and the newest ones where the server
// does not know how to say that.
func TestServerRefusesResourceVersionMatch(t *testing.T) {
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		w.CreatePods(harness.Keys(5)...)
		w.Inject(informertest.Fault{Match: informertest.Match{Verbs: []string{"list"}, With: "resourceVersionMatch"}, Effect: informertest.Status(http.StatusUnprocessableEntity)})
		w.Inject(informertest.Fault{Effect: informertest.RefuseWatchList()})
		store := cache.NewStore(cache.MetaNamespaceKeyFunc)
		r := informer.NewReflector(w.Lister(), &corev1.Pod{}, store, 0)
		r.WatchListPageSize = 2
		defer harness.Settle(r.RunWithContext)()
		require.Len(t, store.List(), 5)
		for range 2 {
			heal := w.Inject(informertest.Fault{Effect: informertest.Refuse()})
			w.DeletePods("a/0000")
			w.CreatePods("a/0000", fmt.Sprint("b/", len(store.List())))
			w.Compact()
			w.ResetRequests()
			heal()
			time.Sleep(2 * time.Minute)
			versions := w.Versions()
			require.Len(t, store.List(), len(versions))
		}
		for _, request := range w.Requests() {
			if request.Verb == "list" {
				require.Empty(t, request.Options.ResourceVersionMatch, "it is remembered")
			}
		}
	})
}
