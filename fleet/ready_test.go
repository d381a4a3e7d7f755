package fleet_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rvinformer/informer/fleet"
	"github.com/rvinformer/informer/informertest"
	"github.com/rvinformer/informer/statuspage"
)

// A cluster that is dead, or silent, when the process starts does not keep it from being ready.
func TestUnreachedClusterIsNotWaitedFor(t *testing.T) {
	hangs := func(http.Handler) http.Handler {
		return http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	}
	forbids := func(http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusForbidden)
			fmt.Fprint(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","message":"no","code":403}`)
		})
	}
	for _, c := range []struct {
		name  string
		wrap  func(http.Handler) http.Handler
		ready bool
	}{{"dead", nil, true}, {"silent", hangs, true}, {"forbidden", forbids, false}} {
		bubbleRun(t, c.name, func(t *testing.T) {
			west := serve(t, informertest.Options{Wrap: c.wrap})
			if c.wrap == nil {
				west.Inject(informertest.Fault{Effect: informertest.Refuse()})
			}
			f := newFleet(t, newMirror(), fleet.Config{})
			page := statuspage.Of(f.Registry())
			ready := func(path string) (bool, string) {
				w := httptest.NewRecorder()
				page.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
				return w.Code == http.StatusOK, w.Body.String()
			}
			require.NoError(t, f.Add("west", west.Config()))
			start(t, f.Run)
			time.Sleep(10 * time.Minute)
			is, text := ready("/readyz")
			require.False(t, is, "nothing is there to serve: %s", text)

			require.NoError(t, f.Add("east", serve(t, informertest.Options{}).Config()))
			require.NoError(t, f.WaitForSync(t.Context(), "east"))
			is, text = ready("/readyz?verbose")
			require.Equal(t, c.ready, is, text)
			require.Equal(t, c.ready, page.Ready(nil) == nil)
			if is {
				require.Contains(t, text, "[+]informer/west/_/_/_/discovery not reached: ok\n")
			}
			is, text = ready("/readyz/informer/west")
			require.False(t, is, text)
			is, text = ready("/readyz/informer/east")
			require.True(t, is, text)
			require.False(t, f.HasSynced())
		})
	}
}
