package tests_test

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/informertest"
)

var (
	pods    = schema.GroupVersionResource{Version: "v1", Resource: "pods"}
	widgets = schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"}
	kinds   = map[schema.GroupVersionResource]string{pods: "Pod", widgets: "Widget"}
)

// bubble runs test in a synctest bubble with a simulated server in memory: time
// is virtual, and synctest.Wait waits until everything that can happen without
// time passing has happened.
func bubble(t *testing.T, opts informertest.Options, test func(t *testing.T, w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &world{t: t}
		wrap := opts.Wrap
		opts.Wrap = func(server http.Handler) http.Handler {
			if wrap != nil {
				server = wrap(server)
			}
			return w.gate(server)
		}
		opts.InMemory = true
		w.Server = informertest.NewServer(opts)
		defer w.Close()
		test(t, w)
	})
}

// world is a server, and what a test does to it.
type world struct {
	t *testing.T
	*informertest.Server
	// blocked refuses new requests while it is locked.
	blocked sync.RWMutex
	// watching is the number of watches that are open.
	watching atomic.Int64
}

func (w *world) gate(server http.Handler) http.Handler {
	return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if !w.blocked.TryRLock() {
			http.Error(rw, "down", http.StatusServiceUnavailable)
			return
		}
		w.blocked.RUnlock()
		if r.URL.Query().Has("watch") {
			w.watching.Add(1)
			defer w.watching.Add(-1)
		}
		server.ServeHTTP(rw, r)
	})
}

// requireOneWatch waits for the next watch where one ends at this very moment, as its time has
// come.
func (w *world) requireOneWatch() {
	w.t.Helper()
	for range 3 {
		if synctest.Wait(); w.watching.Load() > 0 {
			break
		}
		time.Sleep(time.Second)
	}
	require.EqualValues(w.t, 1, w.watching.Load())
}

func object(gvr schema.GroupVersionResource, key, value string) *unstructured.Unstructured {
	name, err := cache.ParseObjectName(key)
	if err != nil {
		panic(err)
	}
	obj := &unstructured.Unstructured{Object: map[string]interface{}{"data": value}}
	obj.SetAPIVersion(gvr.GroupVersion().String())
	obj.SetKind(kinds[gvr])
	obj.SetNamespace(name.Namespace)
	obj.SetName(name.Name)
	return obj
}

// create, update and remove change the pod of a key ("namespace/name").
func (w *world) create(keys ...string) {
	w.t.Helper()
	for _, key := range keys {
		_, err := w.Create(pods, object(pods, key, "created"))
		require.NoError(w.t, err)
	}
}

func (w *world) update(key, value string) {
	w.t.Helper()
	_, err := w.Update(pods, object(pods, key, value))
	require.NoError(w.t, err)
}

func (w *world) remove(keys ...string) {
	w.t.Helper()
	for _, key := range keys {
		name, err := cache.ParseObjectName(key)
		require.NoError(w.t, err)
		require.NoError(w.t, w.Delete(pods, name.Namespace, name.Name))
	}
}

// factory makes what lists and watches resources of the server through a real client.
func (w *world) factory() informer.DynamicListerWatcherFactory {
	w.t.Helper()
	factory, err := informer.NewDynamicListerWatcherFactory(w.Config())
	require.NoError(w.t, err)
	return factory
}

// lister lists and watches the pods through a real client.
func (w *world) lister() cache.ListerWatcher { return w.factory().ForResource("", pods) }

// verbs returns what was asked of the server, as "list limit=2 continue rv=7" or
// "watch rv=8". Single objects are left out, which are asked for to know the server.
func (w *world) verbs() (verbs []string) {
	for _, r := range w.Requests() {
		if r.Verb == "get" {
			continue
		}
		text := r.Verb
		if ptr.Deref(r.Options.SendInitialEvents, false) {
			text += "-list"
		}
		if r.Options.Limit != 0 {
			text += fmt.Sprintf(" limit=%d", r.Options.Limit)
		}
		if r.Options.Continue != "" {
			text += " continue"
		}
		if r.Options.ResourceVersion != "" {
			text += " rv=" + r.Options.ResourceVersion
		}
		verbs = append(verbs, text)
	}
	return verbs
}

// requireState checks that what the handler was told, folded, is what the
// server has.
func (w *world) requireState(r *recorder) {
	w.t.Helper()
	versions, err := w.ResourceVersions(pods, "")
	require.NoError(w.t, err)
	require.Equal(w.t, versions, r.state(), "the handler's state is not the server's; it was told:\n%s", strings.Join(r.events(), "\n"))
}

// keys are n keys in order.
func keys(n int) (all []string) {
	for i := range n {
		all = append(all, fmt.Sprintf("a/%04d", i))
	}
	return all
}

// follow is an informer of the pods, with what c leaves open. It lists: what is
// about watch-lists says so.
func follow(w *world, c informer.InformerConfig) informer.ResourceVersionInformer {
	if c.ListMode == informer.ListModeAuto {
		c.ListMode = informer.ListModePaged
	}
	return auto(w, c)
}

// auto is an informer of the pods as follow makes one, in ListModeAuto unless c has another mode.
func auto(w *world, c informer.InformerConfig) informer.ResourceVersionInformer {
	return informer.NewResourceVersionInformer("pods", w.completed(c))
}

// share is a shared informer of the pods, with what c leaves open.
func share(w *world, c informer.InformerConfig) *informer.SharedResourceVersionInformer {
	return informer.NewSharedResourceVersionInformer("pods", w.completed(c))
}

// adds adds a handler.
func adds(t *testing.T, s *informer.SharedResourceVersionInformer, handler informer.ResourceEventHandler) *informer.HandlerRegistration {
	t.Helper()
	h, err := s.AddEventHandler(handler)
	require.NoError(t, err)
	return h
}

// completed is c, which lists the pods and drops errors where it says nothing else.
func (w *world) completed(c informer.InformerConfig) informer.InformerConfig {
	if c.ListerWatcher == nil {
		c.ListerWatcher = w.lister()
	}
	if c.ErrorHandler == nil {
		c.ErrorHandler = quiet
	}
	return c
}

// quiet is an error handler that drops what it is told.
func quiet(*informer.Reflector, error) {}

// start runs an informer until the returned stop, which waits for it to return.
func start(run func(ctx context.Context)) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		run(ctx)
	}()
	return func() {
		cancel()
		<-done
	}
}

// recorder is a handler that writes down its calls, as "add a/b initial",
// "update a/b", "delete a/b", "delete a/b unknown", "sync a/b", and folds them.
type recorder struct {
	// before, if set, is called first in every call, with what is written down.
	before func(call string)

	mu     sync.Mutex
	calls  []string
	folded map[string]string
}

var _ informer.ResourceEventHandler = &recorder{}

func (r *recorder) OnAdd(obj interface{}, isInInitialList bool) {
	call := "add " + key(obj)
	if isInInitialList {
		call += " initial"
	}
	r.record(call, obj, true)
}

func (r *recorder) OnUpdate(oldObj, newObj interface{}) {
	r.record("update "+key(newObj), newObj, true)
}

func (r *recorder) OnDelete(obj interface{}) {
	call := "delete " + key(obj)
	if _, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		call += " unknown"
	}
	r.record(call, obj, false)
}

func (r *recorder) OnSync(obj interface{}) { r.record("sync "+key(obj), obj, true) }

func (r *recorder) record(call string, obj interface{}, exists bool) {
	if r.before != nil {
		r.before(call)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.calls = append(r.calls, call)
	if r.folded == nil {
		r.folded = map[string]string{}
	}
	if exists {
		accessor, err := meta.Accessor(obj)
		if err != nil {
			panic(err)
		}
		r.folded[key(obj)] = accessor.GetResourceVersion()
	} else {
		delete(r.folded, key(obj))
	}
}

// events returns the calls so far.
func (r *recorder) events() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.calls)
}

// forget drops the calls so far, but not the state that they make.
func (r *recorder) forget() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.calls = nil
}

// state is the resource version of every key that the calls leave.
func (r *recorder) state() map[string]string {
	r.mu.Lock()
	defer r.mu.Unlock()
	state := maps.Clone(r.folded)
	if state == nil {
		state = map[string]string{}
	}
	return state
}

func key(obj interface{}) string {
	key, err := cache.DeletionHandlingMetaNamespaceKeyFunc(obj)
	if err != nil {
		panic(err)
	}
	return key
}

// failures is an error handler that writes down what it is told.
type failures struct {
	mu      sync.Mutex
	errs    []error
	started int
}

func (f *failures) handle(_ *informer.Reflector, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err == nil {
		f.started++
	} else {
		f.errs = append(f.errs, err)
	}
}

// all returns the errors so far, and how many watches have started.
func (f *failures) all() (errs []error, watchesStarted int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.errs), f.started
}

// lastKnown returns the metadata in a tombstone.
func lastKnown(t *testing.T, obj interface{}) *metav1.PartialObjectMetadata {
	t.Helper()
	require.IsType(t, cache.DeletedFinalStateUnknown{}, obj)
	metadata := obj.(cache.DeletedFinalStateUnknown).Obj
	require.IsType(t, &metav1.PartialObjectMetadata{}, metadata)
	return metadata.(*metav1.PartialObjectMetadata)
}
