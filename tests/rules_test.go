package tests_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/informertest"
)

func TestRule1ObjectsArriveBeforeTheNextPageDoes(t *testing.T) {
	secondPage := make(chan struct{})
	hold := before(func(_ http.ResponseWriter, r *http.Request) bool {
		if continues(r) {
			<-secondPage
		}
		return true
	})
	bubble(t, informertest.Options{Wrap: hold}, func(t *testing.T, w *world) {
		secondPage = make(chan struct{}) // of this bubble
		w.create("a/1", "a/2", "a/3")
		var r recorder
		i := follow(w, informer.InformerConfig{Handler: &r, WatchListPageSize: 2})
		defer start(i.RunWithContext)()
		synctest.Wait()
		require.Equal(t, []string{"add a/1 initial", "add a/2 initial"}, r.events())
		require.False(t, i.HasSynced())
		require.Equal(t, informer.PhaseListing, i.Status().Phase)
		close(secondPage)
		synctest.Wait()
		require.True(t, i.HasSynced())
		w.requireState(&r)
	})
}

// An expired token starts the generation again; the second time, the list is
// taken whole. Nothing is deleted on the way.
func TestRule2ExpiredTokens(t *testing.T) {
	var w *world
	expireAll := before(func(_ http.ResponseWriter, r *http.Request) bool {
		if continues(r) {
			w.update("z/1", fmt.Sprint(w.ResourceVersion()))
			w.Compact()
		}
		return true
	})
	bubble(t, informertest.Options{Wrap: expireAll}, func(t *testing.T, world *world) {
		w = world
		w.create("a/1", "a/2", "a/3", "z/1")
		var r recorder
		i := follow(w, informer.InformerConfig{Handler: &r, WatchListPageSize: 2})
		defer start(i.RunWithContext)()
		synctest.Wait()
		require.Equal(t, []string{
			"list limit=2", "list limit=2 continue",
			"list limit=2", "list limit=2 continue",
			"list", "watch rv=" + w.ResourceVersion(),
		}, w.verbs())
		require.Equal(t, []string{"add a/1 initial", "add a/2 initial", "add a/3 initial", "add z/1 initial"}, r.events())
		require.True(t, i.HasSynced())
		w.requireState(&r)
	})
}

func TestRule2APageCutShortIsAskedForAgain(t *testing.T) {
	bubble(t, informertest.Options{Wrap: cutOnce(continues, 200, func() {})}, func(t *testing.T, w *world) {
		w.create("a/1", "a/2", "a/3", "a/4", "a/5")
		var r recorder
		var f failures
		i := follow(w, informer.InformerConfig{Handler: &r, ErrorHandler: f.handle, WatchListPageSize: 2})
		defer start(i.RunWithContext)()
		<-i.HasSyncedChecker().Done()
		synctest.Wait()
		require.Equal(t, []string{
			"list limit=2", "list limit=2 continue", "list limit=2 continue", "list limit=2 continue",
			"watch rv=" + w.ResourceVersion(),
		}, w.verbs())
		errs, _ := f.all()
		require.Len(t, errs, 1)
		w.requireState(&r)
		require.Len(t, r.events(), 5, "each object once")
	})
}

func TestRule3ASweepCoversWhatStillWaits(t *testing.T) {
	bubble(t, informertest.Options{}, func(t *testing.T, w *world) {
		w.create("a/1", "a/2", "a/3")
		release := make(chan struct{})
		var r recorder
		r.before = func(string) { <-release }
		i := follow(w, informer.InformerConfig{Handler: &r})
		defer start(i.RunWithContext)()
		synctest.Wait() // a/1 is in the handler, a/2 and a/3 wait

		w.down(func() {
			w.remove("a/1", "a/2") // in the handler, and waiting
			w.create("a/4")
		})
		require.False(t, i.HasSynced())
		close(release)
		synctest.Wait()
		require.True(t, i.HasSynced())
		w.requireState(&r)
		require.Equal(t, []string{"add a/1 initial", "add a/3 initial", "add a/4", "delete a/1 unknown"}, r.events(),
			"a/2 came and went before it could be told")
	})
}

func TestRule4StorageMovesAfterTheHandler(t *testing.T) {
	bubble(t, informertest.Options{}, func(t *testing.T, w *world) {
		w.create("a/1")
		storage := informer.NewResourceVersionStorage()
		hold := make(chan struct{})
		var r recorder
		r.before = func(call string) {
			if call == "update a/1" {
				<-hold
			}
		}
		i := follow(w, informer.InformerConfig{Handler: &r, Storage: storage})
		defer start(i.RunWithContext)()
		synctest.Wait()
		first, _, _ := storage.GetByKey("a/1")
		acknowledged := i.Status().ResourceVersion
		require.Equal(t, w.ResourceVersion(), acknowledged)

		w.update("a/1", "changed")
		w.create("a/2")
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
		versions, err := w.ResourceVersions(pods, "")
		require.NoError(t, err)
		for key, rv := range storage.All() {
			require.Equal(t, versions[key], rv)
		}
		require.Equal(t, len(versions), storage.Len())
	})
}

// With several workers, calls of one key never overlap and never change order.
func TestRule5OrderPerKey(t *testing.T) {
	bubble(t, informertest.Options{}, func(t *testing.T, w *world) {
		w.create(keys(20)...)
		var mu sync.Mutex
		inside := map[string]int{}
		most := 0
		var r recorder
		r.before = func(call string) {
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
		i := follow(w, informer.InformerConfig{Handler: &r, Workers: 4})
		stop := start(i.RunWithContext)
		defer stop()
		for round := range 30 {
			k := keys(20)[round%20]
			w.update(k, fmt.Sprint(round))
			if round%3 == 0 {
				w.remove(k)
				w.create(k)
			}
			time.Sleep(5 * time.Millisecond)
		}
		time.Sleep(time.Minute)
		w.requireState(&r)
		require.Equal(t, 4, most, "workers side by side")
	})
}

func TestRule5NoDeleteIsLost(t *testing.T) {
	bubble(t, informertest.Options{}, func(t *testing.T, w *world) {
		w.create(keys(40)...)
		var r recorder
		r.before = func(string) { time.Sleep(20 * time.Millisecond) }
		i := follow(w, informer.InformerConfig{Handler: &r})
		defer start(i.RunWithContext)()
		time.Sleep(30 * time.Millisecond)
		// Most of these still wait as objects of the list.
		w.remove(keys(20)...)
		time.Sleep(time.Minute)
		w.requireState(&r)
		require.Len(t, r.state(), 20)
	})
}

// A page that a slow handler lets the server cut is read again, and what was
// handled of it is not told again: each time, the handler gets further.
func TestRule2APageReadAgainTellsNothingTwice(t *testing.T) {
	for name, known := range map[string]bool{"new objects": false, "known objects": true} {
		t.Run(name, func(t *testing.T) {
			bubble(t, informertest.Options{Wrap: cutOnce(continues, 1000, func() {})}, func(t *testing.T, w *world) {
				w.create(keys(20)...)
				storage := informer.NewResourceVersionStorage()
				want := "add %s initial"
				if known {
					versions, err := w.ResourceVersions(pods, "")
					require.NoError(t, err)
					for key, rv := range versions {
						require.NoError(t, storage.Add(pod(key, rv)))
					}
					want = "sync %s"
				}
				var r recorder
				i := follow(w, informer.InformerConfig{Handler: &r, Storage: storage, WatchListPageSize: 10})
				defer start(i.RunWithContext)()
				time.Sleep(time.Minute)
				var calls []string
				for _, key := range keys(20) {
					calls = append(calls, fmt.Sprintf(want, key))
				}
				require.Equal(t, calls, r.events())
				require.Len(t, w.Requests(), 4, "the second page twice")
			})
		})
	}
}
