package delivery_test

import (
	"fmt"
	"runtime"
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

// A handler that panics is called six times, with the pauses of a batch that fails,
// whatever happens to the object meanwhile, and what then happens to it is told anew.
func TestTheBackoffOfAHandlerThatPanics(t *testing.T) {
	harness.SurvivePanics(t)
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		w.CreatePods("a/1")
		var times []time.Time
		panics := true
		r := harness.Recorder{Before: func(call string) {
			if panics {
				times = append(times, time.Now())
				panic("no")
			}
		}}
		i := harness.Running(w, informer.InformerConfig{Handler: &r})
		for n := range 24 {
			time.Sleep(100 * time.Millisecond)
			w.UpdatePod("a/1", fmt.Sprint(n))
		}
		harness.Sleep(time.Minute)
		require.Len(t, times, 6)
		least := 100 * time.Millisecond
		for n := 1; n < len(times); n++ {
			pause := times[n].Sub(times[n-1])
			require.GreaterOrEqual(t, pause, least, "attempt %d", n)
			require.LessOrEqual(t, pause, least*3/2, "attempt %d", n)
			least *= 2
		}
		require.True(t, i.HasSynced())
		panics = false
		w.UpdatePod("a/1", "again")
		synctest.Wait()
		require.Equal(t, []string{"add a/1"}, r.Events())
	})
}

// A handler that ends its goroutine may have taken the object in, and does not keep
// waiting what is to be tried again.
func TestAnEndedGoroutineOfAHandler(t *testing.T) {
	harness.SurvivePanics(t)
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		var panics atomic.Int32
		panics.Store(1)
		r := harness.Recorder{Before: func(call string) {
			switch {
			case call == "add a/exits":
				runtime.Goexit()
			case strings.HasSuffix(call, "panics") && panics.Add(-1) >= 0:
				panic("later")
			}
		}}
		harness.Settled(w, informer.InformerConfig{Handler: &r})
		w.CreatePods("a/panics")
		synctest.Wait()
		w.CreatePods("a/exits")
		harness.Sleep(time.Minute)
		require.Equal(t, []string{"add a/panics"}, r.Events())
		w.DeletePods("a/exits")
		synctest.Wait()
		require.Equal(t, []string{"add a/panics", "delete a/exits"}, r.Events())
	})
}
