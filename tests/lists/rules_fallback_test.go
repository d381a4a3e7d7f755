package lists_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/scheme"
	fcache "k8s.io/client-go/tools/cache/testing"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/informertest"
	"github.com/rvinformer/informer/tests/harness"
)

var modesWithWatchLists = map[string]informer.ListMode{"auto": informer.ListModeAuto, "watch-list": informer.ListModeWatchList}

// A server, or a proxy, that refuses watch-lists only is read in pages: at once if a list would not
// get the same answer, and otherwise after the second refusal.
func TestRule9ARefusedWatchListIsReadInPages(t *testing.T) {
	atOnce := []int{400, 403, 404, 405, 406, 409, 415, 418, 422, 500, 501, 505, 507}
	second := []int{0, 401, 408, 429, 502, 503, 504}
	for _, code := range slices.Concat(atOnce, second) {
		for name, mode := range modesWithWatchLists {
			harness.BubbleRun(t, fmt.Sprint(code, "_", name), informertest.Options{Wrap: harness.Refusing(code, harness.IsWatchList)}, func(t *testing.T, w *harness.World) {
				w.CreatePods(harness.Keys(3)...)
				var r harness.Recorder
				var f harness.Failures
				i := harness.RunningAuto(w, informer.InformerConfig{ListMode: mode, Handler: &r, ErrorHandler: f.Handle})
				asked := 1
				if slices.Contains(second, code) {
					asked = 2
					time.Sleep(15 * time.Second)
				}
				synctest.Wait()
				require.True(t, i.HasSynced())
				require.Equal(t, append(slices.Repeat([]string{"watch-list"}, asked), "list limit=500", "watch rv=4"), w.Verbs())
				require.Error(t, i.Status().Fallback)
				require.Equal(t, informer.ListModePaged, i.Status().ListMode)
				require.NoError(t, i.Status().LastError)
				if errs, _ := f.All(); asked == 1 {
					require.Empty(t, errs, "what a list replaces at once is no failure")
				}
				w.DeletePods("a/0000")
				w.CreatePods("a/new")
				synctest.Wait()
				w.RequireState(&r)
			})
		}
	}
}

// Where lists are refused as well, watch-lists are tried again, and nothing is remembered of them.
func TestRule9WatchListsAreTriedAgainWhereListsAreRefused(t *testing.T) {
	for _, code := range []int{0, 401, 403, 404, 429, 500} {
		t.Run(fmt.Sprint(code), func(t *testing.T) {
			var serving atomic.Bool
			meant := func(r *http.Request) bool {
				return strings.HasSuffix(r.URL.Path, "/pods") && (!harness.IsWatch(r) || !serving.Load())
			}
			harness.Bubble(t, informertest.Options{Wrap: harness.Refusing(code, meant)}, func(t *testing.T, w *harness.World) {
				w.CreatePods(harness.Keys(3)...)
				var r harness.Recorder
				i := harness.RunningAuto(w, informer.InformerConfig{Handler: &r})
				time.Sleep(10 * time.Minute)
				require.False(t, i.HasSynced())
				require.Error(t, i.Status().LastError)
				asked := strings.Join(w.Verbs(), " ")
				require.Greater(t, strings.Count(asked, "watch-list"), 4)
				require.Greater(t, strings.Count(asked, "list limit=500"), 4)
				require.LessOrEqual(t, len(w.Verbs()), 40)
				serving.Store(true)
				time.Sleep(2 * time.Minute)
				require.True(t, i.HasSynced())
				require.Equal(t, informer.ListModeWatchList, i.Status().ListMode)
				require.NoError(t, i.Status().Fallback)
				w.RequireState(&r)
			})
		})
	}
}

// A server that was away is read with a watch-list when it is back, however long that took.
func TestRule9AnOutageIsNoFallback(t *testing.T) {
	for _, code := range []int{0, 502, 503} {
		for _, lasts := range []time.Duration{10 * time.Second, 33 * time.Second, 5 * time.Minute, time.Hour} {
			t.Run(fmt.Sprint(code, " ", lasts), func(t *testing.T) {
				var serving atomic.Bool
				meant := func(*http.Request) bool { return !serving.Load() }
				harness.Bubble(t, informertest.Options{Wrap: harness.Refusing(code, meant)}, func(t *testing.T, w *harness.World) {
					w.CreatePods(harness.Keys(3)...)
					var r harness.Recorder
					i := harness.RunningAuto(w, informer.InformerConfig{Handler: &r})
					time.Sleep(lasts)
					serving.Store(true)
					w.ResetRequests()
					time.Sleep(time.Minute)
					require.True(t, i.HasSynced())
					require.Equal(t, []string{"watch-list"}, w.Verbs())
					require.NoError(t, i.Status().Fallback)
					w.RequireState(&r)
				})
			})
		}
	}
}

// A server that asks to be left alone is left alone, whatever it is asked for.
func TestRetryAfterIsObeyedInEveryListMode(t *testing.T) {
	const atMost = 6 // in 20 minutes of 240 seconds each
	for name, mode := range map[string]informer.ListMode{
		"auto": informer.ListModeAuto, "paged": informer.ListModePaged, "full": informer.ListModeFull, "watch-list": informer.ListModeWatchList,
	} {
		for _, code := range []int{429, 500, 503} {
			for _, only := range []string{"all", "watch-lists", "watches"} {
				t.Run(fmt.Sprint(name, " ", code, " ", only), func(t *testing.T) {
					meant := map[string]func(*http.Request) bool{"all": func(*http.Request) bool { return true }, "watch-lists": harness.IsWatchList, "watches": harness.IsWatch}[only]
					var refused atomic.Int32
					wrap := harness.Before(func(w http.ResponseWriter, r *http.Request) bool {
						if !meant(r) {
							return true
						}
						refused.Add(1)
						w.Header().Set("Retry-After", "240")
						http.Error(w, "busy", code)
						return false
					})
					harness.Bubble(t, informertest.Options{Wrap: wrap}, func(t *testing.T, w *harness.World) {
						w.CreatePods("a/1")
						var r harness.Recorder
						i := harness.RunningAuto(w, informer.InformerConfig{ListMode: mode, Handler: &r})
						time.Sleep(20*time.Minute - time.Second)
						require.LessOrEqual(t, refused.Load(), int32(atMost), "%q", w.Verbs())
						if only != "all" {
							require.True(t, i.HasSynced())
							require.Equal(t, map[string]string{"a/1": "2"}, r.State())
						}
					})
				})
			}
		}
	}
}

// fakeServer serves what a fake source of client-go has. Like others of its kind, it knows nothing
// of the parameters of a watch-list.
func fakeServer(source *fcache.FakeControllerSource) func(http.Handler) http.Handler {
	codec := scheme.Codecs.LegacyCodec(corev1.SchemeGroupVersion)
	encode := func(obj runtime.Object) json.RawMessage {
		text, err := runtime.Encode(codec, obj)
		if err != nil {
			panic(err)
		}
		return text
	}
	return harness.Before(func(w http.ResponseWriter, r *http.Request) bool {
		w.Header().Set("Content-Type", "application/json")
		switch {
		case !strings.HasSuffix(r.URL.Path, "/pods"):
			http.NotFound(w, r)
		case !harness.IsWatch(r):
			list, err := source.List(metav1.ListOptions{})
			if err != nil {
				http.Error(w, err.Error(), http.StatusInternalServerError)
				return false
			}
			_, _ = w.Write(encode(list))
		default:
			changes, err := source.Watch(metav1.ListOptions{ResourceVersion: r.URL.Query().Get("resourceVersion")})
			if err != nil {
				http.Error(w, err.Error(), http.StatusInternalServerError)
				return false
			}
			defer changes.Stop()
			serveEvents(w, r, changes, encode)
		}
		return false
	})
}

func serveEvents(w http.ResponseWriter, r *http.Request, changes watch.Interface, encode func(runtime.Object) json.RawMessage) {
	_ = http.NewResponseController(w).Flush()
	for {
		select {
		case <-r.Context().Done():
			return
		case event, open := <-changes.ResultChan():
			if !open {
				return
			}
			_, _ = fmt.Fprintf(w, `{"type":%q,"object":%s}`+"\n", event.Type, encode(event.Object))
			_ = http.NewResponseController(w).Flush()
		}
	}
}

// Tests of users give an informer a fake source of client-go, directly or behind a server of their
// own.
func TestFakeSourceOfClientGoIsFollowed(t *testing.T) {
	for _, overHTTP := range []bool{false, true} {
		t.Run(fmt.Sprint("over HTTP ", overHTTP), func(t *testing.T) {
			var source *fcache.FakeControllerSource
			wrap := func(server http.Handler) http.Handler {
				return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fakeServer(source)(server).ServeHTTP(w, r) })
			}
			harness.Bubble(t, informertest.Options{Wrap: wrap}, func(t *testing.T, w *harness.World) {
				source = fcache.NewFakeControllerSource()
				defer source.Broadcaster.Shutdown()
				pod := func(name string) *corev1.Pod {
					return &corev1.Pod{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}, ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: name}}
				}
				source.Add(pod("1"))
				source.Add(pod("2"))
				var r harness.Recorder
				var f harness.Failures
				config := informer.InformerConfig{ListerWatcher: source, ExampleObject: &corev1.Pod{}, Handler: &r, ErrorHandler: f.Handle}
				if overHTTP {
					config.ListerWatcher = w.Lister()
				}
				i := informer.NewResourceVersionInformer("pods", config)
				defer harness.Settle(i.RunWithContext)()
				require.True(t, i.HasSynced())
				source.Add(pod("3"))
				source.Modify(pod("1"))
				source.Delete(pod("2"))
				synctest.Wait()
				require.Equal(t, map[string]string{"a/1": "4", "a/3": "3"}, r.State())
				require.Empty(t, f.Errors())
			})
		})
	}
}
