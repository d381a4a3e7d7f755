package servers_test

import (
	"fmt"
	"net/http"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

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
				i := harness.Settled(w, informer.InformerConfig{Handler: &r})
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

// A server may say in the head of its answer alone when to come again, in seconds or as a date.
func TestRetryAfterIsObeyedInEveryForm(t *testing.T) {
	const status = `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"TooManyRequests","code":429,"message":"busy"}`
	inSeconds := func(until time.Time) string { return strconv.Itoa(int(time.Until(until) / time.Second)) }
	asDate := func(until time.Time) string { return until.UTC().Format(http.TimeFormat) }
	for _, test := range []struct {
		name, contentType, body string
		says                    func(until time.Time) string
		ahead                   time.Duration // the clock of the server
	}{
		{"seconds with a text", "text/plain", "busy", inSeconds, 0},
		{"seconds with a Status", "application/json", status, inSeconds, 0},
		{"date with a text", "text/plain", "busy", asDate, 0},
		{"date with a Status", "application/json", status, asDate, 0},
		{"date with a page", "text/html", "<html>busy</html>", asDate, 0},
		{"date by another clock", "text/plain", "busy", asDate, time.Hour},
	} {
		for _, code := range []int{http.StatusTooManyRequests, http.StatusServiceUnavailable} {
			for _, verb := range []string{"list", "watch"} {
				t.Run(fmt.Sprint(test.name, " ", code, " ", verb), func(t *testing.T) {
					var until time.Time // belongs to the one informer
					var early atomic.Int32
					busy := harness.Before(func(w http.ResponseWriter, r *http.Request) bool {
						if harness.IsWatch(r) != (verb == "watch") {
							return true
						}
						if until.IsZero() {
							until = time.Now().Add(2 * time.Minute)
						} else {
							early.Add(1)
						}
						if !time.Now().Before(until) {
							return true
						}
						w.Header().Set("Content-Type", test.contentType)
						w.Header().Set("Date", asDate(time.Now().Add(test.ahead)))
						w.Header().Set("Retry-After", test.says(until.Add(test.ahead)))
						w.WriteHeader(code)
						_, _ = w.Write([]byte(test.body))
						return false
					})
					harness.Bubble(t, informertest.Options{Wrap: busy}, func(t *testing.T, w *harness.World) {
						w.CreatePods("a/1")
						var r harness.Recorder
						i := harness.Running(w, informer.InformerConfig{Handler: &r})
						time.Sleep(119 * time.Second)
						require.Zero(t, early.Load())
						require.Error(t, i.Status().LastError)
						time.Sleep(2 * time.Second)
						require.NoError(t, i.Status().LastError)
						w.RequireState(&r)
					})
				})
			}
		}
	}
}

// An audit waits for five minutes at most, too: the other informers of the server wait for their
// turn meanwhile.
func TestLongRetryAfterOfAnAuditIsCutToFiveMinutes(t *testing.T) {
	var busy atomic.Bool
	tomorrow := harness.Before(func(w http.ResponseWriter, r *http.Request) bool {
		if harness.IsWatch(r) || !busy.CompareAndSwap(true, false) {
			return true
		}
		w.Header().Set("Retry-After", "86400")
		http.Error(w, "tomorrow", http.StatusServiceUnavailable)
		return false
	})
	harness.Bubble(t, informertest.Options{Wrap: tomorrow}, func(t *testing.T, w *harness.World) {
		w.CreatePods("a/1")
		i := harness.Settled(w, informer.InformerConfig{Handler: &harness.Recorder{}})
		busy.Store(true)
		began := time.Now()
		report, err := i.Audit(t.Context(), informer.AuditOptions{})
		require.NoError(t, err)
		require.Zero(t, report.Differences())
		require.False(t, busy.Load())
		require.InDelta(t, 5*time.Minute, time.Since(began), float64(time.Second))
	})
}

// Client-go's own requests wait for a date no longer than for five minutes: without the library they
// would not wait for one at all.
func TestRetryAfterADayForClientGo(t *testing.T) {
	var busy atomic.Bool
	busy.Store(true)
	tomorrow := harness.Before(func(w http.ResponseWriter, r *http.Request) bool {
		if !harness.IsWatch(r) || !busy.CompareAndSwap(true, false) {
			return true
		}
		w.Header().Set("Retry-After", time.Now().Add(24*time.Hour).UTC().Format(http.TimeFormat))
		http.Error(w, "tomorrow", http.StatusServiceUnavailable)
		return false
	})
	harness.Bubble(t, informertest.Options{Wrap: tomorrow}, func(t *testing.T, w *harness.World) {
		began := time.Now()
		opened, err := cache.ToListerWatcherWithContext(w.Lister()).WatchWithContext(t.Context(), metav1.ListOptions{ResourceVersion: w.ResourceVersion()})
		require.NoError(t, err)
		opened.Stop()
		require.LessOrEqual(t, time.Since(began), 5*time.Minute)
	})
}
