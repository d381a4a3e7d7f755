package tests_test

// What an attack on the informer found, each as the test that it failed.

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/informertest"
)

// After a restore, what the handler has not acknowledged is still the old and
// greater version; new events are not older than that.
func TestRewoundVersionsAreNotStaleAfterAPanic(t *testing.T) {
	survivePanics(t)
	synctest.Test(t, func(t *testing.T) {
		storage := informer.NewResourceVersionStorage()
		require.NoError(t, storage.Replace(map[string]interface{}{"a/1": "100"}))
		lw := &tap{onList: lists(list("50", "", pod("a/1", "40"))), onWatch: watches(open(
			watch.Event{Type: watch.Modified, Object: pod("a/1", "51")}, watch.Event{Type: watch.Deleted, Object: pod("a/1", "52")}))}
		r := recorder{folded: map[string]string{"a/1": "100"}}
		r.before = func(string) {
			if len(r.events()) == 0 {
				r.before = nil
				panic("boom")
			}
		}
		i := informer.NewResourceVersionInformer("pods", informer.InformerConfig{ListerWatcher: lw, Storage: storage, Handler: &r, ErrorHandler: quiet})
		lw.onWatch = func(_ context.Context, n int, _ metav1.ListOptions) (watch.Interface, error) {
			time.Sleep(time.Second) // the panic is over
			return stream(false, watch.Event{Type: watch.Modified, Object: pod("a/1", "51")}, watch.Event{Type: watch.Deleted, Object: pod("a/1", "52")}), nil
		}
		defer start(i.RunWithContext)()
		time.Sleep(time.Minute)
		require.Empty(t, r.state(), "%v %+v", r.events(), i.Status())
	})
}

func TestRewoundVersionsAreNotStaleAfterAnUnreadableItem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		storage := informer.NewResourceVersionStorage()
		require.NoError(t, storage.Replace(map[string]interface{}{"a/1": "100"}))
		lw := &tap{onList: lists(list("50", "", pod("a/1", "40"))), onWatch: watches(open(watch.Event{Type: watch.Deleted, Object: pod("a/1", "52")}))}
		r := recorder{folded: map[string]string{"a/1": "100"}}
		i := informer.NewResourceVersionInformer("pods", informer.InformerConfig{ListerWatcher: lw, Storage: storage, Handler: &r, ErrorHandler: quiet,
			Transform: func(obj interface{}) (interface{}, error) {
				if obj.(*unstructured.Unstructured).GetResourceVersion() == "40" {
					return nil, errors.New("cannot")
				}
				return obj, nil
			}})
		defer start(i.RunWithContext)()
		time.Sleep(time.Minute)
		require.Empty(t, r.state(), "%v %+v", r.events(), i.Status())
	})
}

// retriedDeltaFIFO lets the first call of Process fail, after meanwhile, and
// requires that nothing is stored in the end. Time is real: a DeltaFIFO blocks its
// writers on a mutex, which a bubble cannot see.
func retriedDeltaFIFO(t *testing.T, lw cache.ListerWatcher, meanwhile func()) {
	store := newStore()
	queue := cache.NewDeltaFIFOWithOptions(cache.DeltaFIFOOptions{KnownObjects: store})
	calls, called, release := 0, make(chan struct{}), make(chan struct{})
	c := informer.NewNamedController("pods", &informer.Config{Queue: queue, ListerWatcher: lw, RetryOnError: true, WatchErrorHandler: quiet,
		Process: func(obj interface{}, _ bool) error {
			if calls++; calls == 1 {
				close(called)
				<-release
				return errors.New("once")
			}
			return apply(store, obj)
		}})
	stop := start(c.RunWithContext)
	<-called
	meanwhile()
	time.Sleep(100 * time.Millisecond)
	close(release)
	time.Sleep(3 * time.Second) // the retry comes after 100 to 150 ms
	stop()
	require.Empty(t, contents(store))
}

func TestRetryOnErrorADeletionDuringTheFirstCall(t *testing.T) {
	events := watch.NewFakeWithChanSize(2, false)
	events.Add(pod("a/1", "11"))
	lw := &tap{onList: lists(list("10", "")), onWatch: watches(func() (watch.Interface, error) { return events, nil })}
	retriedDeltaFIFO(t, lw, func() { events.Delete(pod("a/1", "12")) })
}

// A handler that took an object in and panicked then is told of its deletion,
// also where a list found it.
func TestADeletionInAnOutageAfterAPanic(t *testing.T) {
	survivePanics(t)
	bubble(t, informertest.Options{}, func(t *testing.T, w *world) {
		w.create("a/1")
		taken := map[string]bool{}
		h := informer.ResourceEventHandlerFuncs{
			AddFunc:    func(obj interface{}) { taken[key(obj)] = true; panic("after it was taken in") },
			DeleteFunc: func(obj interface{}) { delete(taken, key(obj)) },
		}
		i := follow(w, informer.InformerConfig{Handler: h})
		defer start(i.RunWithContext)()
		synctest.Wait()
		w.down(func() { w.remove("a/1") })
		synctest.Wait()
		require.Empty(t, taken)
	})
}

func TestAWatchThatDoesNotCloseItsChannel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		events := make(chan watch.Event)
		lw := &tap{onList: lists(list("10", "")), onWatch: func(context.Context, int, metav1.ListOptions) (watch.Interface, error) {
			return watch.NewProxyWatcher(events), nil
		}}
		i := informer.NewResourceVersionInformer("pods", informer.InformerConfig{ListerWatcher: lw, Handler: &recorder{}, ErrorHandler: quiet})
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan struct{})
		go func() { i.RunWithContext(ctx); close(done) }()
		synctest.Wait()
		cancel()
		select {
		case <-done:
		case <-time.After(time.Hour):
			close(events)
			t.Error("Run did not return within an hour")
		}
	})
}

func TestObjectsWithoutAVersion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var got []interface{}
		h := informer.ResourceEventHandlerFuncs{
			AddFunc:    func(obj interface{}) { got = append(got, obj.(*unstructured.Unstructured).Object["data"]) },
			UpdateFunc: func(_, obj interface{}) { got = append(got, obj.(*unstructured.Unstructured).Object["data"]) },
		}
		lw := &tap{onList: lists(list("10", "", object(pods, "a/1", "old")), list("20", "", object(pods, "a/1", "new"))), onWatch: watches(broken(expired()), open())}
		i := informer.NewResourceVersionInformer("pods", informer.InformerConfig{ListerWatcher: lw, Handler: h, ErrorHandler: quiet})
		defer start(i.RunWithContext)()
		time.Sleep(time.Minute)
		synctest.Wait()
		require.Equal(t, []interface{}{"old", "new"}, got)
	})
}

func TestASecondRunIsNotOlderThanAnOpaqueVersion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lw := &tap{onList: lists(list("abc", "", pod("a/1", "xyz"))), onWatch: watches(open())}
		i := informer.NewResourceVersionInformer("pods", informer.InformerConfig{ListerWatcher: lw, Handler: &recorder{}, ErrorHandler: quiet, ListMode: informer.ListModeFull})
		for range 2 {
			stop := start(i.RunWithContext)
			time.Sleep(time.Minute)
			stop()
		}
		require.Equal(t, "list rv=abc limit=0", lw.requests()[2], "%v", lw.requests())
	})
}

func TestAResyncPassesOverWhatHasNoKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := cache.NewStore(func(obj interface{}) (string, error) {
			if s, ok := obj.(string); ok {
				return s, nil
			}
			return cache.DeletionHandlingMetaNamespaceKeyFunc(obj)
		})
		require.NoError(t, store.Add("a/bad"))
		lw := &tap{onList: lists(list("10", "", pod("a/1", "5"), pod("a/2", "6"))), onWatch: watches(open())}
		updates := 0
		c := informer.NewInformer(lw, nil, store, time.Minute, cache.ResourceEventHandlerFuncs{UpdateFunc: func(_, _ interface{}) { updates++ }}, nil)
		defer start(c.RunWithContext)()
		time.Sleep(10*time.Minute + time.Second)
		synctest.Wait()
		require.Equal(t, 20, updates, "%v", lw.requests())
	})
}

func TestATransformThatReturnsNil(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lw := &tap{onList: lists(list("10", "", pod("a/1", "5"))), onWatch: watches(open())}
		var nils int
		h := informer.ResourceEventHandlerFuncs{AddFunc: func(obj interface{}) {
			if obj == nil {
				nils++
			}
		}}
		i := informer.NewResourceVersionInformer("pods", informer.InformerConfig{ListerWatcher: lw, Handler: h, ErrorHandler: quiet,
			Transform: func(interface{}) (interface{}, error) { return nil, nil }})
		defer start(i.RunWithContext)()
		time.Sleep(time.Minute)
		synctest.Wait()
		require.Zero(t, nils, "the handler was given nil; skipped %d", i.Status().Skipped)
	})
}

func TestStorageReplacedWhileRunning(t *testing.T) {
	bubble(t, informertest.Options{}, func(t *testing.T, w *world) {
		w.create("a/1", "a/2")
		var r recorder
		storage := informer.NewResourceVersionStorage()
		i := follow(w, informer.InformerConfig{Handler: &r, Storage: storage})
		defer start(i.RunWithContext)()
		synctest.Wait()
		w.relist()
		w.relist()
		same := map[string]interface{}{}
		for k, v := range storage.All() {
			same[k] = v
		}
		require.NoError(t, storage.Replace(same))
		w.update("a/1", "x")
		synctest.Wait()
		w.down(func() { w.remove("a/1") })
		w.requireState(&r)
	})
}

// A server that ends each watch at once, but not without an event, is not asked
// in a busy loop.
func TestAWatchThatEndsAtOnceAfterAnEvent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lw := &tap{onList: lists(list("10", "")), onWatch: func(context.Context, int, metav1.ListOptions) (watch.Interface, error) {
			return stream(true, watch.Event{Type: watch.Bookmark, Object: pod("x/x", "10")}), nil
		}}
		i := informer.NewResourceVersionInformer("pods", informer.InformerConfig{ListerWatcher: lw, Handler: &recorder{}, ErrorHandler: quiet})
		stop := start(i.RunWithContext)
		time.Sleep(time.Minute)
		stop()
		require.Less(t, len(lw.requests()), 10)
		require.NoError(t, i.Status().LastError)
	})
}

func TestATransformThatPanics(t *testing.T) {
	survivePanics(t)
	synctest.Test(t, func(t *testing.T) {
		lw := &tap{onList: lists(list("10", "", pod("a/1", "5"), pod("a/2", "6"))), onWatch: watches(open())}
		var r recorder
		var f failures
		i := informer.NewResourceVersionInformer("pods", informer.InformerConfig{ListerWatcher: lw, Handler: &r, ErrorHandler: f.handle,
			Transform: func(obj interface{}) (interface{}, error) {
				if key(obj) == "a/1" {
					panic("malformed")
				}
				return obj, nil
			}})
		defer start(i.RunWithContext)()
		synctest.Wait()
		require.Equal(t, []string{"add a/2 initial"}, r.events())
		errs, _ := f.all()
		require.Len(t, errs, 1)
		require.EqualError(t, errs[0], `list item 0 "a/1" skipped: transform: panic: malformed`)
	})
}

// Rule 7 for a controller with a queue of its own: its Deltas tell of both.
func TestControllerIsToldOfARecreatedObject(t *testing.T) {
	bubble(t, informertest.Options{}, func(t *testing.T, w *world) {
		w.create("a/1")
		var popped []cache.DeltaType
		c := informer.NewNamedController("pods", &informer.Config{ListerWatcher: w.lister(), WatchErrorHandler: quiet,
			Process: func(obj interface{}, _ bool) error {
				for _, d := range obj.(cache.Deltas) {
					popped = append(popped, d.Type)
				}
				return nil
			}})
		defer start(c.RunWithContext)()
		synctest.Wait()
		w.down(func() {
			w.remove("a/1")
			w.create("a/1")
		})
		synctest.Wait()
		require.Equal(t, []cache.DeltaType{cache.Replaced, cache.Deleted, cache.Replaced}, popped)
	})
}

func TestAControllerWithAQueueOfTheUsersRunsOnce(t *testing.T) {
	bubble(t, informertest.Options{}, func(t *testing.T, w *world) {
		var f failures
		c := informer.NewNamedController("pods", &informer.Config{
			Queue: cache.NewRealFIFOWithOptions(cache.RealFIFOOptions{AtomicEvents: true}), ListerWatcher: w.lister(), WatchErrorHandler: f.handle,
			Process: func(interface{}, bool) error { return nil },
		})
		start(c.RunWithContext)()
		c.RunWithContext(t.Context()) // returns
		errs, _ := f.all()
		require.ErrorIs(t, errs[len(errs)-1], informer.ErrAlreadyRunning)
	})
}
