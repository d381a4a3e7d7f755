package tests_test

import (
	"context"
	"net/http"
	"sync/atomic"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
)

// Faults that tests put before the simulated server, and ListerWatchers for what no
// server would say.

// before lets a test act when a request arrives, before the server answers it.
// The request is answered by the server if act returns true.
func before(act func(w http.ResponseWriter, r *http.Request) bool) func(http.Handler) http.Handler {
	return func(server http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if act(w, r) {
				server.ServeHTTP(w, r)
			}
		})
	}
}

// answerOnce has answer answer the first request that is meant.
func answerOnce(meant func(*http.Request) bool, answer func(w http.ResponseWriter, r *http.Request)) func(http.Handler) http.Handler {
	var answered atomic.Bool
	return before(func(w http.ResponseWriter, r *http.Request) bool {
		if meant(r) && answered.CompareAndSwap(false, true) {
			answer(w, r)
			return false
		}
		return true
	})
}

func isWatch(r *http.Request) bool   { return r.URL.Query().Get("watch") != "" }
func continues(r *http.Request) bool { return r.URL.Query().Get("continue") != "" }

// cutting writes part of an answer and then breaks the connection.
type cutting struct {
	http.ResponseWriter
	left int
}

func (c *cutting) Write(b []byte) (int, error) {
	if len(b) < c.left {
		c.left -= len(b)
		return c.ResponseWriter.Write(b)
	}
	_, _ = c.ResponseWriter.Write(b[:c.left])
	_ = http.NewResponseController(c.ResponseWriter).Flush()
	panic(http.ErrAbortHandler)
}

// cutOnce cuts the first answer to a request that is meant after some bytes, and
// then calls after.
func cutOnce(meant func(*http.Request) bool, bytes int, after func()) func(http.Handler) http.Handler {
	var cut atomic.Bool
	return func(server http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if meant(r) && cut.CompareAndSwap(false, true) {
				defer after()
				w = &cutting{ResponseWriter: w, left: bytes}
			}
			server.ServeHTTP(w, r)
		})
	}
}

// relist cuts the watch and makes the server forget the past, so that the
// informer has to list again, and waits until it may have.
func (w *world) relist() {
	w.down(func() {})
}

// down does what happens while the informer has no connection. It has to list
// again then.
func (w *world) down(meanwhile func()) {
	w.blocked.Lock()
	w.CloseClientConnections()
	synctest.Wait()
	meanwhile()
	w.create("zz/relist")
	w.remove("zz/relist")
	w.Compact()
	w.blocked.Unlock()
	time.Sleep(time.Minute)
}

// silent answers watches with a header, perhaps a bookmark, and silence.
func silent(bookmark string) func(http.Handler) http.Handler {
	return before(func(w http.ResponseWriter, r *http.Request) bool {
		if !isWatch(r) {
			return true
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusOK)
		_, _ = w.Write([]byte(bookmark))
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
		return false
	})
}

// script is a ListerWatcher of functions, for what no server would say.
type script struct {
	list  func(ctx context.Context, opts metav1.ListOptions) (runtime.Object, error)
	watch func(ctx context.Context, opts metav1.ListOptions) (watch.Interface, error)
}

func (s script) lw() cache.ListerWatcher {
	return &cache.ListWatch{ListWithContextFunc: s.list, WatchFuncWithContext: s.watch}
}

// listing always lists objs in version rv.
func listing(rv string, objs ...*unstructured.Unstructured) func(context.Context, metav1.ListOptions) (runtime.Object, error) {
	return func(context.Context, metav1.ListOptions) (runtime.Object, error) { return list(rv, "", objs...), nil }
}

// deletions keeps what a handler was told of deletions.
type deletions struct {
	*recorder
	objects *[]interface{}
}

func (d deletions) OnDelete(obj interface{}) {
	*d.objects = append(*d.objects, obj)
	d.recorder.OnDelete(obj)
}

func example(apiVersion, kind string) *unstructured.Unstructured {
	obj := &unstructured.Unstructured{}
	obj.SetAPIVersion(apiVersion)
	obj.SetKind(kind)
	return obj
}

func isWatchList(r *http.Request) bool { return r.URL.Query().Get("sendInitialEvents") == "true" }

// ignoring is r for a server that does not know some parameters.
func ignoring(r *http.Request, parameters ...string) *http.Request {
	r = r.Clone(r.Context())
	query := r.URL.Query()
	for _, parameter := range parameters {
		query.Del(parameter)
	}
	r.URL.RawQuery = query.Encode()
	return r
}
