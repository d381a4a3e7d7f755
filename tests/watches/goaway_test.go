package watches_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/informertest"
	"github.com/rvinformer/informer/tests/harness"
)

// goAway makes a server send GOAWAY with each answer. A kube-apiserver sends it with some answers
// (--goaway-chance), so that clients spread over its replicas. Open requests of the connection
// continue, and new requests need a new connection.
func goAway(server http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Connection", "close")
		server.ServeHTTP(w, r)
	})
}

// GOAWAY is no failure: it causes no list, no error and no late event.
func TestGoAwayCausesNoListAndNoError(t *testing.T) {
	for name, mode := range map[string]informer.ListMode{"pages": informer.ListModePaged, "watch-list": informer.ListModeWatchList} {
		harness.BubbleRun(t, name, informertest.Options{TLS: true, Wrap: goAway}, func(t *testing.T, w *harness.World) {
			w.CreatePods(harness.Keys(quietObjects)...)
			config, dials := harness.CountDials(w.Config())
			var r harness.Recorder
			var f harness.Failures
			i := harness.Running(w, informer.InformerConfig{ListerWatcher: harness.ListerOf(t, config), ListMode: mode, WatchListPageSize: 10, Handler: &r, ErrorHandler: f.Handle})
			harness.Sleep(time.Second)
			require.True(t, i.HasSynced())
			for range 60 { // several watches, one after the other
				time.Sleep(time.Minute)
				w.RequireOneWatch()
				r.Forget()
				w.UpdatePod("a/0001", time.Now().String())
				synctest.Wait()
				require.Equal(t, []string{"update a/0001"}, r.Events())
			}
			w.RequireState(&r)
			watches := slices.DeleteFunc(w.Verbs(), func(verb string) bool { return !strings.HasPrefix(verb, "watch") })
			require.Greater(t, len(watches), 1)
			require.GreaterOrEqual(t, int(dials.Load()), len(watches), "each watch has a connection of its own")
			require.Equal(t, informer.ListCounts{Initial: 1}, i.Status().Counts.Lists)
			require.Empty(t, f.Errors())
		})
	}
}

// An ERROR event with code 410 ends a watch that was idle for minutes. The informer lists, and
// delivers the changes that the watch missed, if it did.
func TestIdleWatchExpires(t *testing.T) {
	for name, options := range map[string]informertest.Options{"HTTP/1.1": {}, "HTTP/2": overHTTP2} {
		harness.BubbleRun(t, name, options, func(t *testing.T, w *harness.World) {
			w.CreatePods(harness.Keys(quietObjects)...)
			var r harness.Recorder
			i := harness.Running(w, informer.InformerConfig{Handler: &r})
			time.Sleep(4 * time.Minute)
			w.RequireOneWatch()
			r.Forget()
			w.Inject(informertest.Fault{Match: informertest.Match{Verbs: []string{"watch"}}, Effect: informertest.ErrorEvent(410), Times: 1})
			w.UpdatePod("a/0001", "changed")
			w.DeletePods("a/0002")
			harness.Sleep(time.Minute)
			told := slices.DeleteFunc(r.Events(), func(call string) bool { return strings.HasPrefix(call, "sync ") })
			for n := range told { // the watch may have told of the deletion before it ended
				told[n] = strings.TrimSuffix(told[n], " unknown")
			}
			require.ElementsMatch(t, []string{"update a/0001", "delete a/0002"}, told)
			w.RequireState(&r)
			require.Equal(t, informer.ListCounts{Initial: 1, Expired: 1}, i.Status().Counts.Lists)
		})
	}
}
