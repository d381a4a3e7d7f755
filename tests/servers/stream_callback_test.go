package servers_test

import (
	"net/http"
	"runtime"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/informertest"
	"github.com/rvinformer/informer/tests/harness"
)

// A request is made with code of the caller's, a tweak and a RoundTripper. Where one of them
// panics, or ends its goroutine, the request fails and is tried again.
func TestRequestFailsWhereItsCallbackDoesNotReturn(t *testing.T) {
	harness.SurvivePanics(t)
	for _, test := range []struct {
		where, how string
		fail       func()
		says       string
	}{
		{"tweak", "panics", func() { panic("callback") }, "panic: callback"},
		{"tweak", "ends its goroutine", runtime.Goexit, "ended its goroutine"},
		{"RoundTripper", "panics", func() { panic("callback") }, "panic: callback"},
		{"RoundTripper", "ends its goroutine", runtime.Goexit, "ended its goroutine"},
	} {
		harness.BubbleRun(t, test.where+" "+test.how, informertest.Options{}, func(t *testing.T, w *harness.World) {
			w.CreatePods("a/1")
			var calls atomic.Int64
			callback := func(where string) {
				if where == test.where && calls.Add(1) <= 2 {
					test.fail()
				}
			}
			config := w.Config()
			config.Wrap(func(next http.RoundTripper) http.RoundTripper {
				return roundTripper(func(r *http.Request) (*http.Response, error) {
					callback("RoundTripper")
					return next.RoundTrip(r)
				})
			})
			factory, err := informer.NewDynamicListerWatcherFactory(config)
			require.NoError(t, err)
			var r harness.Recorder
			var f harness.Failures
			i := harness.Follow(w, informer.InformerConfig{
				ListerWatcher: factory.ForResourceWithOptions("", harness.Pods, func(*metav1.ListOptions) { callback("tweak") }),
				Handler:       &r,
				ErrorHandler:  f.Handle,
			})
			stop := harness.Synced(i)
			stop()
			require.Equal(t, []string{"add a/1 initial"}, r.Events())
			errs := f.Errors()
			require.Len(t, errs, 2)
			require.ErrorContains(t, errs[0], test.says)
		})
	}
}
