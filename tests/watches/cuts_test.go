package watches_test

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/informertest"
	"github.com/rvinformer/informer/tests/harness"
)

// impatient ends a watch after a time in which nothing was sent, as a proxy does with an idle
// timeout.
func impatient(timeout time.Duration) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if !harness.IsWatch(r) {
				next.ServeHTTP(w, r)
				return
			}
			ctx, cut := context.WithCancel(r.Context())
			defer cut()
			proxy := &proxied{ResponseWriter: w, timeout: timeout, idle: time.AfterFunc(timeout, cut)}
			defer proxy.idle.Stop()
			next.ServeHTTP(proxy, r.WithContext(ctx))
			if ctx.Err() != nil {
				panic(http.ErrAbortHandler) // the connection breaks
			}
		})
	}
}

// proxied is an answer that begins to be idle anew with each write.
type proxied struct {
	http.ResponseWriter
	timeout time.Duration
	idle    *time.Timer
}

func (p *proxied) Write(b []byte) (int, error) {
	p.idle.Reset(p.timeout)
	return p.ResponseWriter.Write(b)
}

func (p *proxied) Unwrap() http.ResponseWriter { return p.ResponseWriter }

// Idle timeouts of 50 s keep away the bookmarks that come each minute. CurrentAsOf is renewed all
// the same, and the condition says what is wrong.
func TestCurrentAsOfBehindIdleTimeout(t *testing.T) {
	for _, mode := range []informer.ListMode{informer.ListModePaged, informer.ListModeAuto} {
		harness.BubbleRun(t, mode.String(), informertest.Options{Wrap: impatient(50 * time.Second)}, func(t *testing.T, w *harness.World) {
			w.CreatePods(harness.Keys(3)...)
			i := harness.Running(w, informer.InformerConfig{Handler: &harness.Recorder{}, ListMode: mode})
			time.Sleep(10 * time.Minute)
			requests := len(w.Requests())
			said := 0
			for range 120 {
				require.Less(t, age(i), 2*time.Minute)
				c := i.Status().Condition
				require.Equal(t, informer.ReasonCurrent, c.Reason, c.Message)
				if strings.Contains(c.Message, "something on the way") {
					said++
				}
				time.Sleep(30 * time.Second)
			}
			require.Greater(t, said, 115, "but for when a longer watch is tried")
			require.LessOrEqual(t, len(w.Requests())-requests, 2*90, "a watch and a look at the server each 45 s")
			w.CreatePods("late/1")
			time.Sleep(time.Second)
			require.Equal(t, 4, i.Status().Objects)
		})
	}
}

// A proxy that is gone is noticed after an hour.
func TestWatchesAreLongAgainWhenNothingCutsThem(t *testing.T) {
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		w.CreatePods(harness.Keys(3)...)
		i := harness.Running(w, informer.InformerConfig{Handler: &harness.Recorder{}})
		for range 4 {
			time.Sleep(40 * time.Second)
			w.CloseClientConnections()
		}
		time.Sleep(time.Minute)
		require.Contains(t, i.Status().Condition.Message, "something on the way")
		time.Sleep(2 * time.Hour)
		require.Equal(t, "changes are delivered as they come", i.Status().Condition.Message)
	})
}
