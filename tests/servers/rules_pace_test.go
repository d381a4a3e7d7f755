package servers_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/informertest"
	"github.com/rvinformer/informer/informertest/oracle"
	"github.com/rvinformer/informer/tests/harness"
)

// lid ends a test whose informer asks without end: after 500
// requests, time passes with each.
type lid struct {
	mu    sync.Mutex
	times []time.Time
}

func (l *lid) wrap(server http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if l.count() > 500 {
			time.Sleep(time.Second)
		}
		server.ServeHTTP(w, r)
	})
}

func (l *lid) count() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.times = append(l.times, time.Now())
	return len(l.times)
}

// forget forgets the requests so far.
func (l *lid) forget() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.times = nil
}

// busiest is how many requests came in the busiest minute.
func (l *lid) busiest() (most int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	first := 0
	for i, at := range l.times {
		for at.Sub(l.times[first]) >= time.Minute {
			first++
		}
		most = max(most, i-first+1)
	}
	return most
}

// event writes an event of a watch.
func event(w http.ResponseWriter, kind watch.EventType, object any) {
	encoded, err := json.Marshal(object)
	if err != nil {
		panic(err)
	}
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprintf(w, `{"type":%q,"object":%s}`+"\n", kind, encoded)
	_ = http.NewResponseController(w).Flush()
}

func podBookmark(version string) any {
	return map[string]any{"kind": "Pod", "apiVersion": "v1", "metadata": map[string]any{"resourceVersion": version}}
}

// Lists are not closer together than the backoff, whatever a watch tells before it expires.
func TestRule11ExpiredWatchesDoNotHammer(t *testing.T) {
	expired := apierrors.NewResourceExpired("too old").ErrStatus
	for name, tell := range map[string]func(w http.ResponseWriter){
		"at once":          func(http.ResponseWriter) {},
		"after a bookmark": func(w http.ResponseWriter) { event(w, watch.Bookmark, podBookmark("2")) },
		"after an event": func(w http.ResponseWriter) {
			event(w, watch.Modified, harness.Object(harness.Pods, "a/1", "changed").Object)
		},
		"after a second": func(w http.ResponseWriter) {
			event(w, watch.Bookmark, podBookmark("2"))
			time.Sleep(time.Second)
		},
	} {
		t.Run(name, func(t *testing.T) {
			l := &lid{}
			forget := harness.Before(func(w http.ResponseWriter, r *http.Request) bool {
				if harness.IsWatch(r) {
					tell(w)
					event(w, watch.Error, expired)
				}
				return !harness.IsWatch(r)
			})
			harness.Bubble(t, informertest.Options{Wrap: func(server http.Handler) http.Handler { return l.wrap(forget(server)) }}, func(t *testing.T, w *harness.World) {
				w.CreatePods("a/1")
				harness.Running(w, informer.InformerConfig{Handler: &harness.Recorder{}})
				time.Sleep(10 * time.Minute)
				require.LessOrEqual(t, l.busiest(), oracle.Requests)
				require.LessOrEqual(t, len(l.times), 200, "in ten minutes, for the backoff has grown")
			})
		})
	}
}

// A watch that has lasted is followed by a list at once when its version expires.
func TestRule11ListAfterASteadyWatchDoesNotWait(t *testing.T) {
	forget := harness.Before(func(w http.ResponseWriter, r *http.Request) bool {
		if harness.IsWatch(r) {
			event(w, watch.Bookmark, podBookmark("2"))
			time.Sleep(10 * time.Second)
			event(w, watch.Error, apierrors.NewResourceExpired("too old").ErrStatus)
		}
		return !harness.IsWatch(r)
	})
	harness.Bubble(t, informertest.Options{Wrap: forget}, func(t *testing.T, w *harness.World) {
		w.CreatePods("a/1")
		harness.Running(w, informer.InformerConfig{Handler: &harness.Recorder{}})
		time.Sleep(time.Minute - time.Second)
		require.Equal(t, slices.Repeat([]string{"list limit=500", "watch rv=2"}, 6), w.Verbs())
	})
}

// A server that asks to be left alone for a second is asked each second, and not oftener.
func TestRule11RetryAfterIsObeyedForEver(t *testing.T) {
	l := &lid{}
	busy := harness.Before(func(w http.ResponseWriter, r *http.Request) bool {
		w.Header().Set("Retry-After", "1")
		http.Error(w, "busy", http.StatusTooManyRequests)
		return false
	})
	harness.Bubble(t, informertest.Options{Wrap: func(server http.Handler) http.Handler { return l.wrap(busy(server)) }}, func(t *testing.T, w *harness.World) {
		i := harness.Running(w, informer.InformerConfig{Handler: &harness.Recorder{}})
		time.Sleep(5*time.Minute + 500*time.Millisecond)
		require.True(t, apierrors.IsTooManyRequests(i.Status().LastError), "it says so: %v", i.Status().LastError)
		require.Equal(t, informer.PhaseBackoff, i.Status().Phase)
		require.LessOrEqual(t, l.busiest(), 60)
		require.Greater(t, len(l.times), 200)
	})
}

// The backoff starts again when a watch has told something for a while, or a list is complete:
// a short failure soon after an outage is a short wait.
func TestRule11TheBackoffStartsAgainAfterAnOutage(t *testing.T) {
	var down sync.Mutex
	isDown := false
	set := func(to bool) { down.Lock(); defer down.Unlock(); isDown = to }
	outage := harness.Before(func(w http.ResponseWriter, r *http.Request) bool {
		down.Lock()
		defer down.Unlock()
		if isDown {
			http.Error(w, "down", http.StatusServiceUnavailable)
		}
		return !isDown
	})
	for name, synced := range map[string]bool{"while it watches": true, "before the first list": false} {
		harness.BubbleRun(t, name, informertest.Options{Wrap: outage}, func(t *testing.T, w *harness.World) {
			set(!synced)
			w.CreatePods("a/1")
			var r harness.Recorder
			i := harness.Running(w, informer.InformerConfig{Handler: &r})
			time.Sleep(time.Minute) // without a list, an outage of a minute
			fail := func(lasts time.Duration) {
				set(true)
				w.CloseClientConnections()
				time.Sleep(lasts)
				set(false)
			}
			if synced {
				fail(40 * time.Second)
			}
			set(false)
			for i.Status().Phase != informer.PhaseWatching {
				time.Sleep(time.Second)
			}
			time.Sleep(11 * time.Second)
			fail(time.Second)
			time.Sleep(4 * time.Second)
			w.CreatePods("a/2")
			synctest.Wait()
			w.RequireState(&r)
		})
	}
}

// A list whose pages go round in a circle begins again, and is then taken whole.
func TestRule2PagesInACircle(t *testing.T) {
	for name, circle := range map[string]int{"one token": 1, "three tokens": 3, "a new token each time": 1 << 30} {
		t.Run(name, func(t *testing.T) {
			l := &lid{}
			pages := 0
			round := harness.Before(func(w http.ResponseWriter, r *http.Request) bool {
				if harness.IsWatch(r) || r.URL.Query().Get("limit") == "" {
					return true
				}
				pages++
				w.Header().Set("Content-Type", "application/json")
				fmt.Fprintf(w, `{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"2","continue":"t%d"},"items":[{"metadata":{"name":"1","namespace":"a","resourceVersion":"2","uid":"u"}}]}`, pages%circle)
				return false
			})
			harness.Bubble(t, informertest.Options{Wrap: func(server http.Handler) http.Handler { return l.wrap(round(server)) }}, func(t *testing.T, w *harness.World) {
				w.CreatePods("a/1", "a/2")
				var r harness.Recorder
				var f harness.Failures
				i := harness.Running(w, informer.InformerConfig{Handler: &r, ErrorHandler: f.Handle})
				time.Sleep(time.Minute)
				w.RequireState(&r)
				require.True(t, i.HasSynced())
				require.LessOrEqual(t, len(l.times), 30)
				require.ErrorContains(t, errors.Join(f.Errors()...), "continue token")
			})
		})
	}
}

// A page that fails for as long as tokens live ends its generation.
func TestRule2APageThatAlwaysFails(t *testing.T) {
	broken := harness.Before(func(w http.ResponseWriter, r *http.Request) bool {
		if harness.Continues(r) {
			http.Error(w, "broken", http.StatusInternalServerError)
		}
		return !harness.Continues(r)
	})
	harness.Bubble(t, informertest.Options{Wrap: broken}, func(t *testing.T, w *harness.World) {
		w.CreatePods(harness.Keys(10)...)
		var r harness.Recorder
		i := harness.Running(w, informer.InformerConfig{Handler: &r, WatchListPageSize: 3})
		time.Sleep(20 * time.Minute)
		w.RequireState(&r)
		require.True(t, i.HasSynced())
	})
}

// Pages that show nothing are not asked for as fast as they come.
func TestRule2EmptyPagesDoNotHammer(t *testing.T) {
	l := &lid{}
	n := 0
	empty := harness.Before(func(w http.ResponseWriter, r *http.Request) bool {
		n++
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"2","continue":"t%d"},"items":[]}`, n)
		return false
	})
	harness.Bubble(t, informertest.Options{Wrap: func(server http.Handler) http.Handler { return l.wrap(empty(server)) }}, func(t *testing.T, w *harness.World) {
		harness.Running(w, informer.InformerConfig{Handler: &harness.Recorder{}})
		time.Sleep(10 * time.Minute)
		require.LessOrEqual(t, l.busiest(), oracle.Requests)
	})
}

// The deletion of an object that the server cannot read is an error in a watch: a list tells.
func TestRule11AStoreReadErrorLists(t *testing.T) {
	corrupt := metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusInternalServerError, Reason: metav1.StatusReasonStoreReadError,
		Message: "corrupt object has been deleted",
	}
	told := false
	broken := harness.Before(func(w http.ResponseWriter, r *http.Request) bool {
		if !harness.IsWatch(r) || told {
			return true
		}
		told = true
		time.Sleep(10 * time.Second)
		event(w, watch.Error, corrupt)
		return false
	})
	harness.Bubble(t, informertest.Options{Wrap: broken}, func(t *testing.T, w *harness.World) {
		w.CreatePods("a/1")
		harness.Running(w, informer.InformerConfig{Handler: &harness.Recorder{}, MaxInternalErrorRetryDuration: time.Hour})
		time.Sleep(time.Minute)
		require.Equal(t, []string{"list limit=500", "watch rv=2", "list limit=500", "watch rv=2"}, w.Verbs())
	})
}

// A Reflector remembers from one ListAndWatch to the next that the server pages a list from "0".
func TestListAndWatchRemembersThatTheServerPages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var asked []string
		lw := &harness.Tap{
			OnList: func(_ context.Context, _ int, opts metav1.ListOptions) (runtime.Object, error) {
				asked = append(asked, fmt.Sprintf("rv=%s limit=%d", opts.ResourceVersion, opts.Limit))
				if opts.ResourceVersion == "0" {
					return harness.List("5", "more", harness.Pod("a/1", "2")), nil
				}
				return harness.List("5", "", harness.Pod("a/2", "3")), nil
			},
			OnWatch: harness.Watches(harness.Broken(apierrors.NewResourceExpired("old"))),
		}
		r := informer.NewReflector(lw, nil, &harness.Journal{}, 0)
		require.NoError(t, r.ListAndWatchWithContext(t.Context()))
		require.NoError(t, r.ListAndWatchWithContext(t.Context()))
		require.Equal(t, []string{"rv=0 limit=500", "rv= limit=500", "rv=5 limit=500"}, asked)
	})
}
