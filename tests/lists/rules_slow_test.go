package lists_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/informertest"
	"github.com/rvinformer/informer/tests/harness"
)

// A watch-list in which a slow conversion webhook takes eight minutes is read to its end, and nothing
// else is asked for meanwhile. Where something on the way cuts it after five minutes each time, or
// nothing comes for longer than ten seconds, the set is read in pages.
func TestRule9SlowWatchList(t *testing.T) {
	const objects, page = 96, 12
	pages := append([]string{"list limit=12"}, slices.Repeat([]string{"list limit=12 continue"}, objects/page-1)...)
	for name, test := range map[string]struct {
		faults   []string
		takes    time.Duration
		requests []string
		fallback string
	}{
		"in time": {[]string{"delay=5s"}, 8 * time.Minute, []string{"watch-list"}, ""},
		"cut": {
			[]string{"delay=5s", "watch-list close=5m"}, 18*time.Minute + 2*time.Second,
			slices.Concat([]string{"watch-list", "watch-list rv=60"}, pages, []string{"watch rv=97"}), "unexpected EOF",
		},
		"silent": {[]string{"watch-list delay=8m"}, 15 * time.Second, slices.Concat([]string{"watch-list"}, pages, []string{"watch rv=97"}), "nothing received for 10s"},
	} {
		for of, mode := range modesWithWatchLists {
			harness.BubbleRun(t, name+" "+of, informertest.Options{}, func(t *testing.T, w *harness.World) {
				w.CreatePods(harness.Keys(objects)...)
				for _, fault := range test.faults {
					w.Inject(mustFault(t, fault))
				}
				var r harness.Recorder
				i := harness.RunningAuto(w, informer.InformerConfig{ListMode: mode, WatchListPageSize: page, Handler: &r})
				time.Sleep(test.takes - 2*time.Second)
				require.Equal(t, name == "silent", i.HasSynced())
				time.Sleep(10 * time.Second)
				require.True(t, i.HasSynced())
				require.Equal(t, test.requests, w.Verbs())
				if test.fallback == "" {
					require.NoError(t, i.Status().Fallback)
				} else {
					require.ErrorContains(t, i.Status().Fallback, test.fallback)
				}
				w.RequireState(&r)
			})
		}
	}
}

// The watch-list of one of several handlers is no more patient, however long their watch may be silent.
func TestRule9SilentWatchListOfSharedHandlers(t *testing.T) {
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		w.CreatePods(harness.Keys(3)...)
		w.Inject(mustFault(t, "watch-list delay=8m"))
		s := harness.Share(w, informer.InformerConfig{ListMode: informer.ListModeWatchList})
		defer harness.Start(s.RunWithContext)()
		time.Sleep(time.Second)
		h := harness.AddHandler(t, s, &harness.Recorder{})
		time.Sleep(15 * time.Second)
		require.True(t, h.HasSynced())
		require.ErrorContains(t, h.Status().Fallback, "nothing received for 10s")
	})
}

// A list in one piece may take as long as it likes, as long as something comes.
func TestSlowListInOnePiece(t *testing.T) {
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		w.CreatePods(harness.Keys(3)...)
		w.Inject(mustFault(t, "list slow=1"))
		var r harness.Recorder
		i := harness.RunningAuto(w, informer.InformerConfig{ListMode: informer.ListModeFull, Handler: &r})
		time.Sleep(8 * time.Minute)
		require.False(t, i.HasSynced())
		time.Sleep(30 * time.Minute)
		require.True(t, i.HasSynced())
		require.Len(t, w.Lists(), 1)
		w.RequireState(&r)
	})
}
