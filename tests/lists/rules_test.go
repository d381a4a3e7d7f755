package lists_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/informertest"
	"github.com/rvinformer/informer/tests/harness"
)

func TestRule1ObjectsArriveBeforeTheNextPageDoes(t *testing.T) {
	secondPage := make(chan struct{})
	hold := harness.Before(func(_ http.ResponseWriter, r *http.Request) bool {
		if harness.Continues(r) {
			<-secondPage
		}
		return true
	})
	harness.Bubble(t, informertest.Options{Wrap: hold}, func(t *testing.T, w *harness.World) {
		secondPage = make(chan struct{}) // of this bubble
		w.CreatePods("a/1", "a/2", "a/3")
		var r harness.Recorder
		i := harness.Settled(w, informer.InformerConfig{Handler: &r, WatchListPageSize: 2})
		require.Equal(t, []string{"add a/1 initial", "add a/2 initial"}, r.Events())
		require.False(t, i.HasSynced())
		require.Equal(t, informer.PhaseListing, i.Status().Phase)
		close(secondPage)
		synctest.Wait()
		require.True(t, i.HasSynced())
		w.RequireState(&r)
	})
}

// An expired token starts the generation again; the second time, the list is
// taken whole. Nothing is deleted on the way.
func TestRule2ExpiredTokens(t *testing.T) {
	var w *harness.World
	expireAll := harness.Before(func(_ http.ResponseWriter, r *http.Request) bool {
		if harness.Continues(r) {
			w.UpdatePod("z/1", fmt.Sprint(w.ResourceVersion()))
			w.Compact()
		}
		return true
	})
	harness.Bubble(t, informertest.Options{Wrap: expireAll}, func(t *testing.T, world *harness.World) {
		w = world
		w.CreatePods("a/1", "a/2", "a/3", "z/1")
		var r harness.Recorder
		i := harness.Follow(w, informer.InformerConfig{Handler: &r, WatchListPageSize: 2})
		defer harness.Settle(i.RunWithContext)()
		require.Equal(t, []string{
			"list limit=2", "list limit=2 continue",
			"list limit=2", "list limit=2 continue",
			"list", "watch rv=" + w.ResourceVersion(),
		}, w.Verbs())
		require.Equal(t, []string{"add a/1 initial", "add a/2 initial", "add a/3 initial", "add z/1 initial"}, r.Events())
		require.True(t, i.HasSynced())
		w.RequireState(&r)
	})
}

func TestRule2APageCutShortIsAskedForAgain(t *testing.T) {
	harness.Bubble(t, informertest.Options{Wrap: cutOnce(harness.Continues, 200, func() {})}, func(t *testing.T, w *harness.World) {
		w.CreatePods("a/1", "a/2", "a/3", "a/4", "a/5")
		var r harness.Recorder
		var f harness.Failures
		i := harness.Follow(w, informer.InformerConfig{Handler: &r, ErrorHandler: f.Handle, WatchListPageSize: 2})
		defer harness.Synced(i)()
		synctest.Wait()
		require.Equal(t, []string{
			"list limit=2", "list limit=2 continue", "list limit=2 continue", "list limit=2 continue",
			"watch rv=" + w.ResourceVersion(),
		}, w.Verbs())
		require.Len(t, f.Errors(), 1)
		w.RequireState(&r)
		require.Len(t, r.Events(), 5, "each object once")
	})
}

func TestRule3ASweepCoversWhatStillWaits(t *testing.T) {
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		w.CreatePods("a/1", "a/2", "a/3")
		release := make(chan struct{})
		var r harness.Recorder
		r.Before = func(string) { <-release }
		i := harness.Running(w, informer.InformerConfig{Handler: &r})
		synctest.Wait() // a/1 is in the handler, a/2 and a/3 wait

		w.Down(func() {
			w.DeletePods("a/1", "a/2") // in the handler, and waiting
			w.CreatePods("a/4")
		})
		require.False(t, i.HasSynced())
		close(release)
		synctest.Wait()
		require.True(t, i.HasSynced())
		w.RequireState(&r)
		require.Equal(t, []string{"add a/1 initial", "add a/3 initial", "add a/4", "delete a/1 unknown"}, r.Events(),
			"a/2 came and went before it could be told")
	})
}

func TestRule4StorageMovesAfterTheHandler(t *testing.T) {
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		w.CreatePods("a/1")
		storage := informer.NewResourceVersionStorage()
		hold := make(chan struct{})
		var r harness.Recorder
		r.Before = func(call string) {
			if call == "update a/1" {
				<-hold
			}
		}
		i := harness.Settled(w, informer.InformerConfig{Handler: &r, Storage: storage})
		first, _, _ := storage.GetByKey("a/1")
		acknowledged := i.Status().ResourceVersion
		require.Equal(t, w.ResourceVersion(), acknowledged)

		w.UpdatePod("a/1", "changed")
		w.CreatePods("a/2")
		synctest.Wait()
		now, _, _ := storage.GetByKey("a/1")
		require.Equal(t, first, now, "the handler has not returned")
		require.Equal(t, acknowledged, i.Status().ResourceVersion)
		require.Equal(t, 2, i.Status().Queued)
		require.Positive(t, i.Status().QueuedBytes)
		require.Equal(t, w.ResourceVersion(), i.LastSyncResourceVersion())

		close(hold)
		synctest.Wait()
		require.Equal(t, w.ResourceVersion(), i.Status().ResourceVersion)
		require.Zero(t, i.Status().Queued)
		require.Zero(t, i.Status().QueuedBytes)
		versions := w.Versions()
		for key, rv := range storage.All() {
			require.Equal(t, versions[key], rv)
		}
		require.Equal(t, len(versions), storage.Len())
	})
}

// With several workers, calls of one key never overlap and never change order.
func TestRule5OrderPerKey(t *testing.T) {
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		w.CreatePods(harness.Keys(20)...)
		var mu sync.Mutex
		inside := map[string]int{}
		most := 0
		var r harness.Recorder
		r.Before = func(call string) {
			k := strings.Fields(call)[1]
			mu.Lock()
			inside[k]++
			require.Equal(t, 1, inside[k], "two calls of %s at once", k)
			most = max(most, len(inside))
			mu.Unlock()
			time.Sleep(time.Duration(len(call)) * time.Millisecond)
			mu.Lock()
			delete(inside, k)
			mu.Unlock()
		}
		harness.Running(w, informer.InformerConfig{Handler: &r, Workers: 4})
		for round := range 30 {
			k := harness.Keys(20)[round%20]
			w.UpdatePod(k, fmt.Sprint(round))
			if round%3 == 0 {
				w.DeletePods(k)
				w.CreatePods(k)
			}
			time.Sleep(5 * time.Millisecond)
		}
		time.Sleep(time.Minute)
		w.RequireState(&r)
		require.Equal(t, 4, most, "workers side by side")
	})
}

func TestRule5NoDeleteIsLost(t *testing.T) {
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		w.CreatePods(harness.Keys(40)...)
		var r harness.Recorder
		r.Before = func(string) { time.Sleep(20 * time.Millisecond) }
		harness.Running(w, informer.InformerConfig{Handler: &r})
		time.Sleep(30 * time.Millisecond)
		// Most of these still wait as objects of the list.
		w.DeletePods(harness.Keys(20)...)
		time.Sleep(time.Minute)
		w.RequireState(&r)
		require.Len(t, r.State(), 20)
	})
}

// A page that a slow handler lets the server cut is read again, and what was
// handled of it is not told again: each time, the handler gets further.
func TestRule2APageReadAgainTellsNothingTwice(t *testing.T) {
	for name, known := range map[string]bool{"new objects": false, "known objects": true} {
		harness.BubbleRun(t, name, informertest.Options{Wrap: cutOnce(harness.Continues, 1000, func() {})}, func(t *testing.T, w *harness.World) {
			w.CreatePods(harness.Keys(20)...)
			storage := informer.NewResourceVersionStorage()
			want := "add %s initial"
			if known {
				harness.Fill(t, w, storage, &harness.Recorder{})
				want = "sync %s"
			}
			var r harness.Recorder
			harness.Running(w, informer.InformerConfig{Handler: &r, Storage: storage, WatchListPageSize: 10})
			time.Sleep(time.Minute)
			var calls []string
			for _, key := range harness.Keys(20) {
				calls = append(calls, fmt.Sprintf(want, key))
			}
			require.Equal(t, calls, r.Events())
			require.Len(t, w.Requests(), 4, "the second page twice")
		})
	}
}

// cutOnce cuts the first answer to a request that is meant after some bytes, and
// then calls after.
func cutOnce(meant func(*http.Request) bool, bytes int, after func()) func(http.Handler) http.Handler {
	var cut atomic.Bool
	return func(server http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if meant(r) && cut.CompareAndSwap(false, true) {
				defer after()
				w = &harness.Cutting{ResponseWriter: w, Left: bytes}
			}
			server.ServeHTTP(w, r)
		})
	}
}
