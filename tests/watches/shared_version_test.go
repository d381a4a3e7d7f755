package watches_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/informertest"
	"github.com/rvinformer/informer/tests/harness"
)

// A server deletes several objects in one resource version: see informertest.Server.Expire. Where its
// watch breaks between their deletions, the next one tells of all, without a list. That holds wherever
// the watch breaks, once the informer has seen that versions have several deletions.
func TestWatchThatBreaksBetweenDeletionsOfOneVersion(t *testing.T) {
	broken := 0
	for bytes := 0; bytes < 3000; bytes += 100 {
		harness.BubbleRun(t, fmt.Sprint(bytes), informertest.Options{}, func(t *testing.T, w *harness.World) {
			w.CreatePods(harness.Keys(9)...)
			r := &harness.Recorder{}
			harness.Settled(w, informer.InformerConfig{Handler: r})
			require.NoError(t, w.Expire(harness.Pods, "a", "0000", "0001"))
			synctest.Wait()
			w.RequireState(r)
			w.ResetRequests()

			heal := w.Inject(informertest.Fault{Match: informertest.Match{Verbs: []string{"watch"}}, Effect: informertest.Cut(bytes), Times: 1})
			require.NoError(t, w.Expire(harness.Pods, "a", "0002", "0003", "0004", "0005"))
			synctest.Wait()
			if deleted := 9 - 2 - len(r.State()); deleted > 0 && deleted < 4 {
				broken++
			}
			heal()
			time.Sleep(30 * time.Second)
			w.RequireState(r)
			require.Empty(t, w.Lists())
		})
	}
	require.Greater(t, broken, 3, "watches that broke between the deletions")
}

// Behind a proxy that cuts silent watches, each watch tells these deletions again, and no bookmark
// comes. The watches are taken for silent all the same, and shorter ones are asked for.
func TestDeletionsOfOneVersionBehindIdleTimeout(t *testing.T) {
	harness.Bubble(t, informertest.Options{Wrap: impatient(50 * time.Second)}, func(t *testing.T, w *harness.World) {
		w.CreatePods(harness.Keys(3)...)
		r := &harness.Recorder{}
		i := harness.Settled(w, informer.InformerConfig{Handler: r})
		require.NoError(t, w.Expire(harness.Pods, "a", "0000", "0001"))
		time.Sleep(10 * time.Minute)
		for range 60 {
			require.Less(t, age(i), 2*time.Minute)
			time.Sleep(30 * time.Second)
		}
		w.RequireState(r)
		require.Len(t, r.Events(), 3+2)
	})
}

// Where each watch breaks after it has told these deletions again, the set is listed: what breaks it
// may be the next event.
func TestWatchesThatTellOnlyDeletionsOfOneVersionAgain(t *testing.T) {
	var breaks atomic.Bool
	wrap := func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if breaks.Load() && harness.IsWatch(r) {
				ctx, cut := context.WithTimeout(r.Context(), 100*time.Millisecond)
				defer cut()
				next.ServeHTTP(w, r.WithContext(ctx))
				panic(http.ErrAbortHandler)
			}
			next.ServeHTTP(w, r)
		})
	}
	harness.Bubble(t, informertest.Options{Wrap: wrap}, func(t *testing.T, w *harness.World) {
		keys := harness.Keys(400)
		w.CreatePods(keys...)
		r := &harness.Recorder{}
		harness.Settled(w, informer.InformerConfig{Handler: r})
		var names []string
		for _, key := range keys[:300] { // more than are remembered
			names = append(names, strings.TrimPrefix(key, "a/"))
		}
		require.NoError(t, w.Expire(harness.Pods, "a", names...))
		synctest.Wait()
		w.ResetRequests()
		breaks.Store(true)
		w.CloseClientConnections()
		time.Sleep(30 * time.Second)
		require.NotEmpty(t, w.Lists())
		w.RequireState(r)
	})
}
