package servers_test

import (
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/informertest"
	"github.com/rvinformer/informer/tests/harness"
)

// A redirect to another server, or to the same one without TLS, is an error, and no request with
// the token goes there.
func TestRedirectToAnotherServerIsRefused(t *testing.T) {
	for name, test := range map[string]struct {
		tls     bool
		to      string
		follows bool
	}{
		"another path":      {false, "/moved", true},
		"the default port":  {false, "http://localhost:80/moved", true},
		"another host":      {false, "http://elsewhere/moved", false},
		"another port":      {false, "http://localhost:8080/moved", false},
		"without TLS":       {true, "http://localhost/moved", false},
		"another TLS host":  {true, "https://elsewhere/moved?access_token=hunter2", false},
		"with a user":       {false, "http://me:hunter2@elsewhere/moved", false},
		"another path, TLS": {true, "/moved", true},
	} {
		t.Run(name, func(t *testing.T) {
			var mu sync.Mutex
			var moved []string
			redirect := func(server http.Handler) http.Handler {
				return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					switch {
					case r.URL.Path == "/moved":
						mu.Lock()
						defer mu.Unlock()
						moved = append(moved, r.Header.Get("Authorization"))
						http.Error(w, "moved", http.StatusTeapot)
					case harness.IsWatch(r):
						server.ServeHTTP(w, r)
					default:
						http.Redirect(w, r, test.to, http.StatusTemporaryRedirect)
					}
				})
			}
			harness.Bubble(t, informertest.Options{TLS: test.tls, Wrap: redirect}, func(t *testing.T, w *harness.World) {
				config := w.Config()
				config.BearerToken = "token"
				var f harness.Failures
				harness.Running(w, informer.InformerConfig{ListerWatcher: harness.ListerOf(t, config), Handler: &harness.Recorder{}, ErrorHandler: f.Handle})
				time.Sleep(time.Second)
				errs := f.Errors()
				require.NotEmpty(t, errs)
				mu.Lock()
				defer mu.Unlock()
				if test.follows {
					require.NotEmpty(t, moved)
					require.Equal(t, "Bearer token", moved[0])
					return
				}
				require.Empty(t, moved)
				require.ErrorContains(t, errs[0], "refused")
				require.NotContains(t, errs[0].Error(), "hunter2")
			})
		})
	}
}
