package tests_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/informertest"
)

// reported collects what goes to utilruntime.ErrorHandlers during a test, which
// must not be parallel.
func reported(t *testing.T) func() []error {
	t.Helper()
	var mu sync.Mutex
	var errs []error
	before := utilruntime.ErrorHandlers
	t.Cleanup(func() { utilruntime.ErrorHandlers = before })
	utilruntime.ErrorHandlers = []utilruntime.ErrorHandler{func(_ context.Context, err error, _ string, _ ...interface{}) {
		mu.Lock()
		defer mu.Unlock()
		errs = append(errs, err)
	}}
	return func() []error {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(errs)
	}
}

// survivePanics has a panic reported and not crash the process, during a test,
// which must not be parallel.
func survivePanics(t *testing.T) {
	t.Helper()
	crash, handlers := utilruntime.ReallyCrash, utilruntime.PanicHandlers
	t.Cleanup(func() { utilruntime.ReallyCrash, utilruntime.PanicHandlers = crash, handlers })
	utilruntime.ReallyCrash, utilruntime.PanicHandlers = false, nil
}

// pod is an object as a server sends it.
func pod(key, rv string) *unstructured.Unstructured {
	obj := object(pods, key, "v"+rv)
	obj.SetResourceVersion(rv)
	return obj
}

func withUID(obj *unstructured.Unstructured, uid string) *unstructured.Unstructured {
	obj.SetUID(types.UID(uid))
	return obj
}

// list is a page of a list.
func list(rv, next string, objects ...*unstructured.Unstructured) *unstructured.UnstructuredList {
	l := &unstructured.UnstructuredList{Object: map[string]interface{}{"apiVersion": "v1", "kind": "PodList"}}
	l.SetResourceVersion(rv)
	l.SetContinue(next)
	for _, obj := range objects {
		l.Items = append(l.Items, *obj)
	}
	return l
}

func expired() error { return apierrors.NewResourceExpired("too old") }

// stream is a watch that sends events and then, if it is ended, ends.
func stream(ended bool, events ...watch.Event) watch.Interface {
	w := watch.NewFakeWithChanSize(len(events), false)
	for _, e := range events {
		w.Action(e.Type, e.Object)
	}
	if ended {
		w.Stop()
	}
	return w
}

// failing is the event with which a server ends a watch.
func failing(err error) watch.Event {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		status = apierrors.NewInternalError(err)
	}
	s := status.Status()
	return watch.Event{Type: watch.Error, Object: &s}
}

// tap is a ListerWatcher that a test looks into. OnList and OnWatch, where set,
// are given the number of the call, from 1, and may answer it; where they return
// errPass, or are nil, lw answers.
type tap struct {
	lw      cache.ListerWatcherWithContext
	onList  func(ctx context.Context, n int, opts metav1.ListOptions) (runtime.Object, error)
	onWatch func(ctx context.Context, n int, opts metav1.ListOptions) (watch.Interface, error)

	mu             sync.Mutex
	lists, watches int
	asked          []string
}

var errPass = errors.New("pass")

func tapOn(lw cache.ListerWatcher) *tap { return &tap{lw: cache.ToListerWatcherWithContext(lw)} }

func (l *tap) ListWithContext(ctx context.Context, opts metav1.ListOptions) (runtime.Object, error) {
	l.mu.Lock()
	l.lists++
	n := l.lists
	text := fmt.Sprintf("list rv=%s limit=%d", opts.ResourceVersion, opts.Limit)
	if opts.ResourceVersionMatch != "" {
		text += " " + string(opts.ResourceVersionMatch)
	}
	if opts.Continue != "" {
		text += " continue=" + opts.Continue
	}
	l.asked = append(l.asked, text)
	l.mu.Unlock()
	if l.onList != nil {
		if obj, err := l.onList(ctx, n, opts); !errors.Is(err, errPass) {
			return obj, err
		}
	}
	return l.lw.ListWithContext(ctx, opts)
}

func (l *tap) WatchWithContext(ctx context.Context, opts metav1.ListOptions) (watch.Interface, error) {
	l.mu.Lock()
	l.watches++
	n := l.watches
	l.asked = append(l.asked, "watch rv="+opts.ResourceVersion)
	l.mu.Unlock()
	if l.onWatch != nil {
		if w, err := l.onWatch(ctx, n, opts); !errors.Is(err, errPass) {
			return w, err
		}
	}
	return l.lw.WatchWithContext(ctx, opts)
}

func (l *tap) List(opts metav1.ListOptions) (runtime.Object, error) {
	return l.ListWithContext(context.Background(), opts)
}

func (l *tap) Watch(opts metav1.ListOptions) (watch.Interface, error) {
	return l.WatchWithContext(context.Background(), opts)
}

// requests are what was asked, as "list rv=0 limit=500" or "watch rv=7".
func (l *tap) requests() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.asked)
}

// lists and watches answer the n-th call with the n-th of the answers, and the
// last one again and again.
func lists(answers ...runtime.Object) func(context.Context, int, metav1.ListOptions) (runtime.Object, error) {
	return func(_ context.Context, n int, _ metav1.ListOptions) (runtime.Object, error) {
		return answers[min(n, len(answers))-1].DeepCopyObject(), nil
	}
}

func watches(answers ...func() (watch.Interface, error)) func(context.Context, int, metav1.ListOptions) (watch.Interface, error) {
	return func(_ context.Context, n int, _ metav1.ListOptions) (watch.Interface, error) {
		return answers[min(n, len(answers))-1]()
	}
}

// open, refused and broken are watches that send events and go on, that do not
// begin, and that send events and then an error.
func open(events ...watch.Event) func() (watch.Interface, error) {
	return func() (watch.Interface, error) { return stream(false, events...), nil }
}

func refused(err error) func() (watch.Interface, error) {
	return func() (watch.Interface, error) { return nil, err }
}

func broken(err error, events ...watch.Event) func() (watch.Interface, error) {
	return func() (watch.Interface, error) { return stream(true, append(events, failing(err))...), nil }
}

// journal is a bare cache.ReflectorStore that writes down its calls and folds
// them. Fail, if set, is asked before each call with what is written down.
type journal struct {
	fail func(call string) error

	mu    sync.Mutex
	calls []string
	held  map[string]string
}

func (j *journal) note(call string, change func(held map[string]string)) error {
	if j.fail != nil {
		if err := j.fail(call); err != nil {
			return err
		}
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.held == nil {
		j.held = map[string]string{}
	}
	j.calls = append(j.calls, call)
	change(j.held)
	return nil
}

func (j *journal) put(verb string, obj interface{}) error {
	u := obj.(*unstructured.Unstructured)
	return j.note(verb+" "+key(u), func(held map[string]string) { held[key(u)] = u.GetResourceVersion() })
}

func (j *journal) Add(obj interface{}) error    { return j.put("add", obj) }
func (j *journal) Update(obj interface{}) error { return j.put("update", obj) }

func (j *journal) Delete(obj interface{}) error {
	return j.note("delete "+key(obj), func(held map[string]string) { delete(held, key(obj)) })
}

func (j *journal) Replace(objects []interface{}, rv string) error {
	keys := []string{}
	for _, obj := range objects {
		keys = append(keys, key(obj))
	}
	return j.note(fmt.Sprintf("replace %s %s", rv, strings.Join(keys, " ")), func(held map[string]string) {
		clear(held)
		for _, obj := range objects {
			held[key(obj)] = obj.(*unstructured.Unstructured).GetResourceVersion()
		}
	})
}

func (j *journal) Resync() error { return j.note("resync", func(map[string]string) {}) }

func (j *journal) events() []string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return slices.Clone(j.calls)
}

func (j *journal) state() map[string]string {
	j.mu.Lock()
	defer j.mu.Unlock()
	state := maps.Clone(j.held)
	if state == nil {
		state = map[string]string{}
	}
	return state
}

// bookmarked is a journal that wants to know resource versions.
type bookmarked struct{ *journal }

func (b bookmarked) Bookmark(rv string) error {
	return b.note("bookmark "+rv, func(map[string]string) {})
}

func (b bookmarked) UpdateResourceVersion(rv string) {
	_ = b.note("version "+rv, func(map[string]string) {})
}

// generations is a journal that takes lists as they arrive.
type generations struct{ *journal }

func (g generations) BeginGeneration(context.Context) (informer.Generation, error) {
	return &pass{g.journal, map[string]bool{}, false}, g.note("begin", func(map[string]string) {})
}

type pass struct {
	*journal
	shown   map[string]bool
	partial bool
}

func (p *pass) Item(_ context.Context, obj interface{}) error {
	p.shown[key(obj)] = true
	return p.put("item", obj)
}

func (p *pass) Skipped(key string) {
	p.shown[key] = true
	p.partial = p.partial || key == ""
	_ = p.note("skipped "+key, func(map[string]string) {})
}

func (p *pass) End(_ context.Context, rv string) error {
	return p.note("end "+rv, func(held map[string]string) {
		maps.DeleteFunc(held, func(key, _ string) bool { return !p.partial && !p.shown[key] })
	})
}

func (p *pass) Abandon() { _ = p.note("abandon", func(map[string]string) {}) }

// contents is the resource version of every object in a store. A second object
// of a name is there too.
func contents(store cache.Store) map[string]string {
	state := map[string]string{}
	for _, obj := range store.List() {
		u := obj.(*unstructured.Unstructured)
		name := key(u)
		for _, twice := state[name]; twice; _, twice = state[name] {
			name += " again"
		}
		state[name] = u.GetResourceVersion()
	}
	return state
}

// apply does to store what a queue popped.
func apply(store cache.Store, popped interface{}) error {
	for _, d := range popped.(cache.Deltas) {
		var err error
		switch d.Type {
		case cache.Deleted:
			err = store.Delete(d.Object)
		case cache.ReplacedAll:
			info := d.Object.(cache.ReplacedAllInfo)
			err = store.Replace(info.Objects, info.ResourceVersion)
		case cache.SyncAll, cache.Bookmark:
		default:
			err = store.Update(d.Object)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// newStore is a store for the deltas of a queue.
func newStore() cache.Store { return cache.NewStore(cache.DeletionHandlingMetaNamespaceKeyFunc) }

// simulated is a server without objects, and what lists and watches its pods.
func simulated() (*informertest.Server, cache.ListerWatcher) {
	server := informertest.NewServer(informertest.Options{})
	factory, err := informer.NewDynamicListerWatcherFactory(server.Config())
	if err != nil {
		panic(err)
	}
	return server, factory.ForResource("default", pods)
}
