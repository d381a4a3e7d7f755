package servers_test

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

// A server that asks once to be left alone for a day is asked again after five minutes.
func TestLongRetryAfterIsCutToFiveMinutes(t *testing.T) {
	for _, verb := range []string{"list", "watch"} {
		t.Run(verb, func(t *testing.T) {
			var answered atomic.Bool
			tomorrow := harness.Before(func(w http.ResponseWriter, r *http.Request) bool {
				if harness.IsWatch(r) != (verb == "watch") || !answered.CompareAndSwap(false, true) {
					return true
				}
				w.Header().Set("Content-Type", "application/json")
				w.Header().Set("Retry-After", "86400")
				w.WriteHeader(http.StatusServiceUnavailable)
				_, _ = w.Write([]byte(`{"kind":"Status","apiVersion":"v1","status":"Failure","code":503,"message":"tomorrow","details":{"retryAfterSeconds":86400}}`))
				return false
			})
			harness.Bubble(t, informertest.Options{Wrap: tomorrow}, func(t *testing.T, w *harness.World) {
				w.CreatePods("a/1")
				var r harness.Recorder
				i := harness.Follow(w, informer.InformerConfig{Handler: &r})
				defer harness.Start(i.RunWithContext)()
				synctest.Wait()
				require.ErrorContains(t, i.Status().LastError, "tomorrow")
				w.CreatePods("a/2")
				time.Sleep(4 * time.Minute)
				require.ErrorContains(t, i.Status().LastError, "tomorrow")
				time.Sleep(90 * time.Second)
				require.NoError(t, i.Status().LastError)
				w.RequireState(&r)
			})
		})
	}
}
