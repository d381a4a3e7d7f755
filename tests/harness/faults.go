package harness

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

// Before lets a test act when a request arrives, before the server answers it.
// The request is answered by the server if act returns true.
func Before(act func(w http.ResponseWriter, r *http.Request) bool) func(http.Handler) http.Handler {
	return func(server http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if act(w, r) {
				server.ServeHTTP(w, r)
			}
		})
	}
}

// AnswerOnce has answer answer the first request that is meant.
func AnswerOnce(meant func(*http.Request) bool, answer func(w http.ResponseWriter, r *http.Request)) func(http.Handler) http.Handler {
	var answered atomic.Bool
	return Before(func(w http.ResponseWriter, r *http.Request) bool {
		if meant(r) && answered.CompareAndSwap(false, true) {
			answer(w, r)
			return false
		}
		return true
	})
}

// Refusing answers the requests that are meant with an error, or breaks their connection off if the
// code is 0.
func Refusing(code int, meant func(*http.Request) bool) func(http.Handler) http.Handler {
	return Before(func(w http.ResponseWriter, r *http.Request) bool {
		switch {
		case !meant(r):
			return true
		case code == 0:
			panic(http.ErrAbortHandler)
		}
		http.Error(w, "no", code)
		return false
	})
}

// AnswerStatus answers with the Status of an error, as a kube-apiserver does.
func AnswerStatus(w http.ResponseWriter, err apierrors.APIStatus) {
	status := err.Status()
	status.TypeMeta = metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(int(status.Code))
	_ = json.NewEncoder(w).Encode(status)
}

// IsWatch reports whether a request is a watch, or a watch-list.
func IsWatch(r *http.Request) bool { return r.URL.Query().Get("watch") != "" }

// Continues reports whether a request is for a page of a list that is not the first.
func Continues(r *http.Request) bool { return r.URL.Query().Get("continue") != "" }

// Cutting writes part of an answer and then breaks the connection.
type Cutting struct {
	http.ResponseWriter
	Left int
}

// Write writes b, or what is left of the part, and then does not return.
func (c *Cutting) Write(b []byte) (int, error) {
	if len(b) < c.Left {
		c.Left -= len(b)
		return c.ResponseWriter.Write(b)
	}
	_, _ = c.ResponseWriter.Write(b[:c.Left])
	_ = http.NewResponseController(c.ResponseWriter).Flush()
	panic(http.ErrAbortHandler)
}

// Relist cuts the watch and makes the server forget the past, so that the
// informer has to list again, and waits until it may have.
func (w *World) Relist() {
	w.Down(func() {})
}

// Down does what happens while the informer has no connection. It has to list
// again then.
func (w *World) Down(meanwhile func()) {
	w.Blocked.Lock()
	w.CloseClientConnections()
	synctest.Wait()
	meanwhile()
	w.CreatePods("zz/relist")
	w.DeletePods("zz/relist")
	w.Compact()
	w.Blocked.Unlock()
	time.Sleep(time.Minute)
}

// Script is a ListerWatcher of functions, for what no server would say.
type Script struct {
	List  func(ctx context.Context, opts metav1.ListOptions) (runtime.Object, error)
	Watch func(ctx context.Context, opts metav1.ListOptions) (watch.Interface, error)
}

// LW is the ListerWatcher.
func (s Script) LW() cache.ListerWatcher {
	return &cache.ListWatch{ListWithContextFunc: s.List, WatchFuncWithContext: s.Watch}
}

// Listing always lists objs in version rv.
func Listing(rv string, objs ...*unstructured.Unstructured) func(context.Context, metav1.ListOptions) (runtime.Object, error) {
	return func(context.Context, metav1.ListOptions) (runtime.Object, error) { return List(rv, "", objs...), nil }
}

// IsWatchList reports whether a request is a watch that begins with the objects that there are.
func IsWatchList(r *http.Request) bool { return r.URL.Query().Get("sendInitialEvents") == "true" }

// Ignoring is r for a server that does not know some parameters.
func Ignoring(r *http.Request, parameters ...string) *http.Request {
	r = r.Clone(r.Context())
	query := r.URL.Query()
	for _, parameter := range parameters {
		query.Del(parameter)
	}
	r.URL.RawQuery = query.Encode()
	return r
}

// CountDials returns config with a Dial that counts.
func CountDials(config *rest.Config) (*rest.Config, *atomic.Int32) {
	dial, dials := config.Dial, &atomic.Int32{}
	config.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
		dials.Add(1)
		return dial(ctx, network, address)
	}
	return config, dials
}

// OtherAnswer gives lists, and watch-lists, another answer while there is one.
type OtherAnswer struct{ text atomic.Pointer[string] }

// Set sets the answer, or ends it where text is empty.
func (a *OtherAnswer) Set(text string) { a.text.Store(&text) }

// Wrap puts a before a server.
func (a *OtherAnswer) Wrap(server http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text := a.text.Load()
		if text == nil || *text == "" || IsWatch(r) && !IsWatchList(r) || r.URL.Path != "/api/v1/pods" || r.URL.Query().Get("limit") == "1" {
			server.ServeHTTP(w, r)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, *text)
		_ = http.NewResponseController(w).Flush()
		if IsWatch(r) {
			<-r.Context().Done()
		}
	})
}

// FailWith answers with a Status, in JSON.
func FailWith(rw http.ResponseWriter, code int, status string) {
	rw.Header().Set("Content-Type", "application/json")
	rw.WriteHeader(code)
	_, _ = rw.Write([]byte(status))
}

// Answering answers the first list with a body of the test's own.
func Answering(contentType, body string) func(http.Handler) http.Handler {
	list := func(r *http.Request) bool { return !IsWatch(r) }
	return AnswerOnce(list, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", contentType)
		_, _ = w.Write([]byte(body))
	})
}

// SortKeys is a proxy that decodes the lists of a server and encodes them again, so that their keys
// are sorted: apiVersion, items, kind, metadata.
func SortKeys(server http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if IsWatch(r) {
			server.ServeHTTP(w, r)
			return
		}
		r = r.Clone(r.Context())
		r.Header.Del("Accept-Encoding")
		media := strings.Split(r.Header.Get("Accept"), ",")
		r.Header.Set("Accept", strings.Join(slices.DeleteFunc(media, func(m string) bool { return strings.Contains(m, "protobuf") }), ","))
		answer := httptest.NewRecorder()
		server.ServeHTTP(answer, r)
		var decoded map[string]interface{}
		text := answer.Body.Bytes()
		if err := json.Unmarshal(text, &decoded); err == nil {
			text, _ = json.Marshal(decoded)
		}
		for name, values := range answer.Header() {
			w.Header()[name] = values
		}
		w.Header().Del("Content-Length")
		w.WriteHeader(answer.Code)
		_, _ = w.Write(text)
	})
}
