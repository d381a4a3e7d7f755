package sharing_test

import (
	"net/http"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/informertest"
	"github.com/rvinformer/informer/tests/harness"
)

// However the sets are read, the handlers are told by one watch.
func TestHandlersShareAWatch(t *testing.T) {
	for _, mode := range []informer.ListMode{informer.ListModePaged, informer.ListModeFull, informer.ListModeWatchList} {
		harness.BubbleRun(t, mode.String(), informertest.Options{}, func(t *testing.T, w *harness.World) {
			w.CreatePods(harness.Keys(5)...)
			s := harness.Share(w, informer.InformerConfig{ListMode: mode, WatchListPageSize: 2})
			a, b, late := &harness.Recorder{}, &harness.Recorder{}, &harness.Recorder{}
			harness.AddHandler(t, s, a)
			harness.AddHandler(t, s, b)
			defer harness.Settle(s.RunWithContext)()
			require.True(t, s.HasSynced())
			require.EqualValues(t, 1, w.Watching.Load())
			w.UpdatePod("a/0001", "changed")
			w.DeletePods("a/0002")
			synctest.Wait()
			h := harness.AddHandler(t, s, late)
			synctest.Wait()
			require.True(t, h.HasSynced())
			require.Equal(t, []string{"add a/0000 initial", "add a/0001 initial", "add a/0003 initial", "add a/0004 initial"}, late.Events())
			require.EqualValues(t, 1, w.Watching.Load())
			w.UpdatePod("a/0003", "changed")
			w.CreatePods("a/0009")
			w.DeletePods("a/0004")
			time.Sleep(time.Hour)
			for _, r := range []*harness.Recorder{a, b, late} {
				w.RequireState(r)
				require.Equal(t, []string{"update a/0003", "add a/0009", "delete a/0004"}, r.Events()[len(r.Events())-3:])
			}
			w.RequireOneWatch()
		})
	}
}

// Many handlers ask a server that takes long to answer for a watch in each second, not for one each.
func TestHandlersAtASlowServerAskForFewWatches(t *testing.T) {
	var asked atomic.Int32
	slow := func(server http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Query().Get("watch") != "" {
				asked.Add(1)
				time.Sleep(3500 * time.Millisecond)
			}
			server.ServeHTTP(w, r)
		})
	}
	harness.Bubble(t, informertest.Options{Wrap: slow}, func(t *testing.T, w *harness.World) {
		w.CreatePods(harness.Keys(3)...)
		s := harness.Share(w, informer.InformerConfig{ListMode: informer.ListModePaged})
		all := recorders(t, s, 30)
		defer harness.Start(s.RunWithContext)()
		time.Sleep(time.Minute)
		require.EqualValues(t, 4, asked.Load())
		w.CreatePods("a/0009")
		w.RequireOneWatch()
		w.RequireState(all...)
	})
}
