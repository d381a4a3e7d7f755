package checkpoints_test

import (
	"context"
	"fmt"
	"net/http"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/informertest"
	"github.com/rvinformer/informer/tests/harness"
)

// restorable answers as a kube-apiserver does whose etcd was restored from a backup.
// What is asked for a version of its future waits, and is told that it is too large; but
// a watch from there is silent.
type restorable struct {
	w         *harness.World
	restored  atomic.Bool
	forbidden bool // kube-system is
}

func (s *restorable) wrap(server http.Handler) http.Handler {
	return harness.Before(func(rw http.ResponseWriter, r *http.Request) bool {
		asked, _ := strconv.Atoi(r.URL.Query().Get("resourceVersion"))
		now, _ := strconv.Atoi(s.w.ResourceVersion())
		future := s.restored.Load() && asked > now
		switch {
		case s.forbidden && strings.HasSuffix(r.URL.Path, "/namespaces/kube-system"):
			harness.FailWith(rw, http.StatusForbidden, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403}`)
		case future && r.URL.Query().Get("watch") != "":
			rw.Header().Set("Content-Type", "application/json")
			rw.(http.Flusher).Flush()
			<-r.Context().Done()
		case future:
			harness.FailWith(rw, http.StatusGatewayTimeout, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Timeout","code":504,"message":"Timeout: Too large resource version",
				"details":{"causes":[{"reason":"ResourceVersionTooLarge","message":"Too large resource version"}]}}`)
		default:
			return true
		}
		return false
	})(server)
}

// restore takes the server back to before its newest changes, and changes something
// else.
func (s *restorable) restore(t *testing.T) {
	now, err := strconv.ParseUint(s.w.ResourceVersion(), 10, 64)
	require.NoError(t, err)
	s.w.DeletePods("a/2")
	s.w.SetResourceVersion(now - 3)
	s.w.UpdatePod("a/1", "restored")
	s.restored.Store(true)
}

func forRestorable(t *testing.T, test func(t *testing.T, w *harness.World, s *restorable)) {
	for name, forbidden := range map[string]bool{"kube-system can be read": false, "kube-system is forbidden": true} {
		t.Run(name, func(t *testing.T) {
			s := &restorable{forbidden: forbidden}
			harness.Bubble(t, informertest.Options{Wrap: s.wrap}, func(t *testing.T, w *harness.World) {
				s.w = w
				w.CreatePods("a/1", "a/2", "a/3")
				w.UpdatePod("a/1", "lost")
				test(t, w, s)
			})
		})
	}
}

func TestRule8AServerRestoredWhileDown(t *testing.T) {
	forRestorable(t, func(t *testing.T, w *harness.World, s *restorable) {
		file := filepath.Join(t.TempDir(), "pods")
		var r harness.Recorder
		run := func() (i informer.ResourceVersionInformer, stop func()) {
			i = harness.Follow(w, informer.InformerConfig{Handler: &r, Checkpoint: informer.FileCheckpoint(file)})
			return i, harness.Start(i.RunWithContext)
		}
		_, stop := run()
		synctest.Wait()
		stop()
		s.restore(t)
		r.Forget()
		i, stop := run()
		defer stop()
		harness.Sleep(10 * time.Second)
		require.True(t, i.HasSynced())
		w.RequireState(&r)
		require.Contains(t, r.Events(), "delete a/2 unknown")
	})
}

// An informer that has lost its server asks what comes back whether it was restored.
func TestRule8AServerRestoredWhileAnInformerRuns(t *testing.T) {
	forRestorable(t, func(t *testing.T, w *harness.World, s *restorable) {
		var r harness.Recorder
		i := harness.Settled(w, informer.InformerConfig{Handler: &r})
		require.True(t, i.HasSynced())
		w.Blocked.Lock() // down
		w.CloseClientConnections()
		time.Sleep(time.Minute)
		s.restore(t)
		w.Blocked.Unlock()
		r.Forget()
		harness.Sleep(2 * time.Minute)
		w.RequireState(&r)
		require.Contains(t, r.Events(), "delete a/2 unknown")
	})
}

// A server that only ever fails when it is asked for that does not keep an informer
// from its watch.
func TestAServerThatDoesNotSayWhetherItWasRestored(t *testing.T) {
	var failing atomic.Bool
	wrap := harness.Refusing(http.StatusInternalServerError, func(r *http.Request) bool {
		return failing.Load() && strings.HasSuffix(r.URL.Path, "/namespaces/kube-system")
	})
	harness.Bubble(t, informertest.Options{Wrap: wrap}, func(t *testing.T, w *harness.World) {
		w.CreatePods("a/1")
		var r harness.Recorder
		harness.Settled(w, informer.InformerConfig{Handler: &r})
		failing.Store(true)
		w.Blocked.Lock()
		w.CloseClientConnections()
		time.Sleep(time.Minute)
		w.Blocked.Unlock()
		w.UpdatePod("a/1", "changed")
		time.Sleep(5 * time.Minute)
		w.RequireState(&r)
		require.Equal(t, []string{"list limit=500"}, w.Lists())
	})
}

// A resource may have an etcd, and versions, of its own: what it says itself counts.
func TestTheResourceSaysWhetherItWasRestored(t *testing.T) {
	for _, code := range []int{http.StatusGatewayTimeout, http.StatusBadGateway} {
		t.Run(http.StatusText(code), func(t *testing.T) {
			wrap := harness.Before(func(rw http.ResponseWriter, r *http.Request) bool {
				if !strings.HasSuffix(r.URL.Path, "/namespaces/kube-system") {
					return true
				}
				rw.Header().Set("Content-Type", "application/json")
				rw.WriteHeader(code)
				_, _ = rw.Write([]byte(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Timeout","code":504,"details":{"causes":[{"reason":"ResourceVersionTooLarge"}]}}`))
				return false
			})
			harness.Bubble(t, informertest.Options{Wrap: wrap}, func(t *testing.T, w *harness.World) {
				w.CreatePods(harness.Keys(3)...)
				var r harness.Recorder
				harness.Settled(w, informer.InformerConfig{Handler: &r})
				w.ResetRequests()
				for n := range 10 {
					w.CloseClientConnections()
					w.UpdatePod("a/0000", fmt.Sprint(n))
					time.Sleep(5 * time.Second)
				}
				synctest.Wait()
				w.RequireState(&r)
				for _, request := range w.Requests() {
					if request.Verb == "list" {
						require.EqualValues(t, 1, request.Options.Limit, "no list but for the question")
					}
				}
			})
		})
	}
}

// A server, or a proxy, that ignores field selectors answers the question about one object with
// others. That says nothing of the object: the server was not restored.
func TestAServerThatIgnoresFieldSelectors(t *testing.T) {
	for _, forbidden := range []bool{false, true} {
		s := &restorable{forbidden: forbidden}
		wrap := func(server http.Handler) http.Handler {
			server = s.wrap(server)
			return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
				server.ServeHTTP(rw, harness.Ignoring(r, "fieldSelector"))
			})
		}
		harness.Bubble(t, informertest.Options{Wrap: wrap}, func(t *testing.T, w *harness.World) {
			s.w = w
			if !forbidden {
				w.CreateKubeSystem()
			}
			w.CreatePods("a/1", "a/2")
			var r harness.Recorder
			var f harness.Failures
			config := informer.InformerConfig{Handler: &r, Checkpoint: &harness.MemoryCheckpoint{}, ErrorHandler: f.Handle}
			for range 3 {
				i := harness.Follow(w, config)
				stop := w.Run(i)
				time.Sleep(5 * time.Minute)
				require.True(t, i.HasSynced())
				stop()
			}
			require.Empty(t, f.Errors())
			require.Len(t, w.Lists(), 1)
		})
	}
}

// Sources that are not ours may use versions and UIDs again: a fake clientset does.
func TestAFakeObjectThatIsCreatedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		events := watch.NewFake()
		var r harness.Recorder
		storage := informer.NewResourceVersionStorage()
		i := informer.NewResourceVersionInformer("pods", informer.InformerConfig{
			ListerWatcher: harness.Script{
				List:  harness.Listing("1"),
				Watch: func(context.Context, metav1.ListOptions) (watch.Interface, error) { return events, nil },
			}.LW(),
			Handler: &r, Storage: storage,
		})
		defer harness.Settle(i.RunWithContext)()
		for n := range 5 {
			act := []func(runtime.Object){events.Add, events.Delete}[n%2]
			act(harness.WithUID(harness.Pod("a/1", "1"), "u"))
			synctest.Wait()
		}
		require.Equal(t, []string{"add a/1", "delete a/1", "add a/1", "delete a/1", "add a/1"}, r.Events())
		require.Equal(t, 1, storage.Len())
	})
}
