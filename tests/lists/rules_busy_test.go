package lists_test

import (
	"net/http"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/informertest"
	"github.com/rvinformer/informer/tests/harness"
)

var allModes = map[string]informer.ListMode{
	"auto": informer.ListModeAuto, "paged": informer.ListModePaged, "full": informer.ListModeFull, "watch-list": informer.ListModeWatchList,
}

func mustFault(t *testing.T, text string) informertest.Fault {
	t.Helper()
	fault, err := informertest.ParseFault(text)
	require.NoError(t, err)
	return fault
}

// perMinute is the greatest number of requests in a minute.
func perMinute(requests []informertest.Request) (most int) {
	first := 0
	for i, r := range requests {
		for r.Time.Sub(requests[first].Time) >= time.Minute {
			first++
		}
		most = max(most, i-first+1)
	}
	return most
}

// A kube-apiserver whose watch cache is not ready, or is behind etcd, says for minutes when to come
// again. It is asked at that pace, in the same way, and nothing that it has served is asked for
// twice.
func TestRule9BusyServerIsWaitedFor(t *testing.T) {
	for fault, passed := range map[string]map[string][]string{ // what is served meanwhile
		"without=limit 429 retry-after=1":                           {"paged": {"list"}},
		"list page=first without=resourceVersion 429 retry-after=1": {"auto": {"watch"}, "watch-list": {"watch"}, "full": {"list"}},
		"429 retry-after=5":                                         {},
		"watch,watch-list 429 retry-after=2":                        {"paged": {"list"}, "full": {"list"}},
	} {
		for name, mode := range allModes {
			harness.BubbleRun(t, fault+" "+name, informertest.Options{}, func(t *testing.T, w *harness.World) {
				w.CreatePods(harness.Keys(3)...)
				heal := w.Inject(mustFault(t, fault))
				var r harness.Recorder
				i := harness.RunningAuto(w, informer.InformerConfig{ListMode: mode, Handler: &r})
				time.Sleep(4*time.Minute + 500*time.Millisecond)
				served, refused := []string{}, []string{}
				for _, request := range w.Requests() {
					switch lists := request.Verb == "list" || request.Options.SendInitialEvents != nil; {
					case request.Code == http.StatusTooManyRequests:
						refused = append(refused, request.Verb+" "+request.Options.String())
					case lists:
						served = append(served, request.Verb)
					}
				}
				require.Equal(t, append([]string{}, passed[name]...), served)
				require.LessOrEqual(t, perMinute(w.Requests()), 62) // a list and a watch before the first refusal
				if len(refused) > 0 {
					require.Greater(t, len(refused), 40)
					require.Equal(t, informer.ReasonThrottled, i.Status().Condition.Reason)
				}

				heal()
				w.ResetRequests()
				time.Sleep(30 * time.Second)
				require.True(t, i.HasSynced())
				require.NoError(t, i.Status().Fallback)
				require.LessOrEqual(t, len(w.Verbs()), 2, "%q", w.Verbs())
				w.DeletePods("a/0000")
				w.CreatePods("a/new")
				synctest.Wait()
				w.RequireState(&r)
			})
		}
	}
}

// A server, or a proxy, that says so of watch-lists for ever is listed after five minutes. That is not
// remembered: it has not said that it does not know watch-lists.
func TestRule9BusyServerIsListedInTheEnd(t *testing.T) {
	for name, mode := range modesWithWatchLists {
		harness.BubbleRun(t, name, informertest.Options{}, func(t *testing.T, w *harness.World) {
			w.CreatePods(harness.Keys(3)...)
			heal := w.Inject(mustFault(t, "watch-list 429 retry-after=30"))
			config := informer.InformerConfig{ListMode: mode, ListerWatcher: w.Lister()}
			var r harness.Recorder
			config.Handler = &r
			i := harness.RunningAuto(w, config)
			time.Sleep(5*time.Minute - time.Second)
			require.Equal(t, slices.Repeat([]string{"watch-list"}, 10), w.Verbs())
			require.False(t, i.HasSynced())
			time.Sleep(time.Minute)
			require.True(t, i.HasSynced())
			require.Equal(t, append(slices.Repeat([]string{"watch-list"}, 11), "list limit=500", "watch rv=4"), w.Verbs())
			require.ErrorContains(t, i.Status().Fallback, "429")
			w.RequireState(&r)

			heal()
			w.ResetRequests()
			harness.RunningAuto(w, informer.InformerConfig{ListMode: mode, ListerWatcher: config.ListerWatcher, Handler: &harness.Recorder{}})
			synctest.Wait()
			require.Equal(t, []string{"watch-list"}, w.Verbs())
		})
	}
}
