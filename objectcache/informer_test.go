package objectcache_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/textlogger"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/informertest"
	"github.com/rvinformer/informer/objectcache"
	"github.com/rvinformer/informer/tests/harness"
)

// examples are what objects are kept as.
var examples = map[string]apiruntime.Object{
	"typed":        &corev1.Pod{},
	"unstructured": nil,
	"metadata":     &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}},
}

func TestHandlerGetsEveryChange(t *testing.T) {
	for name, example := range examples {
		bubbleRun(t, name, informertest.Options{}, func(t *testing.T, w *world) {
			w.create("a/1", "a/2")
			i := newInformer(w.lister(), example, objectcache.Options{})
			h, registration := handle(t, i)
			require.False(t, registration.HasSynced())
			defer w.run(i)()
			require.Equal(t, []string{"add a/1 created initial", "add a/2 created initial"}, h.sorted())
			require.True(t, i.HasSynced())
			require.True(t, registration.HasSynced())

			w.update("a/1", "x")
			w.update("a/1", "y")
			w.remove("a/1")
			w.create("a/1")
			w.remove("a/1")
			w.create("a/3")
			synctest.Wait()
			require.Equal(t, []string{
				"update a/1 x was created", "update a/1 y was x", "delete a/1 y", "add a/1 created", "delete a/1 created", "add a/3 created",
			}, h.take())
			w.requireInStep(i)

			late, registration := handle(t, i)
			synctest.Wait()
			require.Equal(t, []string{"add a/2 created initial", "add a/3 created initial"}, late.sorted())
			require.True(t, registration.HasSynced())
			require.Empty(t, h.take())
		})
	}
}

func TestMetadataHasKindOfExample(t *testing.T) {
	bubble(t, informertest.Options{}, func(t *testing.T, w *world) {
		w.create("a/1")
		i := newInformer(w.lister(), examples["metadata"], objectcache.Options{})
		var got metav1.TypeMeta
		_, err := i.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: func(obj interface{}) { got = obj.(*metav1.PartialObjectMetadata).TypeMeta }})
		require.NoError(t, err)
		defer w.run(i)()
		require.Equal(t, metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}, got)
	})
	bubbleRun(t, "beside a Transform", informertest.Options{}, func(t *testing.T, w *world) {
		w.create("a/1")
		var transformed, got metav1.TypeMeta
		i := newInformer(w.lister(), examples["metadata"], objectcache.Options{Transform: func(obj interface{}) (interface{}, error) {
			transformed = obj.(*metav1.PartialObjectMetadata).TypeMeta
			return obj, nil
		}})
		_, err := i.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: func(obj interface{}) { got = obj.(*metav1.PartialObjectMetadata).TypeMeta }})
		require.NoError(t, err)
		defer w.run(i)()
		require.Equal(t, metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}, transformed)
		require.Equal(t, transformed, got)
	})
}

// Objects that Transform renames are compared under the names that they are read with.
func TestUnchangedRelistDecodesNothingThatTransformRenames(t *testing.T) {
	bubble(t, informertest.Options{}, func(t *testing.T, w *world) {
		const n = 50
		for n := range n {
			w.create(fmt.Sprintf("a/%d", n))
		}
		i := newInformer(w.lister(), nil, objectcache.Options{Transform: func(obj interface{}) (interface{}, error) {
			u := obj.(*unstructured.Unstructured)
			if value(u) == "stays" {
				return u, nil
			}
			u.SetName("renamed-" + u.GetName())
			return u, nil
		}})
		h, _ := handle(t, i)
		defer w.run(i)()
		require.Len(t, h.take(), n)
		require.Equal(t, n, objectcache.Renames(i))
		before := i.Store().Decoded()
		w.remove("a/7")
		synctest.Wait()
		require.Equal(t, []string{"delete a/renamed-7 created"}, h.take())
		require.Equal(t, n-1, objectcache.Renames(i))
		relist(w)
		require.LessOrEqual(t, i.Store().Decoded()-before, int64(3), "those that were deleted, and the one that came and went")
		require.Empty(t, h.take())
		require.Equal(t, n-1, i.Status().Objects)

		heal := w.Inject(informertest.Fault{Effect: informertest.Refuse()})
		w.remove("a/8", "a/9")
		w.Compact()
		heal()
		harness.Sleep(5 * time.Minute)
		require.Equal(t, []string{"gone a/renamed-8 created", "gone a/renamed-9 created"}, h.sorted())
		require.Equal(t, n-3, objectcache.Renames(i))
		w.update("a/10", "stays")
		synctest.Wait()
		require.Equal(t, n-4, objectcache.Renames(i))
		require.Equal(t, []string{"gone a/renamed-10 created", "add a/10 stays"}, h.take())
		w.update("a/10", "goes")
		synctest.Wait()
		require.Equal(t, []string{"gone a/10 stays", "add a/renamed-10 goes"}, h.take())
	})
}

// relist has the server forget the past while it cannot be reached, so that its objects have to be
// listed again.
func relist(w *world) {
	heal := w.Inject(informertest.Fault{Effect: informertest.Refuse()})
	w.create("z/passing")
	w.remove("z/passing")
	w.Compact()
	w.ResetRequests()
	heal()
	harness.Sleep(5 * time.Minute)
	for _, r := range w.Requests() {
		if r.Verb == "list" || r.Options.SendInitialEvents != nil {
			return
		}
	}
	require.Fail(w.t, "nothing was listed")
}

func TestHandlersThatTakeNothingDecodeNothing(t *testing.T) {
	bubble(t, informertest.Options{}, func(t *testing.T, w *world) {
		w.create("a/1")
		i := newInformer(w.lister(), &corev1.Pod{}, objectcache.Options{})
		deleted := 0
		_, err := i.AddEventHandler(cache.ResourceEventHandlerFuncs{DeleteFunc: func(interface{}) { deleted++ }})
		require.NoError(t, err)
		var keys []string
		_, err = i.AddChangeHandler(func(c objectcache.Change) { keys = append(keys, string(c.Type)+" "+c.Key) }, cache.HandlerOptions{})
		require.NoError(t, err)
		defer w.run(i)()
		w.update("a/1", "x")
		w.create("a/2")
		synctest.Wait()
		require.Zero(t, i.Store().Decoded())
		w.remove("a/1")
		synctest.Wait()
		require.Equal(t, 1, deleted)
		require.EqualValues(t, 1, i.Store().Decoded())
		require.Equal(t, []string{"Added a/1", "Updated a/1", "Added a/2", "Deleted a/1"}, keys)
	})
}

func TestHandlersShareDecodedObjects(t *testing.T) {
	bubble(t, informertest.Options{}, func(t *testing.T, w *world) {
		i := newInformer(w.lister(), &corev1.Pod{}, objectcache.Options{})
		for range 5 {
			handle(t, i)
		}
		defer w.run(i)()
		w.create("a/1")
		synctest.Wait()
		require.EqualValues(t, 1, i.Store().Decoded())
	})
}

func TestRelistTellsWhatDiffers(t *testing.T) {
	bubble(t, informertest.Options{}, func(t *testing.T, w *world) {
		w.create("a/same", "a/changed", "a/gone", "a/recreated")
		i := newInformer(w.lister(), &corev1.Pod{}, objectcache.Options{})
		h, _ := handle(t, i)
		defer w.run(i)()
		require.Len(t, h.take(), 4)
		heal := w.Inject(informertest.Fault{Effect: informertest.Refuse()})
		w.update("a/changed", "x")
		w.update("a/gone", "unseen")
		w.remove("a/gone", "a/recreated")
		w.create("a/recreated", "a/new")
		w.Compact()
		heal()
		harness.Sleep(5 * time.Minute)
		require.Equal(t, []string{
			"add a/new created", "add a/recreated created", "gone a/gone created", "gone a/recreated created", "update a/changed x was created",
		}, h.sorted())
		w.requireInStep(i)
	})
}

func TestRestoredServerIsFollowedBack(t *testing.T) {
	bubble(t, informertest.Options{}, func(t *testing.T, w *world) {
		w.create("a/1", "a/2")
		i := newInformer(w.lister(), &corev1.Pod{}, objectcache.Options{})
		h, _ := handle(t, i)
		defer w.run(i)()
		h.take()
		backup := w.Backup()
		w.update("a/1", "lost")
		w.create("a/3")
		synctest.Wait()
		h.take()
		w.Restore(backup)
		harness.Sleep(10 * time.Minute)
		require.Equal(t, []string{"gone a/3 created", "update a/1 created was lost"}, h.sorted())
		w.requireInStep(i)
		w.update("a/2", "after")
		synctest.Wait()
		require.Equal(t, []string{"update a/2 after was created"}, h.take())
	})
}

// A restored server gives its versions anew: the same version, of the same object, may be of
// another state.
func TestRestoredServerThatRepeatsVersionsIsReadAnew(t *testing.T) {
	for name, caughtUp := range map[string]bool{"still behind": false, "caught up": true} {
		bubbleRun(t, name, informertest.Options{}, func(t *testing.T, w *world) {
			w.create("a/1", "a/2")
			backup := w.Backup()
			w.update("a/1", "lost")
			w.create("a/3")
			i := newInformer(w.lister(), &corev1.Pod{}, objectcache.Options{})
			h, _ := handle(t, i)
			defer w.run(i)()
			require.Len(t, h.take(), 3)
			heal := w.Inject(informertest.Fault{Effect: informertest.Refuse()})
			w.Restore(backup)
			w.update("a/1", "kept")
			calls := []string{"gone a/3 created", "update a/1 kept was lost"}
			if caughtUp {
				w.create("a/4", "a/5", "a/6")
				calls = append([]string{"add a/4 created", "add a/5 created", "add a/6 created"}, calls...)
			}
			w.Compact()
			heal()
			harness.Sleep(10 * time.Minute)
			require.Equal(t, calls, h.sorted(), "and nothing of a/2, which is the same")
			w.requireInStep(i)
			relist(w)
			require.Empty(t, h.take())
		})
	}
}

func TestSlowHandlerHoldsUpNobody(t *testing.T) {
	bubble(t, informertest.Options{}, func(t *testing.T, w *world) {
		w.create("a/1", "a/2")
		i := newInformer(w.lister(), &corev1.Pod{}, objectcache.Options{})
		release := make(chan struct{})
		slow := &told{before: func(string) { <-release }}
		_, err := i.AddEventHandler(slow)
		require.NoError(t, err)
		fast, _ := handle(t, i)
		stop := w.run(i)
		defer stop()
		require.Len(t, fast.take(), 2)
		for n := range 200 {
			w.update("a/1", fmt.Sprint(n))
		}
		w.remove("a/2")
		synctest.Wait()
		require.Len(t, fast.take(), 201)
		w.requireInStep(i)
		status := i.Status()
		require.Equal(t, 203, status.Queued)
		require.Positive(t, status.QueuedBytes)
		close(release)
		synctest.Wait()
		calls := slow.take()
		require.Len(t, calls, 203)
		require.ElementsMatch(t, []string{"add a/1 created initial", "add a/2 created initial"}, calls[:2], "as the initial list had them, though they are gone")
		require.Equal(t, "update a/1 0 was created", calls[2])
		require.Equal(t, "delete a/2 created", calls[202])
		status = i.Status()
		require.Zero(t, status.Queued)
		require.Zero(t, status.QueuedBytes)
	})
}

func TestLateHandlerMissesNothingUnderLoad(t *testing.T) {
	server := informertest.NewServer(informertest.Options{})
	defer server.Close()
	w := &world{t, server}
	for n := range 20 {
		w.create(fmt.Sprintf("a/%d", n))
	}
	i := newInformer(w.lister(), &corev1.Pod{}, objectcache.Options{HotBytes: -1})
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { i.RunWithContext(ctx) })
	defer running.Wait()
	defer cancel()
	<-i.HasSyncedChecker().Done()

	var writing sync.WaitGroup
	writing.Go(func() {
		for n := range 300 {
			w.update(fmt.Sprintf("a/%d", n%20), fmt.Sprint(n))
		}
		w.create("a/last")
	})
	mirrors := map[*mirror]cache.ResourceEventHandlerRegistration{}
	for n := range 20 {
		m := newMirror(t)
		r, err := i.AddEventHandler(m)
		require.NoError(t, err)
		if n%3 == 2 {
			require.NoError(t, i.RemoveEventHandler(r))
			require.NoError(t, i.RemoveEventHandler(r))
			continue
		}
		mirrors[m] = r
	}
	writing.Wait()
	want, err := w.ResourceVersions(pods, "")
	require.NoError(t, err)
	for m, r := range mirrors {
		<-m.last
		<-r.HasSyncedChecker().Done() // an initial list that has the last object has it in any place
		require.Equal(t, want, m.versions())
	}
}

// mirror folds what a handler is called with into a map, and checks that each call fits the one
// before.
type mirror struct {
	t       require.TestingT
	last    chan struct{}
	mu      sync.Mutex
	objects map[string]string
}

func newMirror(t require.TestingT) *mirror {
	return &mirror{t: t, last: make(chan struct{}), objects: map[string]string{}}
}

func (m *mirror) versions() map[string]string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.objects
}

func identity(obj interface{}) (key, version string) {
	if tombstone, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		obj = tombstone.Obj
	}
	accessor, err := meta.Accessor(obj)
	if err != nil {
		panic(err)
	}
	return cache.MetaObjectToName(accessor).String(), accessor.GetResourceVersion()
}

func (m *mirror) OnAdd(obj interface{}, _ bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	key, version := identity(obj)
	if known, twice := m.objects[key]; twice {
		m.t.Errorf("%s added at %s, known at %s", key, version, known)
	}
	m.objects[key] = version
	if key == "a/last" {
		close(m.last)
	}
}

func (m *mirror) OnUpdate(before, obj interface{}) {
	m.mu.Lock()
	defer m.mu.Unlock()
	key, version := identity(obj)
	if _, old := identity(before); m.objects[key] != old {
		m.t.Errorf("%s updated from %s, known at %q", key, old, m.objects[key])
	}
	m.objects[key] = version
}

func (m *mirror) OnDelete(obj interface{}) {
	m.mu.Lock()
	defer m.mu.Unlock()
	key, _ := identity(obj)
	if _, known := m.objects[key]; !known {
		m.t.Errorf("%s deleted, not known", key)
	}
	delete(m.objects, key)
}

// As in client-go, a negative period becomes the shortest one, and that is logged.
func TestNegativeResyncPeriodIsIncreased(t *testing.T) {
	bubble(t, informertest.Options{}, func(t *testing.T, w *world) {
		w.create("a/1")
		i := newInformer(w.lister(), &corev1.Pod{}, objectcache.Options{ResyncPeriod: 30 * time.Second})
		var log bytes.Buffer
		logger := textlogger.NewLogger(textlogger.NewConfig(textlogger.Output(&log)))
		h, period := &told{}, -time.Second
		_, err := i.AddEventHandlerWithOptions(h, cache.HandlerOptions{ResyncPeriod: &period, Logger: &logger})
		require.NoError(t, err)
		require.Contains(t, log.String(), "is being increased")
		defer w.run(i)()
		h.take()
		harness.Sleep(31 * time.Second)
		require.Equal(t, []string{"update a/1 created was created"}, h.take())
	})
}

func TestResyncDoesNotPileUp(t *testing.T) {
	bubble(t, informertest.Options{}, func(t *testing.T, w *world) {
		w.create("a/1")
		i := newInformer(w.lister(), &corev1.Pod{}, objectcache.Options{ResyncPeriod: 30 * time.Second})
		release := make(chan struct{})
		slow := &told{before: func(call string) {
			if strings.HasPrefix(call, "update") {
				<-release
			}
		}}
		_, err := i.AddEventHandler(slow)
		require.NoError(t, err)
		defer w.run(i)()
		time.Sleep(10*time.Minute + 15*time.Second) // between two resyncs
		require.Equal(t, 1, i.Status().Queued)
		close(release)
		synctest.Wait()
		require.Equal(t, []string{"add a/1 created initial", "update a/1 created was created"}, slow.take())
	})
}

func TestHandlerRemovesItself(t *testing.T) {
	bubble(t, informertest.Options{}, func(t *testing.T, w *world) {
		w.create("a/1", "a/2")
		i := newInformer(w.lister(), &corev1.Pod{}, objectcache.Options{})
		var r cache.ResourceEventHandlerRegistration
		h := &told{before: func(string) { require.NoError(t, i.RemoveEventHandler(r)) }}
		r, err := i.AddEventHandler(h)
		require.NoError(t, err)
		defer w.run(i)()
		require.Len(t, h.take(), 1)
		<-r.(interface{ ShutdownChan() <-chan struct{} }).ShutdownChan()
		require.Error(t, i.RemoveEventHandler(nil))
	})
}

func TestHandlerThatEndsItsGoroutineIsCalledOn(t *testing.T) {
	bubble(t, informertest.Options{}, func(t *testing.T, w *world) {
		w.create("a/1", "a/2")
		i := newInformer(w.lister(), &corev1.Pod{}, objectcache.Options{})
		ended := 0
		_, err := i.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: func(interface{}) { ended++; runtime.Goexit() }})
		require.NoError(t, err)
		defer w.run(i)()
		require.Equal(t, 2, ended)
		require.Zero(t, i.Status().Queued)
	})
}

func TestPanicsAreSurvivedWhereAllowed(t *testing.T) {
	surviveCrashes(t)
	bubble(t, informertest.Options{}, func(t *testing.T, w *world) {
		w.create("a/1", "a/2", "a/3")
		i := newInformer(w.lister(), &corev1.Pod{}, objectcache.Options{
			Indexers: cache.Indexers{"bad": func(obj interface{}) ([]string, error) {
				if value(obj) == "bad" {
					return nil, errors.New("bad")
				}
				return nil, nil
			}},
		})
		var calls atomic.Int32
		r, err := i.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: func(interface{}) {
			if calls.Add(1) == 1 {
				panic("handler")
			}
		}})
		require.NoError(t, err)
		defer w.run(i)()
		require.EqualValues(t, 1, calls.Load())
		harness.Sleep(2 * time.Second)
		require.EqualValues(t, 3, calls.Load())
		require.True(t, r.HasSynced())

		w.update("a/1", "bad")
		w.update("a/2", "good")
		synctest.Wait()
		require.EqualValues(t, 1, i.Status().Skipped)
		obj, exists, err := i.GetStore().GetByKey("a/2")
		require.NoError(t, err)
		require.True(t, exists)
		require.Equal(t, "good", value(obj))
	})
}

func TestTransform(t *testing.T) {
	for name, foreign := range map[string]bool{"wire": false, "foreign": true} {
		bubbleRun(t, name, informertest.Options{}, func(t *testing.T, w *world) {
			w.create("a/1", "a/2")
			lw := w.lister()
			if foreign {
				lw = decoding{lw}
			}
			i := newInformer(lw, nil, objectcache.Options{})
			require.NoError(t, i.SetTransform(func(obj interface{}) (interface{}, error) {
				u := obj.(*unstructured.Unstructured)
				if value(u) == "bad" {
					return nil, errors.New("bad")
				}
				u.SetResourceVersion("")
				u.SetUID("")
				u.SetLabels(map[string]string{"value": value(u) + "!"})
				return u, nil
			}))
			h, _ := handle(t, i)
			defer w.run(i)()
			require.Error(t, i.SetTransform(nil))
			require.Equal(t, []string{"add a/1 created! initial", "add a/2 created! initial"}, h.sorted())
			w.requireInStep(i)
			w.update("a/1", "bad")
			w.update("a/1", "x")
			w.remove("a/2")
			synctest.Wait()
			require.Equal(t, []string{"update a/1 x! was created!", "delete a/2 created!"}, h.take())
			require.EqualValues(t, 1, i.Status().Skipped)
			w.requireInStep(i)
		})
	}
}

func TestObjectsThatTransformRefusesAreSkipped(t *testing.T) {
	for name, transform := range map[string]cache.TransformFunc{
		"error":     func(interface{}) (interface{}, error) { return nil, errors.New("refused") },
		"nil":       func(interface{}) (interface{}, error) { return nil, nil },
		"typed nil": func(interface{}) (interface{}, error) { return (*corev1.Pod)(nil), nil },
		"tombstone": func(obj interface{}) (interface{}, error) { return cache.DeletedFinalStateUnknown{Obj: obj}, nil },
		"list":      func(interface{}) (interface{}, error) { return &corev1.PodList{}, nil },
	} {
		bubbleRun(t, name, informertest.Options{}, func(t *testing.T, w *world) {
			w.create("a/1", "a/2")
			i := newInformer(w.lister(), &corev1.Pod{}, objectcache.Options{Transform: transform})
			h, _ := handle(t, i)
			defer w.run(i)()
			w.update("a/2", "x")
			w.remove("a/1") // the store has never had an object
			synctest.Wait()
			require.False(t, i.IsStopped())
			require.EqualValues(t, 4, i.Status().Skipped)
			require.Empty(t, h.take())
			require.Zero(t, i.Status().Objects)
		})
	}
}

func TestObjectThatAnIndexFunctionRefusesIsSkipped(t *testing.T) {
	surviveCrashes(t)
	for _, mode := range []informer.ListMode{informer.ListModeWatchList, informer.ListModePaged} {
		bubble(t, informertest.Options{}, func(t *testing.T, w *world) {
			w.create("a/1", "a/2")
			i := newInformer(w.lister(), &corev1.Pod{}, objectcache.Options{ListMode: mode, Indexers: cache.Indexers{
				"refuses a/1": func(obj interface{}) ([]string, error) {
					if describe(obj) == "a/1 created" {
						return nil, errors.New("refused")
					}
					return nil, nil
				},
			}})
			h, _ := handle(t, i)
			defer w.run(i)()
			require.True(t, i.HasSynced())
			require.EqualValues(t, 1, i.Status().Skipped)
			w.update("a/1", "x")
			synctest.Wait()
			require.Equal(t, []string{"add a/2 created initial", "add a/1 x"}, h.take())
			w.requireInStep(i)
		})
	}
}

// surviveCrashes lets the process survive panics, until the end of the test.
func surviveCrashes(t *testing.T) {
	old, log := utilruntime.ReallyCrash, klog.CaptureState()
	utilruntime.ReallyCrash = false
	klog.SetLogger(klog.Logger{})
	t.Cleanup(func() {
		utilruntime.ReallyCrash = old
		log.Restore()
	})
}

// decoding hides that a ListerWatcher can be read off the wire.
type decoding struct{ cache.ListerWatcher }

func TestForeignListerWatcher(t *testing.T) {
	bubble(t, informertest.Options{}, func(t *testing.T, w *world) {
		w.create("a/1")
		i := newInformer(decoding{w.lister()}, nil, objectcache.Options{Prune: []string{"metadata.labels"}})
		h, _ := handle(t, i)
		defer w.run(i)()
		w.update("a/1", "x")
		w.remove("a/1")
		synctest.Wait()
		require.Equal(t, []string{"add a/1  initial", "update a/1  was ", "delete a/1 "}, h.take())
	})
}

// TestSourceThatMakesNoVersions has a source like a fake client, which keeps the resource versions
// and UIDs that a test has set.
func TestSourceThatMakesNoVersions(t *testing.T) {
	for _, version := range []string{"", "7", "opaque"} {
		synctest.Test(t, func(t *testing.T) {
			labeled := func(value string) *corev1.Pod {
				p := podOf("a", "1", "u", version)
				p.Labels = map[string]string{"value": value}
				return p
			}
			events := watch.NewFake()
			lw := cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{
				ListFunc: func(metav1.ListOptions) (apiruntime.Object, error) {
					return &corev1.PodList{Items: []corev1.Pod{*labeled("0")}}, nil
				},
				WatchFunc: func(metav1.ListOptions) (watch.Interface, error) { return events, nil },
			}, noWatchLists{})
			i := newInformer(lw, &corev1.Pod{}, objectcache.Options{})
			h, _ := handle(t, i)
			w := &world{t: t}
			defer w.run(i)()
			events.Modify(labeled("1"))
			events.Modify(labeled("2"))
			events.Delete(labeled("2"))
			events.Add(labeled("3"))
			synctest.Wait()
			require.Equal(t, []string{"add a/1 0 initial", "update a/1 1 was 0", "update a/1 2 was 1", "delete a/1 2", "add a/1 3"}, h.take())
		})
	}
}

// noWatchLists says what a fake client says.
type noWatchLists struct{}

func (noWatchLists) IsWatchListSemanticsUnSupported() bool { return true }

func TestUndecodableObjectsAreSkipped(t *testing.T) {
	bubble(t, informertest.Options{}, func(t *testing.T, w *world) {
		w.create("a/1", "a/2")
		var reported []error
		i := newInformer(w.lister(), nil, objectcache.Options{
			ErrorHandler: func(r *informer.Reflector, err error) {
				if err != nil {
					reported = append(reported, err)
				}
				require.Equal(t, "<nil>", r.Name())
			},
		})
		h, _ := handle(t, i)
		heal := w.Inject(informertest.Fault{Match: informertest.Match{Verbs: []string{"watch-list"}}, Effect: informertest.Garbage(3)})
		defer w.run(i)()
		h.take()
		for n := range 4 {
			w.update("a/1", fmt.Sprint(n))
		}
		synctest.Wait()
		heal()
		harness.Sleep(5 * time.Minute)
		require.NotEmpty(t, reported)
		w.requireInStep(i)
		calls := h.take()
		require.True(t, strings.HasPrefix(calls[len(calls)-1], "update a/1 3 was "), calls)
	})
}

// A deletion among the initial events of a watch-list counts, also if its object or another one
// cannot be read.
func TestDeletionsAmongInitialEventsCount(t *testing.T) {
	const (
		unnamed = `{"type":"ADDED","object":{"kind":"Pod","apiVersion":"v1","metadata":{"namespace":"a"}}}` + "\n"
		pod     = `{"type":"%s","object":{"kind":"Pod","apiVersion":"v1","metadata":{"namespace":"a","name":"%s","uid":"%[2]s","resourceVersion":"%s"},"spec":%s}}` + "\n"
		end     = `{"type":"BOOKMARK","object":{"kind":"Pod","apiVersion":"v1","metadata":{"resourceVersion":"%s","annotations":{"k8s.io/initial-events-end":"true"}}}}` + "\n"
		expired = `{"type":"ERROR","object":{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Expired","code":410}}` + "\n"
	)
	for name, deletion := range map[string]string{
		"read":                 fmt.Sprintf(pod, "DELETED", "gone", "7", `{}`),
		"undecodable":          fmt.Sprintf(pod, "DELETED", "gone", "7", `"no object"`),
		"refused by Transform": fmt.Sprintf(pod, "DELETED", "gone", "7", `{"nodeName":"refused"}`),
		"of a partial set":     unnamed + fmt.Sprintf(pod, "DELETED", "gone", "7", `{}`),
	} {
		t.Run(name, func(t *testing.T) {
			var answer harness.OtherAnswer
			bubble(t, informertest.Options{Wrap: answer.Wrap}, func(t *testing.T, w *world) {
				i := newInformer(w.lister(), &corev1.Pod{}, objectcache.Options{Transform: func(obj interface{}) (interface{}, error) {
					if obj.(*corev1.Pod).Spec.NodeName == "refused" {
						return nil, errors.New("refused")
					}
					return obj, nil
				}})
				h, _ := handle(t, i)
				both := fmt.Sprintf(pod, "ADDED", "gone", "2", `{}`) + fmt.Sprintf(pod, "ADDED", "stays", "3", `{}`)
				answer.Set(both + fmt.Sprintf(end, "6") + expired)
				defer w.run(i)()
				require.Equal(t, []string{"add a/gone  initial", "add a/stays  initial"}, h.take())
				answer.Set(both + deletion + fmt.Sprintf(end, "7"))
				harness.Sleep(time.Minute)
				require.Equal(t, []string{"gone a/gone "}, h.take())
				require.Equal(t, []string{"a/stays"}, i.GetStore().ListKeys())
			})
		})
	}
}

func TestWatchErrorHandler(t *testing.T) {
	bubble(t, informertest.Options{}, func(t *testing.T, w *world) {
		w.Inject(informertest.Fault{Effect: informertest.Status(http.StatusForbidden)})
		i := newInformer(w.lister(), &corev1.Pod{}, objectcache.Options{})
		type key struct{}
		var got error
		require.NoError(t, i.SetWatchErrorHandlerWithContext(func(ctx context.Context, r *cache.Reflector, err error) {
			require.Equal(t, "value", ctx.Value(key{}))
			cache.DefaultWatchErrorHandler(ctx, r, io.EOF) // works with r
			got = err
		}))
		ctx, cancel := context.WithCancel(context.WithValue(context.Background(), key{}, "value"))
		var running sync.WaitGroup
		running.Go(func() { i.RunWithContext(ctx) })
		synctest.Wait()
		require.ErrorContains(t, got, "403")
		require.Error(t, i.SetWatchErrorHandler(nil))
		require.Equal(t, informer.PhaseBackoff, i.Status().Phase)
		require.False(t, i.HasSynced())
		cancel()
		running.Wait()
	})
}

func TestInformerRunsOnce(t *testing.T) {
	bubble(t, informertest.Options{}, func(t *testing.T, w *world) {
		i := newInformer(w.lister(), &corev1.Pod{}, objectcache.Options{})
		controller := i.GetController()
		require.Empty(t, i.LastSyncResourceVersion())
		stop := w.run(i)
		require.True(t, controller.HasSynced())
		require.NotEmpty(t, controller.LastSyncResourceVersion())
		i.Run(t.Context().Done()) // returns
		stop()
		require.True(t, i.IsStopped())
		_, err := i.AddEventHandler(&told{})
		require.ErrorContains(t, err, "stopped already")
		require.Error(t, i.AddIndexers(cache.Indexers{"x": cache.MetaNamespaceIndexFunc}))
		i.Run(t.Context().Done())
		require.Equal(t, informer.PhaseStopped, i.Status().Phase)
	})
}

func TestOptionsThatCannotWorkAreRefused(t *testing.T) {
	for field, opts := range map[string]objectcache.Options{
		"ResyncPeriod":      {ResyncPeriod: -1},
		"StallTimeout":      {StallTimeout: -1},
		"WatchListPageSize": {WatchListPageSize: -1},
		"ListMode":          {ListMode: 9},
		"metadata.name":     {Prune: []string{"metadata.name"}},
		"spec.nothing":      {Keep: []string{"spec.nothing"}},
		"HotBytes":          {Decoded: true, HotBytes: 1},
		"Snapshot":          {Decoded: true, Snapshot: informer.FileCheckpoint("pods")},
	} {
		require.ErrorContains(t, opts.Check(&corev1.Pod{}), field)
		require.Panics(t, func() { objectcache.NewSharedIndexInformerWithOptions(&cache.ListWatch{}, &corev1.Pod{}, opts) })
	}
	require.ErrorContains(t, objectcache.Options{}.Check(&informer.RawObject{}), "RawObject")
	require.NoError(t, objectcache.Options{}.Check(&corev1.Pod{}))
	require.Panics(t, func() { objectcache.NewSharedIndexInformer(nil, &corev1.Pod{}, 0, nil) })
	require.PanicsWithValue(t, `objectcache: informer "*v1.Pod": AuditEvery needs a ListerWatcher of an informer.DynamicListerWatcherFactory, not a *cache.ListWatch`, func() {
		objectcache.NewSharedIndexInformerWithOptions(&cache.ListWatch{}, &corev1.Pod{}, objectcache.Options{AuditEvery: time.Hour})
	})
}

func TestStallIsNoticed(t *testing.T) {
	bubble(t, informertest.Options{}, func(t *testing.T, w *world) {
		w.create("a/1")
		i := newInformer(w.lister(), &corev1.Pod{}, objectcache.Options{StallTimeout: time.Minute})
		h, _ := handle(t, i)
		defer w.run(i)()
		h.take()
		w.Inject(informertest.Fault{Match: informertest.Match{Verbs: []string{"watch"}}, Effect: informertest.Hang(), Times: 1})
		w.CloseClientConnections()
		time.Sleep(time.Second)
		w.update("a/1", "unheard")
		harness.Sleep(5 * time.Minute)
		require.Equal(t, []string{"update a/1 unheard was created"}, h.take())
	})
}

func TestListMode(t *testing.T) {
	for asked, used := range map[informer.ListMode]informer.ListMode{
		informer.ListModeAuto: informer.ListModeWatchList, informer.ListModePaged: informer.ListModePaged, informer.ListModeFull: informer.ListModeFull,
	} {
		bubble(t, informertest.Options{}, func(t *testing.T, w *world) {
			w.create("a/1", "a/2")
			i := newInformer(w.lister(), &corev1.Pod{}, objectcache.Options{ListMode: asked})
			defer w.run(i)()
			require.Equal(t, used, i.Status().ListMode)
			require.NoError(t, i.Status().Fallback)
			require.Positive(t, i.Status().Counts.ReceivedBytes)
			w.requireInStep(i)
		})
	}
}
