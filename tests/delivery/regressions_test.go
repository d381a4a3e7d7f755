package delivery_test

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
	"github.com/rvinformer/informer/tests/harness"
)

// After a restore, what the handler has not acknowledged is still the old and
// greater version; new events are not older than that.
func TestRewoundVersionsAreNotStaleAfterAPanic(t *testing.T) {
	harness.SurvivePanics(t)
	synctest.Test(t, func(t *testing.T) {
		storage := informer.NewResourceVersionStorage()
		require.NoError(t, storage.Replace(map[string]interface{}{"a/1": "100"}))
		lw := &harness.Tap{OnList: harness.Lists(harness.List("50", "", harness.Pod("a/1", "40"))), OnWatch: harness.Watches(harness.Open(
			watch.Event{Type: watch.Modified, Object: harness.Pod("a/1", "51")}, watch.Event{Type: watch.Deleted, Object: harness.Pod("a/1", "52")}))}
		r := harness.Recorder{Folded: map[string]string{"a/1": "100"}}
		r.Before = func(string) {
			if len(r.Events()) == 0 {
				r.Before = nil
				panic("boom")
			}
		}
		i := informer.NewResourceVersionInformer("pods", informer.InformerConfig{ListerWatcher: lw, Storage: storage, Handler: &r, ErrorHandler: harness.IgnoreErrors})
		lw.OnWatch = func(_ context.Context, n int, _ metav1.ListOptions) (watch.Interface, error) {
			time.Sleep(time.Second) // the panic is over
			return harness.Stream(false, watch.Event{Type: watch.Modified, Object: harness.Pod("a/1", "51")}, watch.Event{Type: watch.Deleted, Object: harness.Pod("a/1", "52")}), nil
		}
		defer harness.Start(i.RunWithContext)()
		time.Sleep(time.Minute)
		require.Empty(t, r.State(), "%v %+v", r.Events(), i.Status())
	})
}

func TestRewoundVersionsAreNotStaleAfterAnUnreadableItem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		storage := informer.NewResourceVersionStorage()
		require.NoError(t, storage.Replace(map[string]interface{}{"a/1": "100"}))
		lw := &harness.Tap{OnList: harness.Lists(harness.List("50", "", harness.Pod("a/1", "40"))), OnWatch: harness.Watches(harness.Open(watch.Event{Type: watch.Deleted, Object: harness.Pod("a/1", "52")}))}
		r := harness.Recorder{Folded: map[string]string{"a/1": "100"}}
		i := informer.NewResourceVersionInformer("pods", informer.InformerConfig{ListerWatcher: lw, Storage: storage, Handler: &r, ErrorHandler: harness.IgnoreErrors,
			Transform: func(obj interface{}) (interface{}, error) {
				if obj.(*unstructured.Unstructured).GetResourceVersion() == "40" {
					return nil, errors.New("cannot")
				}
				return obj, nil
			}})
		defer harness.Start(i.RunWithContext)()
		time.Sleep(time.Minute)
		require.Empty(t, r.State(), "%v %+v", r.Events(), i.Status())
	})
}

// retriedDeltaFIFO lets the first call of Process fail, after meanwhile, and
// requires that nothing is stored in the end. Time is real: a DeltaFIFO blocks its
// writers on a mutex, which a bubble cannot see.
func retriedDeltaFIFO(t *testing.T, lw cache.ListerWatcher, meanwhile func()) {
	store := harness.NewStore()
	queue := cache.NewDeltaFIFOWithOptions(cache.DeltaFIFOOptions{KnownObjects: store})
	calls, called, release := 0, make(chan struct{}), make(chan struct{})
	c := informer.NewNamedController("pods", &informer.Config{Queue: queue, ListerWatcher: lw, RetryOnError: true, WatchErrorHandler: harness.IgnoreErrors,
		Process: func(obj interface{}, _ bool) error {
			if calls++; calls == 1 {
				close(called)
				<-release
				return errors.New("once")
			}
			return harness.Apply(store, obj)
		}})
	stop := harness.Start(c.RunWithContext)
	<-called
	meanwhile()
	time.Sleep(100 * time.Millisecond)
	close(release)
	time.Sleep(3 * time.Second) // the retry comes after 100 to 150 ms
	stop()
	require.Empty(t, harness.Contents(store))
}

func TestRetryOnErrorADeletionDuringTheFirstCall(t *testing.T) {
	events := watch.NewFakeWithChanSize(2, false)
	events.Add(harness.Pod("a/1", "11"))
	lw := &harness.Tap{OnList: harness.Lists(harness.List("10", "")), OnWatch: harness.Watches(func() (watch.Interface, error) { return events, nil })}
	retriedDeltaFIFO(t, lw, func() { events.Delete(harness.Pod("a/1", "12")) })
}

func TestAWatchThatDoesNotCloseItsChannel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		events := make(chan watch.Event)
		lw := &harness.Tap{OnList: harness.Lists(harness.List("10", "")), OnWatch: func(context.Context, int, metav1.ListOptions) (watch.Interface, error) {
			return watch.NewProxyWatcher(events), nil
		}}
		i := informer.NewResourceVersionInformer("pods", informer.InformerConfig{ListerWatcher: lw, Handler: &harness.Recorder{}, ErrorHandler: harness.IgnoreErrors})
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

func TestASecondRunIsNotOlderThanAnOpaqueVersion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lw := &harness.Tap{OnList: harness.Lists(harness.List("abc", "", harness.Pod("a/1", "xyz"))), OnWatch: harness.Watches(harness.Open())}
		i := informer.NewResourceVersionInformer("pods", informer.InformerConfig{ListerWatcher: lw, Handler: &harness.Recorder{}, ErrorHandler: harness.IgnoreErrors, ListMode: informer.ListModeFull})
		for range 2 {
			stop := harness.Start(i.RunWithContext)
			time.Sleep(time.Minute)
			stop()
		}
		require.Equal(t, "list rv=abc limit=0", lw.Requests()[2], "%v", lw.Requests())
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
		lw := &harness.Tap{OnList: harness.Lists(harness.List("10", "", harness.Pod("a/1", "5"), harness.Pod("a/2", "6"))), OnWatch: harness.Watches(harness.Open())}
		updates := 0
		c := informer.NewInformer(lw, nil, store, time.Minute, cache.ResourceEventHandlerFuncs{UpdateFunc: func(_, _ interface{}) { updates++ }}, nil)
		defer harness.Start(c.RunWithContext)()
		harness.Sleep(10*time.Minute + time.Second)
		require.Equal(t, 20, updates, "%v", lw.Requests())
	})
}

func TestATransformThatReturnsNil(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lw := &harness.Tap{OnList: harness.Lists(harness.List("10", "", harness.Pod("a/1", "5"))), OnWatch: harness.Watches(harness.Open())}
		var nils int
		h := informer.ResourceEventHandlerFuncs{AddFunc: func(obj interface{}) {
			if obj == nil {
				nils++
			}
		}}
		i := informer.NewResourceVersionInformer("pods", informer.InformerConfig{ListerWatcher: lw, Handler: h, ErrorHandler: harness.IgnoreErrors,
			Transform: func(interface{}) (interface{}, error) { return nil, nil }})
		defer harness.Start(i.RunWithContext)()
		harness.Sleep(time.Minute)
		require.Zero(t, nils, "the handler was given nil; skipped %d", i.Status().Skipped)
	})
}

func TestStorageReplacedWhileRunning(t *testing.T) {
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		w.CreatePods("a/1", "a/2")
		var r harness.Recorder
		storage := informer.NewResourceVersionStorage()
		harness.Settled(w, informer.InformerConfig{Handler: &r, Storage: storage})
		w.Relist()
		w.Relist()
		same := map[string]interface{}{}
		for k, v := range storage.All() {
			same[k] = v
		}
		require.NoError(t, storage.Replace(same))
		w.UpdatePod("a/1", "x")
		synctest.Wait()
		w.Down(func() { w.DeletePods("a/1") })
		w.RequireState(&r)
	})
}

// A server that ends each watch at once, but not without an event, is not asked
// in a busy loop.
func TestAWatchThatEndsAtOnceAfterAnEvent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lw := &harness.Tap{OnList: harness.Lists(harness.List("10", "")), OnWatch: func(context.Context, int, metav1.ListOptions) (watch.Interface, error) {
			return harness.Stream(true, watch.Event{Type: watch.Bookmark, Object: harness.Pod("x/x", "10")}), nil
		}}
		i := informer.NewResourceVersionInformer("pods", informer.InformerConfig{ListerWatcher: lw, Handler: &harness.Recorder{}, ErrorHandler: harness.IgnoreErrors})
		stop := harness.Start(i.RunWithContext)
		time.Sleep(time.Minute)
		stop()
		require.LessOrEqual(t, len(lw.Requests()), 26, "a watch each 2.5 s")
		require.NoError(t, i.Status().LastError)
	})
}

func TestATransformThatPanics(t *testing.T) {
	harness.SurvivePanics(t)
	synctest.Test(t, func(t *testing.T) {
		lw := &harness.Tap{OnList: harness.Lists(harness.List("10", "", harness.Pod("a/1", "5"), harness.Pod("a/2", "6"))), OnWatch: harness.Watches(harness.Open())}
		var r harness.Recorder
		var f harness.Failures
		i := informer.NewResourceVersionInformer("pods", informer.InformerConfig{ListerWatcher: lw, Handler: &r, ErrorHandler: f.Handle,
			Transform: func(obj interface{}) (interface{}, error) {
				if harness.Key(obj) == "a/1" {
					panic("malformed")
				}
				return obj, nil
			}})
		defer harness.Settle(i.RunWithContext)()
		require.Equal(t, []string{"add a/2 initial"}, r.Events())
		require.EqualError(t, f.One(t), `list item 0 "a/1" skipped: transform: panic: malformed`)
	})
}

// Rule 7 for a controller with a queue of its own: its Deltas tell of both.
func TestControllerIsToldOfARecreatedObject(t *testing.T) {
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		w.CreatePods("a/1")
		var popped []cache.DeltaType
		c := informer.NewNamedController("pods", &informer.Config{ListerWatcher: w.Lister(), WatchErrorHandler: harness.IgnoreErrors,
			Process: func(obj interface{}, _ bool) error {
				for _, d := range obj.(cache.Deltas) {
					popped = append(popped, d.Type)
				}
				return nil
			}})
		defer harness.Settle(c.RunWithContext)()
		w.Down(func() {
			w.DeletePods("a/1")
			w.CreatePods("a/1")
		})
		synctest.Wait()
		require.Equal(t, []cache.DeltaType{cache.Sync, cache.Deleted, cache.Sync}, popped)
	})
}

func TestAControllerWithAQueueOfTheUsersRunsOnce(t *testing.T) {
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		var f harness.Failures
		c := informer.NewNamedController("pods", &informer.Config{
			Queue: cache.NewRealFIFOWithOptions(cache.RealFIFOOptions{AtomicEvents: true}), ListerWatcher: w.Lister(), WatchErrorHandler: f.Handle,
			Process: func(interface{}, bool) error { return nil },
		})
		harness.Start(c.RunWithContext)()
		c.RunWithContext(t.Context()) // returns
		errs := f.Errors()
		require.ErrorIs(t, errs[len(errs)-1], informer.ErrAlreadyRunning)
	})
}
