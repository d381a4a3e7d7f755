package watches_test

import (
	"fmt"
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

// A watch-list over HTTP/2 that has become quiet is replaced by a watch, which frees the memory of
// its initial events.
var overHTTP2 = informertest.Options{TLS: true}

// quietBy is when a quiet watch-list has been replaced: the first bookmark, ten seconds, and twenty
// that are random.
const quietBy = 90*time.Second + time.Second

// quietObjects are enough initial events to be worth it.
const quietObjects = 40

// afterwards returns what was asked of the server after the watch-list.
func afterwards(t *testing.T, w *harness.World) []string {
	t.Helper()
	verbs := w.Verbs()
	require.NotEmpty(t, verbs)
	require.True(t, strings.HasPrefix(verbs[0], "watch-list"), "%s", verbs)
	return verbs[1:]
}

func TestQuietWatchListIsReplacedByOneWatch(t *testing.T) {
	harness.Bubble(t, overHTTP2, func(t *testing.T, w *harness.World) {
		w.CreatePods(harness.Keys(quietObjects)...)
		var r harness.Recorder
		var f harness.Failures
		i := harness.RunningAuto(w, informer.InformerConfig{Handler: &r, ErrorHandler: f.Handle})
		synctest.Wait()
		require.True(t, i.HasSynced())
		asked := len(w.Requests()) - len(w.Verbs())

		time.Sleep(time.Minute + 9*time.Second)
		require.Empty(t, afterwards(t, w), "not before it was quiet for a while after a bookmark")
		time.Sleep(quietBy - time.Minute - 9*time.Second)
		require.Equal(t, []string{"watch rv=41"}, afterwards(t, w))

		time.Sleep(10 * time.Minute)
		require.Equal(t, []string{"watch rv=41"}, afterwards(t, w), "once, and that watch goes on")
		require.EqualValues(t, 1, w.Watching.Load())
		require.Len(t, w.Requests(), len(w.Verbs())+asked, "the server is not asked whether it was restored")
		require.Equal(t, informer.WatchCounts{Quiet: 1}, i.Status().Counts.Watches)
		require.Equal(t, informer.ListCounts{Initial: 1}, i.Status().Counts.Lists)
		require.EqualValues(t, quietObjects, i.Status().Counts.Listed)
		require.Empty(t, f.Errors())

		w.UpdatePod("a/0001", "changed")
		w.DeletePods("a/0002")
		synctest.Wait()
		require.Equal(t, []string{"update a/0001", "delete a/0002"}, r.Events()[quietObjects:])
		w.RequireState(&r)
	})
}

// Many informers that see a bookmark at one moment do not open their watches at one moment.
func TestQuietWatchListsAreReplacedAtDifferentTimes(t *testing.T) {
	harness.Bubble(t, overHTTP2, func(t *testing.T, w *harness.World) {
		w.CreatePods(harness.Keys(quietObjects)...)
		const informers = 40
		for range informers {
			defer harness.Start(harness.FollowAuto(w, informer.InformerConfig{Handler: &harness.Recorder{}}).RunWithContext)()
		}
		synctest.Wait()
		most := 0
		for last, end := 0, time.Now().Add(quietBy); time.Now().Before(end); {
			time.Sleep(time.Second)
			opened := len(w.Verbs()) - informers
			most, last = max(most, opened-last), opened
		}
		require.Len(t, w.Verbs(), 2*informers)
		require.Less(t, most, informers/2, "within a second")
	})
}

// Whatever happens around the replacement is told, once and in order.
func TestQuietWatchListLosesNothing(t *testing.T) {
	for second := 58; second <= 92; second++ {
		harness.Bubble(t, overHTTP2, func(t *testing.T, w *harness.World) {
			w.CreatePods(harness.Keys(quietObjects)...)
			var r harness.Recorder
			i := harness.RunningAuto(w, informer.InformerConfig{Handler: &r})
			time.Sleep(time.Duration(second) * time.Second)
			w.UpdatePod("a/0003", "changed")
			w.DeletePods("a/0004")
			w.CreatePods("b/new")
			time.Sleep(time.Minute)
			w.DeletePods("a/0003")
			synctest.Wait()
			require.Equal(t, []string{"update a/0003", "delete a/0004", "add b/new", "delete a/0003"}, r.Events()[quietObjects:])
			w.RequireState(&r)
			require.Equal(t, informer.ListCounts{Initial: 1}, i.Status().Counts.Lists)
		})
	}
}

// What happens when the one watch has ended and the other has not begun is told too.
func TestQuietWatchListLosesNothingBetweenTwoWatches(t *testing.T) {
	var w *harness.World
	options := overHTTP2
	options.Wrap = harness.Before(func(_ http.ResponseWriter, r *http.Request) bool {
		if r.URL.Query().Has("watch") && !harness.IsWatchList(r) {
			w.UpdatePod("a/0003", "changed")
			w.DeletePods("a/0004")
		}
		return true
	})
	harness.Bubble(t, options, func(t *testing.T, here *harness.World) {
		w = here
		w.CreatePods(harness.Keys(quietObjects)...)
		var r harness.Recorder
		i := harness.FollowAuto(w, informer.InformerConfig{Handler: &r})
		defer harness.Start(i.RunWithContext)()
		harness.Sleep(quietBy)
		require.Equal(t, []string{"watch rv=41"}, afterwards(t, w))
		require.Equal(t, []string{"update a/0003", "delete a/0004"}, r.Events()[quietObjects:])
		w.RequireState(&r)
		require.Equal(t, informer.ListCounts{Initial: 1}, i.Status().Counts.Lists)
	})
}

// A server that is away at that moment, or refuses the watch, is asked again as after any watch.
func TestQuietWatchListIsReplacedWhenTheServerIsBack(t *testing.T) {
	harness.Bubble(t, overHTTP2, func(t *testing.T, w *harness.World) {
		w.CreatePods(harness.Keys(quietObjects)...)
		var r harness.Recorder
		i := harness.RunningAuto(w, informer.InformerConfig{Handler: &r})
		time.Sleep(time.Minute + time.Second)
		w.Blocked.Lock()
		time.Sleep(quietBy - time.Minute)
		w.UpdatePod("a/0003", "changed")
		w.Blocked.Unlock()
		harness.Sleep(2 * time.Minute)
		require.Equal(t, []string{"update a/0003"}, r.Events()[quietObjects:])
		w.RequireState(&r)
		require.Equal(t, informer.ListCounts{Initial: 1}, i.Status().Counts.Lists)
		require.EqualValues(t, 1, i.Status().Counts.Watches.Quiet)
		require.Positive(t, i.Status().Counts.Watches.Failed)
	})
}

// While events flow, the memory is freed by them, and the watch-list stays.
func TestBusyWatchListStays(t *testing.T) {
	harness.Bubble(t, overHTTP2, func(t *testing.T, w *harness.World) {
		w.CreatePods(harness.Keys(quietObjects)...)
		var r harness.Recorder
		harness.RunningAuto(w, informer.InformerConfig{Handler: &r})
		for n := range 120 {
			time.Sleep(5 * time.Second)
			w.UpdatePod("a/0001", fmt.Sprint(n))
		}
		require.Empty(t, afterwards(t, w))
		time.Sleep(3 * time.Minute)
		require.Empty(t, afterwards(t, w), "the events have filled what the initial ones left")
	})
}

// A few events postpone the replacement.
func TestWatchListIsReplacedOnceItIsQuiet(t *testing.T) {
	harness.Bubble(t, overHTTP2, func(t *testing.T, w *harness.World) {
		w.CreatePods(harness.Keys(quietObjects)...)
		var r harness.Recorder
		harness.RunningAuto(w, informer.InformerConfig{Handler: &r})
		for n := range 4 { // the last of them after two minutes
			time.Sleep(32 * time.Second)
			w.UpdatePod("a/0001", fmt.Sprint(n))
		}
		time.Sleep(time.Minute)
		require.Empty(t, afterwards(t, w), "there was an event before the third bookmark")
		time.Sleep(quietBy)
		require.Equal(t, []string{"watch rv=45"}, afterwards(t, w))
		w.RequireState(&r)
	})
}

// Watches that have nothing to free, or whose end would free nothing, last as long as they were
// asked for.
func TestOtherWatchesAreNotReplaced(t *testing.T) {
	refuse := harness.Refusing(http.StatusBadRequest, harness.IsWatchList)
	for name, test := range map[string]struct {
		objects int
		server  informertest.Options
		mode    informer.ListMode
		verbs   []string
	}{
		"a small set":         {objects: 2, server: overHTTP2, verbs: []string{"watch-list"}},
		"HTTP/1.1":            {objects: quietObjects, verbs: []string{"watch-list"}},
		"lists in pages":      {objects: quietObjects, server: overHTTP2, mode: informer.ListModePaged, verbs: []string{"list limit=500", "watch rv=41"}},
		"watch-lists refused": {objects: quietObjects, server: informertest.Options{TLS: true, Wrap: refuse}, verbs: []string{"watch-list", "list limit=500", "watch rv=41"}},
		"no bookmarks come":   {objects: quietObjects, server: informertest.Options{TLS: true, BookmarkInterval: time.Hour}, verbs: []string{"watch-list"}},
	} {
		harness.BubbleRun(t, name, test.server, func(t *testing.T, w *harness.World) {
			w.CreatePods(harness.Keys(test.objects)...)
			i := harness.RunningAuto(w, informer.InformerConfig{Handler: &harness.Recorder{}, ListMode: test.mode, StallTimeout: time.Hour})
			time.Sleep(10 * time.Minute)
			require.Equal(t, test.verbs, w.Verbs())
			require.Zero(t, i.Status().Counts.Watches.Quiet)
		})
	}
}

// Handlers that share a watch keep it: the end of one reader would not end the watch of the others.
func TestSharedWatchListIsNotReplaced(t *testing.T) {
	harness.Bubble(t, overHTTP2, func(t *testing.T, w *harness.World) {
		w.CreatePods(harness.Keys(quietObjects)...)
		s := harness.Share(w, informer.InformerConfig{ListMode: informer.ListModeWatchList})
		harness.AddHandler(t, s, &harness.Recorder{})
		harness.AddHandler(t, s, &harness.Recorder{})
		defer harness.Start(s.RunWithContext)()
		time.Sleep(10 * time.Minute)
		w.RequireOneWatch()
		require.False(t, slices.ContainsFunc(w.Requests(), func(r informertest.Request) bool { return r.Verb == "list" }))
		require.Zero(t, s.Status().Counts.Watches.Quiet)
	})
}
