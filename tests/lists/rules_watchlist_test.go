package lists_test

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/informertest"
	"github.com/rvinformer/informer/tests/harness"
)

// The set comes as the events of one watch, which goes on; there is no list.
func TestRule9AWatchListIsOneStream(t *testing.T) {
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		w.CreatePods("a/1", "a/2")
		storage := informer.NewResourceVersionStorage()
		require.NoError(t, storage.Replace(map[string]interface{}{"a/1": "2", "a/gone": "1"}))
		var r harness.Recorder
		i := harness.FollowAuto(w, informer.InformerConfig{Handler: &r, Storage: storage})
		require.Equal(t, informer.ListModeAuto, i.Status().ListMode)
		defer harness.Settle(i.RunWithContext)()
		require.True(t, i.HasSynced())
		require.Equal(t, []string{"sync a/1", "add a/2 initial", "delete a/gone unknown"}, r.Events())
		require.Equal(t, informer.ListModeWatchList, i.Status().ListMode)
		require.NoError(t, i.Status().Fallback)
		require.Equal(t, informer.PhaseWatching, i.Status().Phase)
		require.Equal(t, "3", i.Status().ResourceVersion)

		r.Forget()
		w.UpdatePod("a/2", "changed")
		w.DeletePods("a/1")
		synctest.Wait()
		require.Equal(t, []string{"update a/2", "delete a/1"}, r.Events())
		require.Equal(t, []string{"watch-list rv=2"}, w.Verbs())

		w.Relist()
		w.RequireState(&r)
		require.Equal(t, []string{"watch-list rv=2", "watch rv=4", "watch rv=5", "watch-list rv=5"}, w.Verbs()[:4])
	})
}

// Objects reach the handler while others are still to come.
func TestRule9ObjectsAreToldAsTheyArrive(t *testing.T) {
	var hold chan struct{}
	slow := func(server http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			server.ServeHTTP(&holding{ResponseWriter: w, after: `"name":"0004"`, hold: hold}, r)
		})
	}
	harness.Bubble(t, informertest.Options{Wrap: slow}, func(t *testing.T, w *harness.World) {
		hold = make(chan struct{}) // of the bubble
		w.CreatePods(harness.Keys(10)...)
		var r harness.Recorder
		i := harness.RunningAuto(w, informer.InformerConfig{Handler: &r})
		harness.Sleep(9 * time.Second)
		require.Len(t, r.Events(), 4)
		require.False(t, i.HasSynced())
		hold <- struct{}{}
		synctest.Wait()
		require.True(t, i.HasSynced())
		w.RequireState(&r)
	})
}

// holding writes no further from an event that contains a text on, until hold.
type holding struct {
	http.ResponseWriter
	after string
	hold  <-chan struct{}
}

func (h *holding) Write(b []byte) (int, error) {
	if i := bytes.Index(b, []byte(h.after)); i >= 0 && h.after != "" {
		h.after = ""
		begin := bytes.LastIndexByte(b[:i], '\n') + 1
		if n, err := h.ResponseWriter.Write(b[:begin]); err != nil {
			return n, err
		}
		_ = http.NewResponseController(h.ResponseWriter).Flush()
		<-h.hold
		_, err := h.ResponseWriter.Write(b[begin:])
		return len(b), err
	}
	return h.ResponseWriter.Write(b)
}

func (h *holding) Unwrap() http.ResponseWriter { return h.ResponseWriter }

// bookmarkless is what a proxy makes of an answer that drops the bookmarks of watches.
type bookmarkless struct {
	http.ResponseWriter
	line []byte
}

func (b *bookmarkless) Write(p []byte) (int, error) {
	b.line = append(b.line, p...)
	for {
		end := bytes.IndexByte(b.line, '\n')
		if end < 0 {
			return len(p), nil
		}
		event := b.line[:end+1]
		b.line = b.line[end+1:]
		if bytes.Contains(event, []byte(`"BOOKMARK"`)) {
			continue
		}
		if _, err := b.ResponseWriter.Write(event); err != nil {
			return 0, err
		}
	}
}

func (b *bookmarkless) Unwrap() http.ResponseWriter { return b.ResponseWriter }

// Every way that a watch-list can fail ends with pages, in time, and with
// nothing lost or deleted. It is remembered.
func TestRule9Fallback(t *testing.T) {
	onWatchLists := func(change func(w http.ResponseWriter, r *http.Request, server http.Handler)) func(http.Handler) http.Handler {
		return func(server http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if harness.IsWatchList(r) {
					change(w, r, server)
				} else {
					server.ServeHTTP(w, r)
				}
			})
		}
	}
	for _, test := range []struct {
		name    string
		wrap    func(w http.ResponseWriter, r *http.Request, server http.Handler)
		known   bool // the Storage knows the set
		takes   time.Duration
		tries   int
		says    string
		busy    bool
		noEvent bool
	}{
		{name: "the server ignores the parameter, nothing known", takes: 10 * time.Second, tries: 1, says: "nothing received for 10s",
			wrap: func(w http.ResponseWriter, r *http.Request, server http.Handler) {
				// Such a server is older than the mark of bookmarks.
				server.ServeHTTP(&bookmarkless{ResponseWriter: w}, harness.Ignoring(r, "sendInitialEvents", "resourceVersionMatch"))
			}},
		{name: "the server ignores the parameter, the set is known", takes: 10 * time.Second, tries: 1, says: "nothing received for 10s", known: true,
			wrap: func(w http.ResponseWriter, r *http.Request, server http.Handler) {
				server.ServeHTTP(w, harness.Ignoring(r, "sendInitialEvents", "resourceVersionMatch"))
			}},
		{name: "the server ignores the parameter and is busy", takes: time.Minute, tries: 1, says: "the initial events", known: true, busy: true,
			wrap: func(w http.ResponseWriter, r *http.Request, server http.Handler) {
				server.ServeHTTP(w, harness.Ignoring(r, "sendInitialEvents", "resourceVersionMatch"))
			}},
		{name: "the server refuses it", takes: 0, tries: 1, says: "rejected our request",
			wrap: func(w http.ResponseWriter, r *http.Request, _ http.Handler) {
				http.Error(w, "sendInitialEvents is forbidden", http.StatusUnprocessableEntity)
			}},
		{name: "the server does not know watches", takes: 0, tries: 1, says: "does not allow",
			wrap: func(w http.ResponseWriter, r *http.Request, _ http.Handler) {
				http.Error(w, "no", http.StatusMethodNotAllowed)
			}},
		{name: "a proxy drops bookmarks", takes: 10 * time.Second, tries: 1, says: "nothing received for 10s",
			wrap: func(w http.ResponseWriter, r *http.Request, server http.Handler) {
				server.ServeHTTP(&bookmarkless{ResponseWriter: w}, r)
			}},
		{name: "the streams end early", takes: 2 * time.Second, tries: 2, says: "unexpected EOF",
			wrap: func(w http.ResponseWriter, r *http.Request, server http.Handler) {
				server.ServeHTTP(&harness.Cutting{ResponseWriter: w, Left: 900}, r)
			}},
		{name: "the streams end early, in order", takes: 2 * time.Second, tries: 2, says: "unexpected EOF",
			wrap: func(w http.ResponseWriter, r *http.Request, server http.Handler) {
				w.Header().Set("Content-Type", "application/json")
				_, _ = w.Write([]byte(`{"type":"ADDED","object":{"kind":"Pod","apiVersion":"v1","metadata":{"namespace":"a","name":"0000","resourceVersion":"2"}}}`))
			}},
		{name: "the version expires meanwhile", takes: 2 * time.Second, tries: 2, says: "too old",
			wrap: func(w http.ResponseWriter, r *http.Request, server http.Handler) {
				w.Header().Set("Content-Type", "application/json")
				_, _ = w.Write([]byte(`{"type":"ERROR","object":{"kind":"Status","apiVersion":"v1","status":"Failure","message":"too old","reason":"Expired","code":410}}`))
			}},
	} {
		harness.BubbleRun(t, test.name, informertest.Options{Wrap: onWatchLists(test.wrap)}, func(t *testing.T, w *harness.World) {
			w.CreatePods(harness.Keys(10)...)
			var r harness.Recorder
			storage := informer.NewResourceVersionStorage()
			if test.known {
				harness.Fill(t, w, storage, &r)
			}
			var f harness.Failures
			factory := w.Factory()
			config := informer.InformerConfig{ListerWatcher: factory.ForResource("", harness.Pods), Handler: &r, Storage: storage, ErrorHandler: f.Handle}
			i := informer.NewResourceVersionInformer("pods", config)
			began := time.Now()
			stop := harness.Start(i.RunWithContext)
			defer func() { stop() }()
			for n := 0; test.busy && !i.HasSynced(); n++ {
				w.UpdatePod("a/0000", time.Now().String())
				time.Sleep(5 * time.Second)
			}
			<-i.HasSyncedChecker().Done()
			require.LessOrEqual(t, time.Since(began), test.takes+5*time.Second)
			synctest.Wait()
			w.RequireState(&r)
			require.Equal(t, test.tries, strings.Count(strings.Join(w.Verbs(), " "), "watch-list"))
			require.Equal(t, informer.ListModePaged, i.Status().ListMode)
			require.ErrorContains(t, i.Status().Fallback, test.says)
			for _, call := range r.Events() {
				require.NotContains(t, call, "delete")
			}

			// Another informer, another run: it is known for an hour.
			stop()
			w.ResetRequests()
			config.ListerWatcher = factory.ForResource("a", harness.Pods)
			again := informer.NewResourceVersionInformer("pods", config)
			stop = harness.Settle(again.RunWithContext)
			require.Equal(t, "list limit=500", w.Verbs()[0])
			require.ErrorContains(t, again.Status().Fallback, test.says)
			stop()
			time.Sleep(time.Hour)
			w.ResetRequests()
			stop = harness.Settle(again.RunWithContext)
			require.Contains(t, w.Verbs()[0], "watch-list")
		})
	}
}

// A failure that has nothing to do with watch-lists is no reason to give them up.
func TestRule9OtherFailuresAreTriedAgain(t *testing.T) {
	refusals := 0
	refuse := harness.Before(func(w http.ResponseWriter, r *http.Request) bool {
		if refusals++; refusals <= 3 {
			http.Error(w, "busy", []int{0, http.StatusTooManyRequests, http.StatusServiceUnavailable, http.StatusUnauthorized}[refusals])
			return false
		}
		return true
	})
	harness.Bubble(t, informertest.Options{Wrap: refuse}, func(t *testing.T, w *harness.World) {
		w.CreatePods("a/1")
		var r harness.Recorder
		i := harness.FollowAuto(w, informer.InformerConfig{Handler: &r})
		defer harness.Synced(i)()
		w.RequireState(&r)
		require.Equal(t, []string{"watch-list", "watch-list", "list limit=500", "watch-list"}, w.Verbs())
		require.Equal(t, informer.ListModeWatchList, i.Status().ListMode)
	})
}

// What a watch-list told before it was cut may be newer than what was known
// before: the next one must not be older.
func TestRule9TheNextOneIsNotOlder(t *testing.T) {
	harness.Bubble(t, informertest.Options{Wrap: cutOnce(harness.IsWatchList, 900, func() {})}, func(t *testing.T, w *harness.World) {
		w.CreatePods(harness.Keys(10)...)
		storage := informer.NewResourceVersionStorage()
		require.NoError(t, storage.Replace(map[string]interface{}{"a/0000": "2"}))
		var r harness.Recorder
		i := harness.FollowAuto(w, informer.InformerConfig{Handler: &r, Storage: storage})
		defer harness.Synced(i)()
		w.RequireState(&r)
		require.Equal(t, []string{"watch-list rv=2", "watch-list rv=4"}, w.Verbs())
	})
}

// Objects that change or go while the set is read are not shown in it afterwards.
func TestRule9ChangesAmongTheInitialEvents(t *testing.T) {
	const events = `{"type":"ADDED","object":{"kind":"Pod","apiVersion":"v1","metadata":{"namespace":"a","name":"1","resourceVersion":"2","uid":"1"}}}
{"type":"ADDED","object":{"kind":"Pod","apiVersion":"v1","metadata":{"namespace":"a","name":"2","resourceVersion":"3","uid":"2"}}}
{"type":"DELETED","object":{"kind":"Pod","apiVersion":"v1","metadata":{"namespace":"a","name":"1","resourceVersion":"5","uid":"1"}}}
{"type":"MODIFIED","object":{"kind":"Pod","apiVersion":"v1","metadata":{"namespace":"a","name":"2","resourceVersion":"6","uid":"2"}}}
{"type":"ADDED","object":{"kind":"Pod","apiVersion":"v1","metadata":{"namespace":"a","name":"3","resourceVersion":"4","uid":"3"}}}
{"type":"BOOKMARK","object":{"kind":"Pod","apiVersion":"v1","metadata":{"resourceVersion":"6","annotations":{"k8s.io/initial-events-end":"true"}}}}
`
	answer := harness.Before(func(w http.ResponseWriter, r *http.Request) bool {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(events))
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
		return false
	})
	harness.Bubble(t, informertest.Options{Wrap: answer}, func(t *testing.T, w *harness.World) {
		storage := informer.NewResourceVersionStorage()
		for _, known := range []string{"1", "2", "4"} {
			obj := harness.Pod("a/"+known, "1")
			obj.SetUID(types.UID(known))
			require.NoError(t, storage.Add(obj))
		}
		var r harness.Recorder
		i := harness.RunningAuto(w, informer.InformerConfig{Handler: &r, Storage: storage})
		synctest.Wait()
		require.True(t, i.HasSynced())
		require.Equal(t, map[string]string{"a/2": "6", "a/3": "4"}, r.State())
		require.Contains(t, r.Events(), "delete a/1")
		require.Contains(t, r.Events(), "delete a/4 unknown")
		require.Equal(t, "6", i.LastSyncResourceVersion())
	})
}

// What a change among the initial events could not be decoded of is told with the list that follows
// the watch.
func TestRule9AChangeAmongTheInitialEventsThatCanNotBeDecoded(t *testing.T) {
	const object = `{"kind":"Pod","apiVersion":"v1","metadata":{"namespace":"a","name":"1","resourceVersion":"%d","uid":"1"},"spec":%s}`
	events := `{"type":"ADDED","object":` + fmt.Sprintf(object, 2, "{}") + `}
{"type":"MODIFIED","object":` + fmt.Sprintf(object, 6, `"odd"`) + `}
{"type":"BOOKMARK","object":{"kind":"Pod","apiVersion":"v1","metadata":{"resourceVersion":"6","annotations":{"k8s.io/initial-events-end":"true"}}}}
`
	for _, extra := range []informer.ExtraStore{nil, harness.Nothing{}} {
		var watches atomic.Int32
		answer := harness.Before(func(w http.ResponseWriter, r *http.Request) bool {
			w.Header().Set("Content-Type", "application/json")
			if !harness.IsWatch(r) {
				_, _ = fmt.Fprintf(w, `{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"6"},"items":[%s]}`, fmt.Sprintf(object, 6, "{}"))
				return false
			}
			switch {
			case watches.Add(1) == 1:
				_, _ = w.Write([]byte(events))
			case r.URL.Query().Get("sendInitialEvents") != "":
				w.WriteHeader(http.StatusUnprocessableEntity)
				return false
			}
			_ = http.NewResponseController(w).Flush()
			select {
			case <-r.Context().Done():
			case <-time.After(10 * time.Minute):
			}
			return false
		})
		harness.Bubble(t, informertest.Options{Wrap: answer}, func(t *testing.T, w *harness.World) {
			var r harness.Recorder
			i := harness.RunningAuto(w, informer.InformerConfig{Handler: &r, ExampleObject: &corev1.Pod{}, ExtraStore: extra})
			synctest.Wait()
			require.True(t, i.HasSynced())
			require.EqualValues(t, 1, i.Status().Skipped)
			time.Sleep(time.Hour)
			require.Equal(t, map[string]string{"a/1": "6"}, r.State())
		})
	}
}

// A slow handler holds the reading up; that is no silence of the server's.
func TestRule9ASlowHandlerIsNoSilence(t *testing.T) {
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		w.CreatePods(harness.Keys(100)...)
		var r harness.Recorder
		r.Before = func(string) { time.Sleep(time.Minute) }
		i := harness.FollowAuto(w, informer.InformerConfig{Handler: &r, Budget: informer.NewBudget(1000)})
		defer harness.Synced(i)()
		require.Equal(t, informer.ListModeWatchList, i.Status().ListMode)
		w.RequireState(&r)
	})
}

// ListModeWatchList tries a watch-list for every generation, whatever is
// remembered, and also falls back for it.
func TestRule9ListModeWatchListTriesAgain(t *testing.T) {
	refuse := harness.Refusing(http.StatusBadRequest, harness.IsWatchList)
	harness.Bubble(t, informertest.Options{Wrap: refuse}, func(t *testing.T, w *harness.World) {
		w.CreatePods("a/1")
		var r harness.Recorder
		i := harness.RunningAuto(w, informer.InformerConfig{Handler: &r, ListMode: informer.ListModeWatchList})
		synctest.Wait()
		w.Relist()
		w.RequireState(&r)
		require.Equal(t, []string{"watch-list", "list limit=500", "watch rv=2", "watch rv=2", "watch-list rv=2", "list limit=500", "watch rv=4"}, w.Verbs())
		require.Error(t, i.Status().Fallback)
	})
}

// A ListerWatcher of others is listed.
func TestRule9OtherListerWatchersAreListed(t *testing.T) {
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		var r harness.Recorder
		i := informer.NewResourceVersionInformer("pods", informer.InformerConfig{
			ListerWatcher: harness.Script{List: harness.Listing("5", harness.Pod("a/1", "4")), Watch: func(context.Context, metav1.ListOptions) (watch.Interface, error) { return harness.Stream(false), nil }}.LW(), Handler: &r, ErrorHandler: harness.IgnoreErrors,
		})
		defer harness.Settle(i.RunWithContext)()
		require.True(t, i.HasSynced())
		require.Equal(t, informer.ListModePaged, i.Status().ListMode)
		require.ErrorContains(t, i.Status().Fallback, "DynamicListerWatcherFactory")
	})
}

// An unreadable object among the initial events is reported, and what it may be is
// not deleted.
func TestRule9AnUnreadableInitialEvent(t *testing.T) {
	const events = `{"type":"ADDED","object":{"kind":"Pod","apiVersion":"v1","metadata":{"namespace":"a"}}}
{"type":"ADDED","object":{"kind":"Pod","apiVersion":"v1","metadata":{"namespace":"a","name":"2","resourceVersion":"3"}}}
{"type":"BOOKMARK","object":{"kind":"Pod","apiVersion":"v1","metadata":{"resourceVersion":"6","annotations":{"k8s.io/initial-events-end":"true"}}}}
`
	answer := harness.Before(func(w http.ResponseWriter, r *http.Request) bool {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(events))
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
		return false
	})
	harness.Bubble(t, informertest.Options{Wrap: answer}, func(t *testing.T, w *harness.World) {
		storage := informer.NewResourceVersionStorage()
		require.NoError(t, storage.Replace(map[string]interface{}{"a/1": "1"}))
		var r harness.Recorder
		var f harness.Failures
		i := harness.RunningAuto(w, informer.InformerConfig{Handler: &r, Storage: storage, ErrorHandler: f.Handle})
		synctest.Wait()
		require.True(t, i.HasSynced())
		require.Equal(t, []string{"add a/2 initial"}, r.Events())
		require.EqualValues(t, 1, i.Status().Skipped)
		item := harness.ErrorAs[*informer.ItemError](t, f.Errors()[0])
		require.Equal(t, 0, item.Index)
		require.True(t, item.Watch)
	})
}

// A refusal because of the caller, or of its request, says nothing of the
// watch-lists of others.
func TestRule9WhatConcernsOthersIsNotRemembered(t *testing.T) {
	for _, status := range []int{http.StatusBadRequest, http.StatusForbidden} {
		refuse := harness.Refusing(status, func(r *http.Request) bool {
			return harness.IsWatchList(r) && r.URL.Query().Get("labelSelector") != ""
		})
		harness.Bubble(t, informertest.Options{Wrap: refuse}, func(t *testing.T, w *harness.World) {
			factory := w.Factory()
			for n, lw := range []cache.ListerWatcher{
				factory.ForResourceWithOptions("", harness.Pods, func(opts *metav1.ListOptions) { opts.LabelSelector = "app" }),
				factory.ForResource("", harness.Pods),
			} {
				i := informer.NewResourceVersionInformer("pods", informer.InformerConfig{ListerWatcher: lw, Handler: &harness.Recorder{}, ErrorHandler: harness.IgnoreErrors})
				defer harness.Synced(i)()
				require.Equal(t, []informer.ListMode{informer.ListModePaged, informer.ListModeWatchList}[n], i.Status().ListMode)
			}
		})
	}
}
