package checkpoints_test

import (
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

// staleCache answers all lists of pods with an old and empty state, also those of one object and those
// that name a newer version. Watches go on.
type staleCache struct{ on, forbids atomic.Bool }

func (c *staleCache) wrap(server http.Handler) http.Handler {
	return harness.Before(func(w http.ResponseWriter, r *http.Request) bool {
		switch {
		case c.forbids.Load() && strings.HasSuffix(r.URL.Path, "/kube-system"):
			harness.FailWith(w, http.StatusForbidden, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403}`)
			return false
		case !c.on.Load() || !strings.HasSuffix(r.URL.Path, "/pods") || harness.IsWatch(r) && !harness.IsWatchList(r):
			return true
		case harness.IsWatch(r):
			http.Error(w, "no", http.StatusNotImplemented)
			return false
		}
		kind := `"PodList","apiVersion":"v1"`
		if strings.Contains(r.Header.Get("Accept"), "PartialObjectMetadataList") {
			kind = `"PartialObjectMetadataList","apiVersion":"meta.k8s.io/v1"`
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"kind":%s,"metadata":{"resourceVersion":"3"},"items":[]}`, kind)
		return false
	})(server)
}

// Something on the way answers with an old and empty state for a while, when the informer has lost its
// connection, or its process has ended. That proves neither that the server went back nor that it is
// another one, also if the namespace kube-system may not be read, or if a search over several clusters
// shows another object of a known name.
func TestStaleCacheIsNoServerThatWentBack(t *testing.T) {
	for name, d := range map[string]informertest.Dialect{"kube-apiserver": {}, "search": informertest.SearchCache()} {
		for _, forbids := range []bool{false, true} {
			for _, restarts := range []bool{false, true} {
				for _, expired := range []bool{false, true} {
					var cache staleCache
					opts := informertest.Options{Dialect: d, Wrap: cache.wrap}
					run := fmt.Sprintf("%s/forbidden %v/restart %v/expired %v", name, forbids, restarts, expired)
					harness.BubbleRun(t, run, opts, func(t *testing.T, w *harness.World) {
						cache.forbids.Store(forbids)
						w.CreateKubeSystem()
						w.CreatePods(harness.Keys(10)...)
						var r harness.Recorder
						config := informer.InformerConfig{Handler: &r, Checkpoint: &harness.MemoryCheckpoint{}}
						stop := w.Run(harness.FollowAuto(w, config))
						time.Sleep(2 * time.Minute)
						r.Forget()
						cache.on.Store(true)
						w.Blocked.Lock()
						w.CloseClientConnections()
						synctest.Wait()
						w.CreatePods("b/1")
						if expired {
							w.Compact()
						}
						w.Blocked.Unlock()
						if restarts {
							stop()
							w.Run(harness.FollowAuto(w, config))
						}
						time.Sleep(30 * time.Second)
						require.NotContains(t, fmt.Sprint(r.Events()), "delete")
						cache.on.Store(false)
						time.Sleep(2 * time.Minute)
						require.Len(t, r.State(), 11)
						if !d.TwinKeys { // else a new process may keep the other object of a name
							require.NotContains(t, fmt.Sprint(r.Events()), "delete")
						}
					})
				}
			}
		}
	}
}
