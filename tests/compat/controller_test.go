package compat_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
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

// queues are the kinds of queues that a controller can empty; known is where
// Process folds what it is given. A nil queue is the controller's own.
var queues = map[string]func(known cache.Store) cache.Queue{
	"own": func(cache.Store) cache.Queue { return nil },
	"DeltaFIFO": func(known cache.Store) cache.Queue {
		return cache.NewDeltaFIFOWithOptions(cache.DeltaFIFOOptions{
			KeyFunction: cache.DeletionHandlingMetaNamespaceKeyFunc, KnownObjects: known, EmitDeltaTypeReplaced: true,
		})
	},
	"RealFIFO": func(known cache.Store) cache.Queue {
		return cache.NewRealFIFOWithOptions(cache.RealFIFOOptions{KeyFunction: cache.DeletionHandlingMetaNamespaceKeyFunc, KnownObjects: known})
	},
	"atomic RealFIFO": func(cache.Store) cache.Queue {
		return cache.NewRealFIFOWithOptions(cache.RealFIFOOptions{AtomicEvents: true, UnlockWhileProcessing: true})
	},
}

// forQueues runs test for every kind of queue.
func forQueues(t *testing.T, test func(t *testing.T, known cache.Store, queue cache.Queue)) {
	for name, makeQueue := range queues {
		harness.SynctestRun(t, name, func(t *testing.T) {
			known := harness.NewStore()
			test(t, known, makeQueue(known))
		})
	}
}

// keysOf are the keys of deltas that a queue popped.
func keysOf(popped interface{}) (keys []string) {
	for _, d := range popped.(cache.Deltas) {
		switch obj := d.Object.(type) {
		case cache.ReplacedAllInfo:
			for _, obj := range obj.Objects {
				keys = append(keys, harness.Key(obj))
			}
		case cache.SyncAllInfo, cache.BookmarkInfo:
		default:
			keys = append(keys, harness.Key(obj))
		}
	}
	return keys
}

func TestControllerKeepsInStepWhateverTheQueue(t *testing.T) {
	for name, makeQueue := range queues {
		for _, retry := range []bool{false, true} {
			harness.BubbleRun(t, fmt.Sprintf("%s/retry=%t", name, retry), informertest.Options{}, func(t *testing.T, w *harness.World) {
				w.CreatePods("a/1", "a/2", "a/3", "b/1")
				lw := harness.TapOn(w.Lister())
				lw.OnWatch = func(_ context.Context, n int, _ metav1.ListOptions) (watch.Interface, error) {
					if n == 2 { // what happens now, no watch tells
						w.DeletePods("a/1", "b/1")
						w.CreatePods("b/1", "c/1")
						w.UpdatePod("a/2", "unseen")
						w.Compact()
					}
					return nil, harness.ErrPass
				}
				known := harness.NewStore()
				var f harness.Failures
				c := informer.NewNamedController("test", &informer.Config{
					Queue:             makeQueue(known),
					ListerWatcher:     lw,
					ObjectType:        &unstructured.Unstructured{},
					Process:           func(obj interface{}, _ bool) error { return harness.Apply(known, obj) },
					RetryOnError:      retry,
					WatchErrorHandler: f.Handle,
					WatchListPageSize: 2,
					FullResyncPeriod:  10 * time.Minute,
				})
				defer harness.Start(c.RunWithContext)()
				agrees := func() {
					t.Helper()
					synctest.Wait()
					want := w.Versions()
					require.Equal(t, want, harness.Contents(known))
					require.True(t, c.HasSynced())
					require.Equal(t, w.ResourceVersion(), c.LastSyncResourceVersion())
				}
				agrees()
				w.UpdatePod("a/3", "changed")
				w.DeletePods("a/2")
				w.CreatePods("a/2", "d/1")
				agrees()
				w.CloseClientConnections()
				time.Sleep(15 * time.Minute)
				agrees()
				require.GreaterOrEqual(t, count(lw.Requests(), func(s string) bool { return strings.HasPrefix(s, "list") && !strings.Contains(s, "continue") }), 2)
				_, started := f.All()
				require.GreaterOrEqual(t, started, 2, "nil is reported for each watch that starts")
			})
		}
	}
}

func TestB8HasSyncedBeforeRun(t *testing.T) {
	forQueues(t, func(t *testing.T, known cache.Store, queue cache.Queue) {
		if queue != nil {
			require.NoError(t, queue.Add(harness.Pod("a/1", "1")))
			require.True(t, queue.HasSynced())
		}
		lw := &harness.Tap{OnList: harness.Lists(harness.List("5", "")), OnWatch: harness.Watches(harness.Open())}
		c := informer.NewNamedController("test", &informer.Config{Queue: queue, ListerWatcher: lw, Process: func(obj interface{}, _ bool) error { return harness.Apply(known, obj) }})
		require.False(t, c.HasSynced())
		require.Equal(t, "test", c.HasSyncedChecker().Name())
		require.False(t, cache.IsDone(c.HasSyncedChecker()))
		require.Empty(t, c.LastSyncResourceVersion())
		defer harness.Settle(c.RunWithContext)()
		require.True(t, c.HasSynced())
		require.True(t, cache.IsDone(c.HasSyncedChecker()))
		require.Equal(t, "5", c.LastSyncResourceVersion())
	})
}

func TestControllerHasSyncedAfterTheLastInitialObjectWasProcessed(t *testing.T) {
	requireSyncedAfterTheLast(t, harness.Pod("a/1", "2"), harness.Pod("a/2", "3"), harness.Pod("a/3", "4"))
}

// What the first list shows unreadably does not make the controller synced before, or never.
func TestControllerHasSyncedAfterAFirstListWithUnreadableObjects(t *testing.T) {
	stranger := harness.Object(harness.Widgets, "a/wrong", "")
	requireSyncedAfterTheLast(t, harness.Pod("a/1", "2"), stranger, harness.Pod("a/2", "3"), harness.Pod("a/3", "4"))
	forQueues(t, func(t *testing.T, known cache.Store, queue cache.Queue) {
		w := harness.NewSent()
		initial := map[string]bool{}
		c := informer.NewNamedController("test", &informer.Config{
			Queue: queue, WatchErrorHandler: harness.IgnoreErrors, ObjectType: harness.Object(harness.Pods, "a/0", ""),
			ListerWatcher: &harness.Tap{OnList: harness.Lists(harness.List("5", "", stranger)), OnWatch: w.Answer},
			Process: func(obj interface{}, isInInitialList bool) error {
				for _, key := range keysOf(obj) {
					initial[key] = isInInitialList
				}
				return harness.Apply(known, obj)
			},
		})
		stop := harness.Settle(c.RunWithContext)
		defer stop()
		require.True(t, c.HasSynced())
		w.Add(harness.Pod("b/1", "6"))
		synctest.Wait()
		stop()
		require.Equal(t, map[string]bool{"b/1": false}, initial)
	})
}

// requireSyncedAfterTheLast requires that a controller is synced when Process has returned for a/3,
// the last object of the first list.
func requireSyncedAfterTheLast(t *testing.T, listed ...*unstructured.Unstructured) {
	t.Helper()
	forQueues(t, func(t *testing.T, known cache.Store, queue cache.Queue) {
		entered, release := make(chan struct{}), make(chan struct{})
		var mu sync.Mutex
		var processed []string
		initial := map[string]bool{}
		lw := &harness.Tap{OnList: harness.Lists(harness.List("5", "", listed...))}
		lw.OnWatch = harness.Watches(harness.Open(watch.Event{Type: watch.Added, Object: harness.Pod("b/1", "6")}))
		c := informer.NewNamedController("test", &informer.Config{
			Queue: queue, ListerWatcher: lw, WatchErrorHandler: harness.IgnoreErrors, ObjectType: harness.Object(harness.Pods, "a/0", ""),
			Process: func(obj interface{}, isInInitialList bool) error {
				keys := keysOf(obj)
				if slices.Contains(keys, "a/3") {
					close(entered)
					<-release
				}
				mu.Lock()
				defer mu.Unlock()
				processed = append(processed, keys...)
				for _, key := range keys {
					initial[key] = isInInitialList
				}
				return harness.Apply(known, obj)
			},
		})
		defer harness.Start(c.RunWithContext)()
		// The queues hold their lock in Process: a bubble does not take a goroutine
		// that waits for that for blocked.
		<-entered
		require.False(t, c.HasSynced())
		close(release)
		synctest.Wait()
		require.True(t, c.HasSynced())
		mu.Lock()
		defer mu.Unlock()
		require.ElementsMatch(t, []string{"a/1", "a/2", "a/3", "b/1"}, processed)
		require.True(t, initial["a/1"] && initial["a/2"])
		require.False(t, initial["b/1"])
		if _, ok := queue.(*cache.DeltaFIFO); !ok { // which takes itself for synced before the last
			require.True(t, initial["a/3"])
		}
	})
}

func TestControllerNeedsItsParts(t *testing.T) {
	process := func(interface{}, bool) error { return nil }
	require.Panics(t, func() { informer.NewNamedController("x", &informer.Config{Process: process}) })
	require.Panics(t, func() { informer.NewNamedController("x", &informer.Config{ListerWatcher: &harness.Tap{}}) })
}

func TestControllerCopiesItsConfig(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		known := harness.NewStore()
		config := &informer.Config{
			ListerWatcher: &harness.Tap{OnList: harness.Lists(harness.List("5", "", harness.Pod("a/1", "2"))), OnWatch: harness.Watches(harness.Open())},
			Process:       func(obj interface{}, _ bool) error { return harness.Apply(known, obj) },
		}
		c := informer.NewNamedController("test", config)
		*config = informer.Config{}
		stop := make(chan struct{})
		done := make(chan struct{})
		go func() { defer close(done); c.Run(stop) }()
		synctest.Wait()
		require.Equal(t, map[string]string{"a/1": "2"}, harness.Contents(known))
		close(stop)
		<-done
	})
}

func TestControllerDrainsItsQueueAfterStop(t *testing.T) {
	for _, name := range []string{"DeltaFIFO", "RealFIFO"} {
		harness.SynctestRun(t, name, func(t *testing.T) {
			known := harness.NewStore()
			entered, release := make(chan struct{}, 3), make(chan struct{})
			c := informer.NewNamedController("test", &informer.Config{
				Queue:         queues[name](known),
				ListerWatcher: &harness.Tap{OnList: harness.Lists(harness.List("5", "", harness.Pod("a/1", "2"), harness.Pod("a/2", "3"), harness.Pod("a/3", "4"))), OnWatch: harness.Watches(harness.Open())},
				Process: func(obj interface{}, _ bool) error {
					entered <- struct{}{}
					<-release
					return harness.Apply(known, obj)
				},
			})
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan struct{})
			go func() { defer close(done); c.RunWithContext(ctx) }()
			<-entered
			cancel()
			close(release)
			<-done
			require.Len(t, known.ListKeys(), 3)
		})
	}
}

func TestOwnQueueOfAControllerGoesOnInTheNextRun(t *testing.T) {
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		w.CreatePods("a/1", "a/2")
		known := harness.NewStore()
		var tombstone cache.DeletedFinalStateUnknown
		c := informer.NewNamedController("test", &informer.Config{ListerWatcher: w.Lister(), Process: func(obj interface{}, _ bool) error {
			if deletion, ok := obj.(cache.Deltas)[0].Object.(cache.DeletedFinalStateUnknown); ok {
				tombstone = deletion
			}
			return harness.Apply(known, obj)
		}})
		stop := harness.Settle(c.RunWithContext)
		defer stop()
		stop()
		gone, err := w.Get(harness.Pods, "a", "1")
		require.NoError(t, err)
		w.DeletePods("a/1")
		w.CreatePods("a/3")
		stop = harness.Settle(c.RunWithContext)
		stop()
		want := w.Versions()
		require.Equal(t, want, harness.Contents(known))
		require.Equal(t, "a/1", tombstone.Key)
		require.Equal(t, gone.GetUID(), harness.LastKnown(t, tombstone).UID)
		require.Equal(t, gone.GetResourceVersion(), harness.LastKnown(t, tombstone).ResourceVersion)
	})
}

func TestB13ErrorsOfProcessAreReported(t *testing.T) {
	forQueues(t, func(t *testing.T, known cache.Store, queue cache.Queue) {
		failed := errors.New("failed")
		var f harness.Failures
		calls := 0
		c := informer.NewNamedController("test", &informer.Config{
			Queue:         queue,
			ListerWatcher: &harness.Tap{OnList: harness.Lists(harness.List("5", "")), OnWatch: harness.Watches(harness.Open(watch.Event{Type: watch.Added, Object: harness.Pod("a/bad", "6")}, watch.Event{Type: watch.Added, Object: harness.Pod("a/good", "7")}))},
			Process: func(obj interface{}, _ bool) error {
				if slices.Contains(keysOf(obj), "a/bad") {
					calls++
					return failed
				}
				return harness.Apply(known, obj)
			},
			WatchErrorHandler: f.Handle,
		})
		stop := harness.Start(c.RunWithContext)
		defer stop()
		time.Sleep(4 * time.Minute)
		stop()
		errs := f.Errors()
		require.Len(t, errs, 1)
		process := harness.ErrorAs[*informer.ProcessError](t, errs[0])
		require.Equal(t, "a/bad", process.Key)
		require.ErrorIs(t, process, failed)
		require.Equal(t, 1, calls, "it is not tried again")
		require.Equal(t, map[string]string{"a/good": "7"}, harness.Contents(known))
		require.True(t, c.HasSynced())
	})
}

func TestWhatProcessFailedForIsListedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		known := harness.NewStore()
		fails := true
		var f harness.Failures
		c := informer.NewNamedController("test", &informer.Config{
			ListerWatcher: &harness.Tap{OnList: harness.Lists(harness.List("5", "", harness.Pod("a/1", "2"))), OnWatch: harness.Watches(func() (watch.Interface, error) {
				w := harness.NewSent()
				time.AfterFunc(time.Second, func() { w.Error(harness.Failing(harness.Expired()).Object) })
				return w.FakeWatcher, nil
			}, harness.Open())},
			Process: func(obj interface{}, _ bool) error {
				if fails {
					fails = false
					return errors.New("failed")
				}
				return harness.Apply(known, obj)
			},
			WatchErrorHandler: f.Handle,
		})
		defer harness.Start(c.RunWithContext)()
		time.Sleep(time.Minute)
		require.Equal(t, map[string]string{"a/1": "2"}, harness.Contents(known))
	})
}

func TestPanicOfProcessIsReportedWithItsKey(t *testing.T) {
	for _, retry := range []bool{false, true} {
		t.Run(fmt.Sprintf("retry=%t", retry), func(t *testing.T) {
			harness.SurvivePanics(t)
			forQueues(t, func(t *testing.T, known cache.Store, queue cache.Queue) {
				var f harness.Failures
				panics := true
				c := informer.NewNamedController("test", &informer.Config{
					Queue: queue, RetryOnError: retry,
					ListerWatcher: &harness.Tap{OnList: harness.Lists(harness.List("5", "")), OnWatch: harness.Watches(harness.Open(watch.Event{Type: watch.Added, Object: harness.Pod("a/bad", "6")}, watch.Event{Type: watch.Added, Object: harness.Pod("a/good", "7")}))},
					Process: func(obj interface{}, _ bool) error {
						if panics && slices.Contains(keysOf(obj), "a/bad") {
							panics = false
							panic("oops")
						}
						return harness.Apply(known, obj)
					},
					WatchErrorHandler: f.Handle,
				})
				stop := harness.Start(c.RunWithContext)
				defer stop()
				time.Sleep(time.Minute)
				stop()
				errs := f.Errors()
				require.Len(t, errs, 1)
				process := harness.ErrorAs[*informer.ProcessError](t, errs[0])
				require.Equal(t, "a/bad", process.Key)
				panicked := harness.ErrorAs[*informer.PanicError](t, errs[0])
				require.Equal(t, "oops", panicked.Value)
				want := map[string]string{"a/good": "7"}
				if retry {
					want["a/bad"] = "6"
				}
				require.Equal(t, want, harness.Contents(known))
			})
		})
	}
}

func TestControllerPassesItsConfigToTheReflector(t *testing.T) {
	forQueues(t, func(t *testing.T, known cache.Store, queue cache.Queue) {
		resyncs := 0
		lw := &harness.Tap{}
		lw.OnList = harness.Lists(harness.List("5", "", harness.Pod("a/1", "2")))
		lw.OnWatch = func(_ context.Context, _ int, opts metav1.ListOptions) (watch.Interface, error) {
			require.GreaterOrEqual(t, *opts.TimeoutSeconds, int64(20*60))
			return harness.Stream(false), nil
		}
		c := informer.NewNamedController("test", &informer.Config{
			Queue: queue, ListerWatcher: lw,
			Process:           func(obj interface{}, _ bool) error { return harness.Apply(known, obj) },
			WatchListPageSize: 7, ForcePaginatedList: true, MinWatchTimeout: 20 * time.Minute,
			FullResyncPeriod: time.Minute, ShouldResync: func() bool { resyncs++; return true },
		})
		stop := harness.Start(c.RunWithContext)
		defer stop()
		time.Sleep(150 * time.Second)
		stop()
		require.Equal(t, []string{"list rv= limit=7", "watch rv=5"}, lw.Requests())
		require.Equal(t, 2, resyncs)
		require.Equal(t, map[string]string{"a/1": "2"}, harness.Contents(known))
	})
}

func TestB17ControllerHonoursMaxInternalErrorRetryDuration(t *testing.T) {
	forQueues(t, func(t *testing.T, known cache.Store, queue cache.Queue) {
		var f harness.Failures
		lw := &harness.Tap{OnList: harness.Lists(harness.List("5", "")), OnWatch: harness.Watches(harness.Broken(errors.New("oops")), harness.Broken(errors.New("oops")), harness.Broken(errors.New("oops")), harness.Open())}
		c := informer.NewNamedController("test", &informer.Config{
			Queue: queue, ListerWatcher: lw, WatchErrorHandler: f.Handle,
			Process:                       func(obj interface{}, _ bool) error { return harness.Apply(known, obj) },
			MaxInternalErrorRetryDuration: 50 * time.Second,
		})
		stop := harness.Start(c.RunWithContext)
		defer stop()
		time.Sleep(4 * time.Minute)
		stop()
		require.Equal(t, []string{"list rv=0 limit=500", "watch rv=5", "watch rv=5", "watch rv=5", "watch rv=5"}, lw.Requests())
		errs, started := f.All()
		require.Len(t, errs, 3)
		require.Equal(t, 4, started)
	})
}
