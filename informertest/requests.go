package informertest

import (
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Request is one request as a [Server] received it, before [Options].Wrap could change it.
type Request struct {
	Verb                 string                      // list, watch, get, create, update, delete; for discovery, unknown paths and methods that are not served: get, post, patch, ...
	GroupVersionResource schema.GroupVersionResource // empty for discovery and unknown paths
	Namespace            string                      // empty for all namespaces and for cluster-scoped resources
	Name                 string                      // empty for list, watch and create
	Path                 string
	Accept               string             // the header as it was sent
	AcceptEncoding       string             // likewise; Go's clients ask for gzip on their own
	Options              metav1.ListOptions // of list and watch, zero when the query could not be decoded
	Time                 time.Time          // of its arrival
	// Code is the HTTP status of the answer, whether the server gave it or Wrap did; 0 as long as
	// there is none.
	Code int
}

// recorder keeps the log of requests. It stands outside of everything else, so that the log also
// has the requests that a fault injection answered.
type recorder struct {
	next http.Handler

	mu  sync.Mutex
	log []*Request
}

func (r *recorder) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	entry := describe(req)
	r.mu.Lock()
	r.log = append(r.log, entry)
	r.mu.Unlock()
	r.next.ServeHTTP(&recordedWriter{ResponseWriter: w, recorder: r, entry: entry}, req)
}

func describe(req *http.Request) *Request {
	entry := &Request{
		Verb:           strings.ToLower(req.Method),
		Path:           req.URL.Path,
		Accept:         req.Header.Get("Accept"),
		AcceptEncoding: req.Header.Get("Accept-Encoding"),
		Time:           time.Now(),
	}
	t, ok := parseTarget(req.URL.Path)
	if !ok {
		return entry
	}
	entry.GroupVersionResource, entry.Namespace, entry.Name = t.gvr, t.namespace, t.name
	switch {
	case req.Method == http.MethodPost:
		entry.Verb = "create"
	case req.Method == http.MethodPut:
		entry.Verb = "update"
	case req.Method == http.MethodGet && t.name == "":
		entry.Verb = "list"
		if opts, err := listOptions(req.URL.Query()); err == nil {
			entry.Options = opts
		}
		if entry.Options.Watch {
			entry.Verb = "watch"
		}
	}
	return entry
}

func (r *recorder) requests() []Request {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := make([]Request, 0, len(r.log))
	for _, entry := range r.log {
		c := *entry
		c.Options = *entry.Options.DeepCopy()
		out = append(out, c)
	}
	return slices.Clip(out)
}

func (r *recorder) reset() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.log = nil
}

// recordedWriter notes the status of the answer. What else the connection can do is found through
// Unwrap, as http.ResponseController does.
type recordedWriter struct {
	http.ResponseWriter
	recorder *recorder
	entry    *Request
}

func (w *recordedWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w *recordedWriter) WriteHeader(code int) {
	w.note(code)
	w.ResponseWriter.WriteHeader(code)
}

func (w *recordedWriter) Write(p []byte) (int, error) {
	w.note(http.StatusOK)
	return w.ResponseWriter.Write(p)
}

// Flush makes the writer an http.Flusher, for handlers that ask for one.
func (w *recordedWriter) Flush() {
	w.note(http.StatusOK)
	// A connection that is gone is noticed by the next write.
	_ = http.NewResponseController(w.ResponseWriter).Flush()
}

// note keeps the first status.
func (w *recordedWriter) note(code int) {
	w.recorder.mu.Lock()
	defer w.recorder.mu.Unlock()
	if w.entry.Code == 0 {
		w.entry.Code = code
	}
}
