package controller_test

import (
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/rvinformer/informer/controller"
	"github.com/rvinformer/informer/informertest"
	"github.com/rvinformer/informer/tests/harness"
)

func TestMain(m *testing.M) {
	klog.SetSlogLogger(slog.New(slog.DiscardHandler)) // client-go logs much that tests do to it
	goleak.VerifyTestMain(m)
}

var pods = harness.Pods

// world is a harness.World, and what utilruntime.ErrorHandlers were called with in it.
type world struct {
	*testing.T
	*harness.World
	reported func() []error
}

func bubble(t *testing.T, test func(w *world)) {
	t.Helper()
	bubbleWith(t, nil, test)
}

// bubbleWith wraps the server's handler.
func bubbleWith(t *testing.T, wrap func(http.Handler) http.Handler, test func(w *world)) {
	t.Helper()
	reported := harness.Reported(t)
	harness.Bubble(t, informertest.Options{Wrap: wrap}, func(t *testing.T, w *harness.World) {
		test(&world{t, w, reported})
	})
}

// unseen makes changes that no watch tells.
func (w *world) unseen(change func()) {
	w.Blocked.Lock()
	w.CloseClientConnections()
	change()
	w.Compact()
	w.Blocked.Unlock()
}

func (w *world) create(keys ...string) {
	w.Helper()
	for _, key := range keys {
		_, err := w.Create(pods, harness.Object(pods, key, "1"))
		require.NoError(w, err)
	}
}

// shared is an ordinary informer of the pods.
func (w *world) shared() cache.SharedIndexInformer {
	return cache.NewSharedIndexInformer(w.Lister(), &unstructured.Unstructured{}, 0, cache.Indexers{})
}

// start runs a controller until stop, which waits for Run.
func start(c *controller.Controller) (stop func()) { return harness.Start(c.RunWithContext) }

// target is what a resource brings in line: it writes down its calls, as "upsert a/1=v" or
// "delete a/1=v", and keeps what they make.
type target struct {
	// before, if set, is asked before each call what that is to return.
	before func(call string) error

	mu     sync.Mutex
	calls  []string
	values map[string]string
}

func (x *target) Upsert(key string, obj interface{}) error { return x.note("upsert", key, obj) }
func (x *target) Delete(key string, obj interface{}) error { return x.note("delete", key, obj) }

func (x *target) note(op, key string, obj interface{}) error {
	call := op + " " + key + "=" + valueOf(obj)
	x.mu.Lock()
	x.calls = append(x.calls, call)
	x.mu.Unlock()
	if x.before != nil {
		if err := x.before(call); err != nil {
			return err
		}
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.values == nil {
		x.values = map[string]string{}
	}
	if op == "upsert" {
		x.values[key] = valueOf(obj)
	} else {
		delete(x.values, key)
	}
	return nil
}

// told returns the calls so far and forgets them.
func (x *target) told() []string {
	x.mu.Lock()
	defer x.mu.Unlock()
	told := x.calls
	x.calls = nil
	return told
}

// has is what the calls have made.
func (x *target) has() map[string]string {
	x.mu.Lock()
	defer x.mu.Unlock()
	has := map[string]string{}
	maps.Copy(has, x.values)
	return has
}

// of is a Resource that brings x in line with an informer.
func (x *target) of(i cache.SharedIndexInformer) controller.Resource {
	return controller.NewResource(i, x.Upsert, x.Delete)
}

func valueOf(obj interface{}) string {
	switch obj := obj.(type) {
	case nil:
		return "nil"
	case *unstructured.Unstructured:
		return harness.Data(obj)
	}
	accessor, err := meta.Accessor(obj)
	if err != nil {
		return fmt.Sprintf("%T", obj)
	}
	return "rv" + accessor.GetResourceVersion()
}

// has is what the server has, as a target would.
func (w *world) has() map[string]string {
	w.Helper()
	objects, err := w.List(pods, "")
	require.NoError(w, err)
	has := map[string]string{}
	for _, obj := range objects {
		has[cache.MetaObjectToName(obj).String()] = valueOf(obj)
	}
	return has
}

// journal is a Logger over a text.
type journal struct {
	*slog.Logger
	mu   sync.Mutex
	text strings.Builder
}

var _ controller.Logger = &journal{}

func newJournal() *journal {
	j := &journal{}
	j.Logger = slog.New(slog.NewTextHandler(j, &slog.HandlerOptions{Level: slog.LevelDebug}))
	return j
}

func (j *journal) Write(p []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.Write(p)
}

func (j *journal) String() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.String()
}

var errRefused = errors.New("refused")

// refusing refuses calls that begin with one of some texts, a number of times, all of them
// if it is negative.
func refusing(times int, calls ...string) func(call string) error {
	var mu sync.Mutex
	return func(call string) error {
		mu.Lock()
		defer mu.Unlock()
		if times == 0 || !slices.ContainsFunc(calls, func(prefix string) bool { return strings.HasPrefix(call, prefix) }) {
			return nil
		}
		times--
		return errRefused
	}
}

// givenUp collects what a controller gives up, as "a/1=v: error".
type givenUp struct {
	mu  sync.Mutex
	all []string
}

func (g *givenUp) add(event controller.Event, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.all = append(g.all, fmt.Sprintf("%s=%s: %v", event.Key, valueOf(event.Obj), err))
}

func (g *givenUp) list() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Clone(g.all)
}
