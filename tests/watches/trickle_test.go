package watches_test

import (
	"fmt"
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

// endlessly answers the first watch with a text, and then with another one each time that a pause
// is over. It ignores timeoutSeconds.
func endlessly(pause time.Duration, first string, next func(n int) string) func(http.Handler) http.Handler {
	var answered atomic.Bool
	return harness.Before(func(w http.ResponseWriter, r *http.Request) bool {
		if !harness.IsWatch(r) || !answered.CompareAndSwap(false, true) {
			return true
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(first))
		for n := 0; ; n++ {
			_ = http.NewResponseController(w).Flush()
			select {
			case <-r.Context().Done():
				return false
			case <-time.After(pause):
			}
			_, _ = w.Write([]byte(next(n)))
		}
	})
}

// A server that sends an event byte by byte, and never its end, is a silent one.
func TestTrickleOfAnEventIsSilence(t *testing.T) {
	const bookmark = `{"type":"BOOKMARK","object":{"apiVersion":"v1","kind":"Pod","metadata":{"resourceVersion":"2"}}}` + "\n"
	const begins = `{"type":"ADDED","object":{"apiVersion":"v1","kind":"Pod","metadata":{"namespace":"a","name":"`
	for _, test := range []struct {
		name  string
		first string
		stall time.Duration
		most  time.Duration
	}{
		{"after a bookmark", bookmark + begins, 0, 150 * time.Second},
		{"StallTimeout", begins, 20 * time.Second, 20 * time.Second},
		{"before a bookmark", begins, 0, 31 * time.Minute},
	} {
		t.Run(test.name, func(t *testing.T) {
			wrap := endlessly(time.Second, test.first, func(int) string { return "x" })
			harness.Bubble(t, informertest.Options{Wrap: wrap}, func(t *testing.T, w *harness.World) {
				w.CreatePods("a/1")
				var r harness.Recorder
				var f harness.Failures
				harness.Settled(w, informer.InformerConfig{Handler: &r, ErrorHandler: f.Handle, StallTimeout: test.stall})
				w.CreatePods("a/2")
				time.Sleep(test.most + 10*time.Second)
				w.RequireState(&r)
				harness.ErrorAs[*informer.StallError](t, f.One(t))
			})
		})
	}
}

// A large event that comes slowly over a slow connection is progress.
func TestLargeEventOverASlowConnectionIsNoSilence(t *testing.T) {
	const size = 2 << 20
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		w.CreatePods("a/1")
		var r harness.Recorder
		var f harness.Failures
		harness.Settled(w, informer.InformerConfig{Handler: &r, ErrorHandler: f.Handle, StallTimeout: 90 * time.Second})
		for _, text := range []string{fmt.Sprintf("watch oversize=1,%d times=1", size), "watch slow=8000"} {
			fault, err := informertest.ParseFault(text)
			require.NoError(t, err)
			w.Inject(fault)
		}
		w.UpdatePod("a/1", "changed")
		time.Sleep(10 * time.Minute)
		w.RequireState(&r)
		require.Empty(t, f.Errors())
	})
}

// A watch that the server does not end when its time is over is ended by the informer, and another
// one goes on from there.
func TestWatchEndsInTimeThoughTheServerDoesNotEndIt(t *testing.T) {
	wrap := endlessly(time.Minute, "", func(n int) string {
		return fmt.Sprintf(`{"type":"BOOKMARK","object":{"apiVersion":"v1","kind":"Pod","metadata":{"resourceVersion":"%d"}}}`+"\n", 3+n)
	})
	harness.Bubble(t, informertest.Options{Wrap: wrap}, func(t *testing.T, w *harness.World) {
		w.CreatePods("a/1")
		var r harness.Recorder
		var f harness.Failures
		harness.Settled(w, informer.InformerConfig{Handler: &r, ErrorHandler: f.Handle})
		w.SetResourceVersion(100) // of bookmarks
		time.Sleep(14 * time.Minute)
		require.Len(t, w.Verbs(), 2)
		time.Sleep(18 * time.Minute)
		require.GreaterOrEqual(t, len(w.Verbs()), 3)
		require.Empty(t, f.Errors())
		w.CreatePods("a/2")
		synctest.Wait()
		w.RequireState(&r)
	})
}
