package objectcache_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/informertest"
	"github.com/rvinformer/informer/objectcache"
)

var pods = schema.GroupVersionResource{Version: "v1", Resource: "pods"}

// bubble runs test in a synctest bubble, with a server in memory.
func bubble(t *testing.T, opts informertest.Options, test func(t *testing.T, w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		opts.InMemory = true
		w := &world{t: t, Server: informertest.NewServer(opts)}
		defer w.Close()
		test(t, w)
	})
}

// bubbleRun runs test as the subtest of a name, in a bubble of its own.
func bubbleRun(t *testing.T, name string, opts informertest.Options, test func(t *testing.T, w *world)) {
	t.Helper()
	t.Run(name, func(t *testing.T) { bubble(t, opts, test) })
}

// sleep lets virtual time pass, and waits until all is quiet.
func sleep(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// world is a server of pods.
type world struct {
	t *testing.T
	*informertest.Server
}

// pod is a pod with a value in its label "value".
func pod(key, value string) *unstructured.Unstructured {
	name, err := cache.ParseObjectName(key)
	if err != nil {
		panic(err)
	}
	obj := &unstructured.Unstructured{Object: map[string]interface{}{"apiVersion": "v1", "kind": "Pod"}}
	obj.SetNamespace(name.Namespace)
	obj.SetName(name.Name)
	obj.SetLabels(map[string]string{"value": value})
	return obj
}

func (w *world) create(keys ...string) {
	w.t.Helper()
	for _, key := range keys {
		_, err := w.Create(pods, pod(key, "created"))
		require.NoError(w.t, err)
	}
}

func (w *world) update(key, value string) {
	w.t.Helper()
	_, err := w.Update(pods, pod(key, value))
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

// lister lists and watches the pods off the wire.
func (w *world) lister() cache.ListerWatcher {
	w.t.Helper()
	factory, err := informer.NewDynamicListerWatcherFactory(w.Config())
	require.NoError(w.t, err)
	return factory.ForResource("", pods)
}

// newInformer returns an informer that logs nothing by default: the log has a limit of its own for
// errors, which waits by a clock that was set before the bubble.
func newInformer(lw cache.ListerWatcher, example runtime.Object, opts objectcache.Options) *objectcache.Informer {
	if opts.ErrorHandler == nil {
		opts.ErrorHandler = func(*informer.Reflector, error) {}
	}
	opts.Decoded = opts.Decoded || keepDecoded
	return objectcache.NewSharedIndexInformerWithOptions(lw, example, opts)
}

// run runs an informer until the returned function is called, and waits until all is quiet.
func (w *world) run(i *objectcache.Informer) (stop func()) {
	ctx, cancel := context.WithCancel(w.t.Context())
	var running sync.WaitGroup
	running.Go(func() { i.RunWithContext(ctx) })
	synctest.Wait()
	return func() {
		cancel()
		running.Wait()
	}
}

// requireInStep compares the store with the server.
func (w *world) requireInStep(i *objectcache.Informer) {
	w.t.Helper()
	want, err := w.ResourceVersions(pods, "")
	require.NoError(w.t, err)
	got := map[string]string{}
	for _, obj := range i.GetStore().List() {
		accessor, err := meta.Accessor(obj)
		require.NoError(w.t, err)
		got[cache.MetaObjectToName(accessor).String()] = accessor.GetResourceVersion()
	}
	require.Equal(w.t, want, got)
}

// told records the calls of a handler, as "add default/a created initial", "update default/a old
// new", "delete default/a last" and "gone default/a last" for a deletion that a list found.
type told struct {
	mu    sync.Mutex
	calls []string
	// before, if set, is called in each call.
	before func(call string)
}

func (h *told) note(call string) {
	if h.before != nil {
		h.before(call)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.calls = append(h.calls, call)
}

// take returns the calls since the last time, sorted where the order of keys means nothing.
func (h *told) take() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	calls := h.calls
	h.calls = nil
	return calls
}

func (h *told) sorted() []string {
	calls := h.take()
	slices.Sort(calls)
	return calls
}

func describe(obj interface{}) string {
	accessor, err := meta.Accessor(obj)
	if err != nil {
		return fmt.Sprintf("%T", obj)
	}
	return cache.MetaObjectToName(accessor).String() + " " + accessor.GetLabels()["value"]
}

func value(obj interface{}) string { return obj.(metav1.Object).GetLabels()["value"] }

func (h *told) OnAdd(obj interface{}, isInInitialList bool) {
	call := "add " + describe(obj)
	if isInInitialList {
		call += " initial"
	}
	h.note(call)
}

func (h *told) OnUpdate(before, obj interface{}) {
	h.note("update " + describe(obj) + " was " + value(before))
}

func (h *told) OnDelete(obj interface{}) {
	if tombstone, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		h.note("gone " + describe(tombstone.Obj))
		return
	}
	h.note("delete " + describe(obj))
}

// handle adds a handler that records.
func handle(t *testing.T, i *objectcache.Informer) (*told, cache.ResourceEventHandlerRegistration) {
	h := &told{}
	r, err := i.AddEventHandler(h)
	require.NoError(t, err)
	return h, r
}
