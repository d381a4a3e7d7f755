package lists_test

import (
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/informertest"
	"github.com/rvinformer/informer/tests/harness"
)

// undeclared leaves the Content-Type out of an answer.
type undeclared struct{ http.ResponseWriter }

func (u undeclared) WriteHeader(code int) {
	u.Header()["Content-Type"] = nil // net/http sets none then
	u.ResponseWriter.WriteHeader(code)
}

func (u undeclared) Write(b []byte) (int, error) {
	u.Header()["Content-Type"] = nil
	return u.ResponseWriter.Write(b)
}

func (u undeclared) Unwrap() http.ResponseWriter { return u.ResponseWriter }

func leavesOutContentType(server http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		server.ServeHTTP(undeclared{w}, r)
	})
}

// An answer without a Content-Type is read as what it begins as.
func TestAnswerWithoutContentTypeIsRead(t *testing.T) {
	for _, mode := range []informer.ListMode{informer.ListModePaged, informer.ListModeFull, informer.ListModeWatchList} {
		for name, example := range map[string]runtime.Object{"unstructured": nil, "typed, JSON": &corev1.Pod{}, "typed, protobuf": &corev1.Pod{}} {
			harness.BubbleRun(t, mode.String()+" "+name, informertest.Options{Wrap: leavesOutContentType}, func(t *testing.T, w *harness.World) {
				w.CreatePods(harness.Keys(3)...)
				lister := w.Lister()
				if name == "typed, protobuf" {
					lister = harness.ListerOf(t, harness.Protobuf(w.Config()))
				}
				var r harness.Recorder
				var f harness.Failures
				i := harness.RunningAuto(w, informer.InformerConfig{ListerWatcher: lister, Handler: &r, ErrorHandler: f.Handle, ListMode: mode, ExampleObject: example, WatchListPageSize: 2})
				synctest.Wait()
				require.True(t, i.HasSynced())
				require.Equal(t, informer.PhaseWatching, i.Status().Phase, "a quiet watch is open")
				w.UpdatePod("a/0001", "changed")
				w.DeletePods("a/0002")
				harness.Sleep(10 * time.Second)
				w.RequireState(&r)
				w.CloseClientConnections()
				w.CreatePods("a/new")
				harness.Sleep(10 * time.Second)
				w.RequireState(&r)
				require.Len(t, w.Lists(), map[informer.ListMode]int{informer.ListModePaged: 2}[mode]+map[bool]int{true: 1}[mode != informer.ListModePaged])
				for _, err := range f.Errors() {
					require.NotErrorIs(t, err, informer.ErrContentType)
				}
			})
		}
	}
}

// What begins as neither JSON nor protobuf is no list and no watch.
func TestPageWithoutContentTypeIsRefused(t *testing.T) {
	page := func(meant func(*http.Request) bool) func(http.Handler) http.Handler {
		return harness.Before(func(w http.ResponseWriter, r *http.Request) bool {
			if !meant(r) {
				return true
			}
			_, _ = undeclared{w}.Write([]byte("<html>please log in</html>"))
			return false
		})
	}
	for name, meant := range map[string]func(*http.Request) bool{"watch": harness.IsWatch, "list": func(r *http.Request) bool { return !harness.IsWatch(r) }} {
		harness.BubbleRun(t, name, informertest.Options{Wrap: page(meant)}, func(t *testing.T, w *harness.World) {
			w.CreatePods(harness.Keys(3)...)
			var f harness.Failures
			i := harness.Running(w, informer.InformerConfig{Handler: &harness.Recorder{}, ErrorHandler: f.Handle})
			harness.Sleep(5 * time.Second)
			require.Equal(t, name == "watch", i.HasSynced())
			body := harness.ErrorAs[*informer.BodyError](t, i.Status().LastError)
			require.ErrorIs(t, body, informer.ErrContentType)
			require.Equal(t, name == "watch", body.Watch)
			require.Contains(t, string(body.Head), "<html>")
			if name == "watch" {
				require.Len(t, w.Lists(), 1)
			}
		})
	}
}
