package lists_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/tools/cache"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/informertest"
	"github.com/rvinformer/informer/objectcache"
	"github.com/rvinformer/informer/tests/harness"
)

// unversionedEnd answers watch-lists at once with a bookmark that ends the initial events and has no
// resource version, and shows nothing, while it is set.
type unversionedEnd struct{ atomic.Bool }

func (u *unversionedEnd) wrap(server http.Handler) http.Handler {
	return harness.Before(func(w http.ResponseWriter, r *http.Request) bool {
		if !u.Load() || !harness.IsWatchList(r) || r.URL.Path != "/api/v1/pods" {
			return true
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintln(w, `{"type":"BOOKMARK","object":{"kind":"Pod","apiVersion":"v1","metadata":{"creationTimestamp":null,"annotations":{"k8s.io/initial-events-end":"true"}}}}`)
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
		return false
	})(server)
}

// requirePaged requires that a watch-list was tried once, and that pages are read since, for a reason.
func requirePaged(t *testing.T, w *harness.World, s informer.Status, reason string) {
	t.Helper()
	require.Equal(t, 1, strings.Count(strings.Join(w.Verbs(), " "), "watch-list"), "%v", w.Verbs())
	require.Equal(t, informer.ListModePaged, s.ListMode)
	require.ErrorContains(t, s.Fallback, reason)
}

// A bookmark without a resource version ends no initial events: nothing is deleted, and the set is
// read in pages, now and later.
func TestUnversionedEndOfInitialEventsEndsNothing(t *testing.T) {
	const reason = "the bookmark that ends the initial events has no resource version"
	for name, test := range map[string]func(t *testing.T, w *harness.World, odd *unversionedEnd){
		"nothing known": func(t *testing.T, w *harness.World, odd *unversionedEnd) {
			var r harness.Recorder
			i := harness.RunningAuto(w, informer.InformerConfig{Handler: &r})
			synctest.Wait()
			require.True(t, i.HasSynced())
			w.RequireState(&r)
			requirePaged(t, w, i.Status(), reason)
			w.Relist()
			w.RequireState(&r)
			requirePaged(t, w, i.Status(), reason)
		},
		"read before": func(t *testing.T, w *harness.World, odd *unversionedEnd) {
			odd.Store(false)
			var r harness.Recorder
			i := harness.RunningAuto(w, informer.InformerConfig{Handler: &r})
			synctest.Wait()
			odd.Store(true)
			w.ResetRequests()
			r.Forget()
			w.Relist()
			w.RequireState(&r)
			require.NotContains(t, strings.Join(r.Events(), "\n"), "delete a/")
			requirePaged(t, w, i.Status(), reason)
		},
		"storage": func(t *testing.T, w *harness.World, odd *unversionedEnd) {
			var r harness.Recorder
			storage := informer.NewResourceVersionStorage()
			harness.Fill(t, w, storage, &r)
			w.DeletePods("a/0003")
			i := harness.RunningAuto(w, informer.InformerConfig{Handler: &r, Storage: storage})
			synctest.Wait()
			require.True(t, i.HasSynced())
			w.RequireState(&r)
			require.Equal(t, 1, strings.Count(strings.Join(r.Events(), "\n"), "delete"))
			requirePaged(t, w, i.Status(), reason)
		},
		"expired checkpoint": func(t *testing.T, w *harness.World, odd *unversionedEnd) {
			var r harness.Recorder
			s := w.Lived(&r)
			w.DeletePods("a/0003")
			w.Compact()
			i := harness.RunningAuto(w, informer.InformerConfig{Handler: &r, Checkpoint: s})
			time.Sleep(10 * time.Second)
			synctest.Wait()
			require.True(t, i.HasSynced())
			w.RequireState(&r)
			require.Equal(t, 1, strings.Count(strings.Join(r.Events(), "\n"), "delete"))
			requirePaged(t, w, i.Status(), reason)
		},
		"expired snapshot": func(t *testing.T, w *harness.World, odd *unversionedEnd) {
			store := &harness.MemoryCheckpoint{}
			options := objectcache.Options{Snapshot: store, ErrorHandler: harness.IgnoreErrors, ListMode: informer.ListModePaged}
			example := harness.ExampleObject("v1", "Pod")
			stop := harness.Settle(objectcache.NewSharedIndexInformerWithOptions(w.Lister(), example, options).RunWithContext)
			stop()
			w.DeletePods("a/0003")
			w.Compact()
			w.ResetRequests()
			options.ListMode = informer.ListModeAuto
			i := objectcache.NewSharedIndexInformerWithOptions(w.Lister(), example, options)
			var deleted atomic.Int32
			_, err := i.AddEventHandler(cache.ResourceEventHandlerFuncs{DeleteFunc: func(interface{}) { deleted.Add(1) }})
			require.NoError(t, err)
			defer harness.Start(i.RunWithContext)()
			harness.Sleep(10 * time.Second)
			require.True(t, i.HasSynced())
			require.Len(t, i.GetStore().ListKeys(), 4)
			require.LessOrEqual(t, deleted.Load(), int32(1))
			requirePaged(t, w, i.Status(), reason)
		},
		"shared": func(t *testing.T, w *harness.World, odd *unversionedEnd) {
			s := harness.Share(w, informer.InformerConfig{})
			var a, b, late harness.Recorder
			harness.AddHandler(t, s, &a)
			harness.AddHandler(t, s, &b)
			defer harness.Settle(s.RunWithContext)()
			require.True(t, s.HasSynced())
			harness.AddHandler(t, s, &late)
			synctest.Wait()
			w.RequireState(&a, &b, &late)
			requirePaged(t, w, s.Status(), reason)
			require.EqualValues(t, 1, w.Watching.Load())
		},
	} {
		odd := &unversionedEnd{}
		harness.BubbleRun(t, name, informertest.Options{Wrap: odd.wrap}, func(t *testing.T, w *harness.World) {
			odd.Store(true)
			w.CreatePods(harness.Keys(5)...)
			test(t, w, odd)
		})
	}
}

// ignoresWatchLists makes a server that does not know watch-lists, and sends no bookmarks.
func ignoresWatchLists(server http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		server.ServeHTTP(w, harness.Ignoring(r, "sendInitialEvents", "resourceVersionMatch", "allowWatchBookmarks"))
	})
}

// Where changes come all the time, and no bookmark does, the set is read in pages after a minute.
func TestChangesWithoutABookmarkDoNotHoldUpTheFirstList(t *testing.T) {
	const reason = "no bookmark has ended the initial events"
	busyUntil := func(t *testing.T, w *harness.World, synced func() bool) {
		t.Helper()
		began := time.Now()
		for n := 0; !synced(); n++ {
			require.Less(t, time.Since(began), 75*time.Second)
			w.UpdatePod("a/0000", fmt.Sprint(n))
			harness.Sleep(3 * time.Second)
		}
		require.Greater(t, time.Since(began), 50*time.Second)
	}
	harness.BubbleRun(t, "alone", informertest.Options{Wrap: ignoresWatchLists}, func(t *testing.T, w *harness.World) {
		w.CreatePods(harness.Keys(10)...)
		var r harness.Recorder
		i := harness.RunningAuto(w, informer.InformerConfig{Handler: &r})
		busyUntil(t, w, i.HasSynced)
		w.RequireState(&r)
		requirePaged(t, w, i.Status(), reason)
		w.Relist()
		w.RequireState(&r)
		requirePaged(t, w, i.Status(), reason)
	})
	harness.BubbleRun(t, "shared", informertest.Options{Wrap: ignoresWatchLists}, func(t *testing.T, w *harness.World) {
		w.CreatePods(harness.Keys(10)...)
		s := harness.Share(w, informer.InformerConfig{})
		all := []*harness.Recorder{{}, {}, {Before: func(string) { time.Sleep(time.Second) }}}
		for _, r := range all {
			harness.AddHandler(t, s, r)
		}
		defer harness.Start(s.RunWithContext)()
		busyUntil(t, w, s.HasSynced)
		harness.Sleep(time.Minute)
		w.RequireState(all...)
		requirePaged(t, w, s.Status(), reason)
	})
}

// podEvent is an initial event of a watch-list, or a change.
func podEvent(kind string, n, version int) string {
	return fmt.Sprintf(`{"type":%q,"object":{"kind":"Pod","apiVersion":"v1","metadata":{"namespace":"a","name":"%d","uid":"%d","resourceVersion":"%d"}}}`+"\n", kind, n, n, version)
}

// A set may take long: neither objects that come slowly nor a slow handler is a server that does not
// end its initial events.
func TestSlowSetIsReadByWatchList(t *testing.T) {
	const objects = 60
	for name, test := range map[string]struct {
		pause   time.Duration
		change  bool
		handler time.Duration
	}{
		"slow server":              {pause: 5 * time.Second},
		"slow handler of a change": {change: true, handler: 1500 * time.Millisecond},
	} {
		answer := harness.Before(func(w http.ResponseWriter, r *http.Request) bool {
			if !harness.IsWatchList(r) {
				return true
			}
			w.Header().Set("Content-Type", "application/json")
			write := func(event string) {
				_, _ = w.Write([]byte(event))
				_ = http.NewResponseController(w).Flush()
				time.Sleep(test.pause)
			}
			for n := range objects {
				write(podEvent("ADDED", n, n+2))
				if test.change {
					write(podEvent("MODIFIED", n, n+1000))
				}
			}
			write(`{"type":"BOOKMARK","object":{"kind":"Pod","apiVersion":"v1","metadata":{"resourceVersion":"2000","annotations":{"k8s.io/initial-events-end":"true"}}}}` + "\n")
			<-r.Context().Done()
			return false
		})
		harness.BubbleRun(t, name, informertest.Options{Wrap: answer}, func(t *testing.T, w *harness.World) {
			r := harness.Recorder{Before: func(string) { time.Sleep(test.handler) }}
			i := harness.RunningAuto(w, informer.InformerConfig{Handler: &r, Budget: informer.NewBudget(1000)})
			<-i.HasSyncedChecker().Done()
			require.NoError(t, i.Status().Fallback)
			require.Equal(t, informer.ListModeWatchList, i.Status().ListMode)
			require.Len(t, r.State(), objects)
			require.Equal(t, []string{"watch-list"}, w.Verbs())
		})
	}
}
