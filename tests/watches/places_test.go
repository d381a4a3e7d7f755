package watches_test

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/informertest"
	"github.com/rvinformer/informer/objectcache"
	"github.com/rvinformer/informer/tests/harness"
)

// unversionedLists makes a server whose lists have no resource version, and whose watches begin now,
// from whatever version they are asked, as OpenShift's projects do.
func unversionedLists(w *harness.World) func(http.Handler) http.Handler {
	return func(server http.Handler) http.Handler {
		return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
			query := r.URL.Query()
			switch {
			case r.URL.Path != "/api/v1/pods":
				server.ServeHTTP(rw, r)
			case harness.IsWatchList(r):
				http.Error(rw, "unknown parameter", http.StatusUnprocessableEntity)
			case harness.IsWatch(r):
				r = r.Clone(r.Context())
				query.Set("resourceVersion", w.ResourceVersion())
				r.URL.RawQuery = query.Encode()
				server.ServeHTTP(rw, r)
			default:
				r.Header.Del("Accept-Encoding")
				answer := httptest.NewRecorder()
				server.ServeHTTP(answer, r)
				var list struct {
					Kind       string          `json:"kind"`
					APIVersion string          `json:"apiVersion"`
					Metadata   map[string]any  `json:"metadata"`
					Items      json.RawMessage `json:"items"`
				}
				if err := json.Unmarshal(answer.Body.Bytes(), &list); err == nil && answer.Code == http.StatusOK {
					delete(list.Metadata, "resourceVersion")
					text, _ := json.Marshal(list)
					answer.Body = bytes.NewBuffer(text)
				}
				rw.Header().Set("Content-Type", answer.Header().Get("Content-Type"))
				rw.WriteHeader(answer.Code)
				_, _ = rw.Write(answer.Body.Bytes())
			}
		})
	}
}

// cut breaks the connections, and does what happens before another is made.
func cut(w *harness.World, meanwhile func()) {
	w.Blocked.Lock()
	w.CloseClientConnections()
	synctest.Wait()
	meanwhile()
	w.Blocked.Unlock()
	harness.Sleep(time.Minute)
}

// Where a list has no resource version, those of events and bookmarks are no place to go on from: a
// list follows each watch.
func TestListWithoutAVersionGivesNoPlaceToGoOnFrom(t *testing.T) {
	told := map[string]func(w *harness.World){
		"event":    func(w *harness.World) { w.UpdatePod("a/1", "changed"); harness.Sleep(15 * time.Second) },
		"bookmark": func(*harness.World) { harness.Sleep(90 * time.Second) },
	}
	missed := func(w *harness.World) { w.DeletePods("a/2"); w.CreatePods("a/3") }
	run := func(name string, test func(t *testing.T, w *harness.World, tell func(w *harness.World))) {
		for what, tell := range told {
			var world harness.World
			opts := informertest.Options{Wrap: func(server http.Handler) http.Handler {
				return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) { unversionedLists(&world)(server).ServeHTTP(rw, r) })
			}}
			harness.BubbleRun(t, name+", "+what, opts, func(t *testing.T, w *harness.World) {
				world.Server = w.Server
				w.CreatePods("a/1", "a/2")
				test(t, w, tell)
			})
		}
	}
	run("checkpoint", func(t *testing.T, w *harness.World, tell func(w *harness.World)) {
		var r harness.Recorder
		s := &harness.MemoryCheckpoint{}
		c := informer.InformerConfig{Handler: &r, Checkpoint: s}
		i := harness.Follow(w, c)
		stop := w.Run(i)
		synctest.Wait()
		listed := i.Status().CurrentAsOf
		tell(w)
		require.Empty(t, i.Status().ResourceVersion)
		require.Empty(t, i.LastSyncResourceVersion())
		require.ErrorIs(t, i.WaitUntil(t.Context(), w.ResourceVersion()), informer.ErrUnorderedVersion)
		require.Equal(t, listed, i.Status().CurrentAsOf, "a watch after such a list proves nothing")
		cut(w, func() { missed(w) })
		w.RequireState(&r)
		require.NotContains(t, strings.Join(w.Verbs(), "\n"), "watch rv", "%v", w.Verbs())
		tell(w)
		stop()
		require.Empty(t, harness.ReadSaved(t, s.Bytes()).Resume)

		w.DeletePods("a/3")
		w.ResetRequests()
		defer harness.Settle(harness.Follow(w, c).RunWithContext)()
		harness.Sleep(5 * time.Minute) // the known objects have versions: three such lists are believed
		w.RequireState(&r)
		require.NotContains(t, strings.Join(w.Verbs(), "\n"), "watch rv", "%v", w.Verbs())
	})
	run("watch-list first", func(t *testing.T, w *harness.World, tell func(w *harness.World)) {
		var r harness.Recorder
		i := harness.RunningAuto(w, informer.InformerConfig{Handler: &r})
		synctest.Wait()
		tell(w)
		require.Empty(t, i.Status().ResourceVersion)
		cut(w, func() { missed(w) })
		w.RequireState(&r)
	})
	run("shared", func(t *testing.T, w *harness.World, tell func(w *harness.World)) {
		s := harness.Share(w, informer.InformerConfig{ListMode: informer.ListModePaged})
		var a, b, late harness.Recorder
		harness.AddHandler(t, s, &a)
		harness.AddHandler(t, s, &b)
		defer harness.Settle(s.RunWithContext)()
		tell(w)
		require.Empty(t, s.Status().ResourceVersion)
		harness.AddHandler(t, s, &late)
		synctest.Wait()
		tell(w)
		cut(w, func() { missed(w) })
		w.RequireState(&a, &b, &late)
		require.Empty(t, s.LastSyncResourceVersion())
	})
	run("snapshot", func(t *testing.T, w *harness.World, tell func(w *harness.World)) {
		store := &harness.MemoryCheckpoint{}
		options := objectcache.Options{Snapshot: store, ErrorHandler: harness.IgnoreErrors, ListMode: informer.ListModePaged}
		example := harness.ExampleObject("v1", "Pod")
		i := objectcache.NewSharedIndexInformerWithOptions(w.Lister(), example, options)
		stop := sync.OnceFunc(harness.Start(i.RunWithContext))
		t.Cleanup(stop)
		synctest.Wait()
		tell(w)
		require.Empty(t, i.Status().ResourceVersion)
		cut(w, func() { missed(w) })
		require.ElementsMatch(t, []string{"a/1", "a/3"}, i.GetStore().ListKeys())
		tell(w)
		require.Empty(t, i.LastSyncResourceVersion())
		stop()
		w.DeletePods("a/3")
		again := objectcache.NewSharedIndexInformerWithOptions(w.Lister(), example, options)
		defer harness.Settle(again.RunWithContext)()
		harness.Sleep(10 * time.Second)
		require.Equal(t, []string{"a/1"}, again.GetStore().ListKeys())
	})
}

// zeroBookmarks gives the bookmarks of watches the version "0".
type zeroBookmarks struct {
	http.ResponseWriter
	line []byte
}

var versionOf = regexp.MustCompile(`"resourceVersion":"\d+"`)

func (z *zeroBookmarks) Write(p []byte) (int, error) {
	z.line = append(z.line, p...)
	for {
		end := bytes.IndexByte(z.line, '\n')
		if end < 0 {
			return len(p), nil
		}
		event := string(z.line[:end+1])
		z.line = z.line[end+1:]
		if strings.Contains(event, `"BOOKMARK"`) && !strings.Contains(event, "initial-events-end") {
			event = versionOf.ReplaceAllString(event, `"resourceVersion":"0"`)
		}
		if _, err := z.ResponseWriter.Write([]byte(event)); err != nil {
			return 0, err
		}
	}
}

func (z *zeroBookmarks) Unwrap() http.ResponseWriter { return z.ResponseWriter }

func withZeroBookmarks(server http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if harness.IsWatch(r) {
			w = &zeroBookmarks{ResponseWriter: w}
		}
		server.ServeHTTP(w, r)
	})
}

// A bookmark without an order does not move the place to go on from.
func TestBookmarkWithoutAnOrderIsIgnored(t *testing.T) {
	for _, mode := range []informer.ListMode{informer.ListModePaged, informer.ListModeWatchList} {
		harness.BubbleRun(t, mode.String(), informertest.Options{Wrap: withZeroBookmarks}, func(t *testing.T, w *harness.World) {
			w.CreatePods("a/1", "a/2")
			var r harness.Recorder
			s := &harness.MemoryCheckpoint{}
			i := harness.FollowAuto(w, informer.InformerConfig{Handler: &r, Checkpoint: s, ListMode: mode})
			stop := w.Run(i)
			synctest.Wait()
			version := put(w, "a/1", "changed")
			harness.Sleep(2 * time.Minute)
			require.Equal(t, version, i.Status().ResourceVersion)
			require.Equal(t, version, i.LastSyncResourceVersion())
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			require.NoError(t, i.WaitUntil(ctx, version))
			w.ResetRequests()
			cut(w, func() { w.DeletePods("a/2") })
			w.RequireState(&r)
			require.Empty(t, w.Lists(), "%v", w.Verbs())
			harness.Sleep(2 * time.Minute)
			stop()
			require.Equal(t, w.ResourceVersion(), harness.ReadSaved(t, s.Bytes()).Resume)
		})
	}
	harness.BubbleRun(t, "shared", informertest.Options{Wrap: withZeroBookmarks}, func(t *testing.T, w *harness.World) {
		w.CreatePods("a/1", "a/2")
		s := harness.Share(w, informer.InformerConfig{})
		var a, b, late harness.Recorder
		harness.AddHandler(t, s, &a)
		harness.AddHandler(t, s, &b)
		defer harness.Settle(s.RunWithContext)()
		version := put(w, "a/1", "changed")
		harness.Sleep(2 * time.Minute)
		require.Equal(t, version, s.Status().ResourceVersion)
		harness.AddHandler(t, s, &late)
		harness.Sleep(2 * time.Minute)
		require.EqualValues(t, 1, w.Watching.Load())
		w.ResetRequests()
		cut(w, func() { w.DeletePods("a/2") })
		w.RequireState(&a, &b, &late)
		require.Empty(t, w.Lists(), "%v", w.Verbs())
	})
}

// An event whose version has no order is delivered, and does not move the place to go on from.
func TestEventWithoutAnOrderDoesNotMoveThePlace(t *testing.T) {
	for _, version := range []string{"x", "0"} {
		harness.SynctestRun(t, version, func(t *testing.T) {
			lw := &harness.Tap{OnList: harness.Lists(harness.List("5", ""))}
			lw.OnWatch = harness.Watches(func() (watch.Interface, error) {
				return harness.Stream(true,
					watch.Event{Type: watch.Added, Object: harness.Pod("a/1", "7")},
					watch.Event{Type: watch.Added, Object: harness.Pod("a/2", version)}), nil
			}, harness.Open())
			var r harness.Recorder
			i := harness.Follow(nil, informer.InformerConfig{ListerWatcher: lw, Handler: &r})
			defer harness.Start(i.RunWithContext)()
			harness.Sleep(time.Minute)
			require.Equal(t, []string{"add a/1", "add a/2"}, r.Events())
			// It goes on from before 7, which may have more events.
			require.Equal(t, []string{"list rv= limit=500", "watch rv=5", "watch rv=5"}, lw.Requests())
			require.Equal(t, "7", i.LastSyncResourceVersion())
		})
	}
}
