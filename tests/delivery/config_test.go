package delivery_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/informertest"
	"github.com/rvinformer/informer/tests/harness"
)

func TestInformerNeedsItsParts(t *testing.T) {
	good := informer.InformerConfig{ListerWatcher: &cache.ListWatch{}, Handler: &harness.Recorder{}}
	require.NotPanics(t, func() { informer.NewResourceVersionInformer("pods", good) })
	require.PanicsWithValue(t, "name is required", func() { informer.NewResourceVersionInformer("", good) })
	for says, change := range map[string]func(c *informer.InformerConfig){
		`informer "pods": ListerWatcher is required`:           func(c *informer.InformerConfig) { c.ListerWatcher = nil },
		`informer "pods": Handler or BatchHandler is required`: func(c *informer.InformerConfig) { c.Handler = nil },
		`informer "pods": WatchListPageSize is -1`:             func(c *informer.InformerConfig) { c.WatchListPageSize = -1 },
		`informer "pods": Workers is -1`:                       func(c *informer.InformerConfig) { c.Workers = -1 },
		`informer "pods": MaxBatch is -1`:                      func(c *informer.InformerConfig) { c.MaxBatch = -1 },
		`informer "pods": MaxAttempts is -1`:                   func(c *informer.InformerConfig) { c.MaxAttempts = -1 },
		`informer "pods": MaxDeadLetters is -1`:                func(c *informer.InformerConfig) { c.MaxDeadLetters = -1 },
		`informer "pods": CheckpointInterval is -1s`:           func(c *informer.InformerConfig) { c.CheckpointInterval = -time.Second },
		`informer "pods": CheckpointChanges is -1`:             func(c *informer.InformerConfig) { c.CheckpointChanges = -1 },
		`informer "pods": StallTimeout is -1s`:                 func(c *informer.InformerConfig) { c.StallTimeout = -time.Second },
		`informer "pods": MinWatchTimeout is -1s`:              func(c *informer.InformerConfig) { c.MinWatchTimeout = -time.Second },
		`informer "pods": MaxInternalErrorRetryDuration is -1s`: func(c *informer.InformerConfig) {
			c.MaxInternalErrorRetryDuration = -time.Second
		},
		`informer "pods": unknown ListMode -1`: func(c *informer.InformerConfig) { c.ListMode = -1 },
		`informer "pods": unknown ListMode 99`: func(c *informer.InformerConfig) { c.ListMode = 99 },
		`informer "pods": prune "metadata.name": the field is needed to identify the object`: func(c *informer.InformerConfig) {
			c.Prune = []string{"metadata.name"}
		},
	} {
		bad := good
		change(&bad)
		require.PanicsWithValue(t, says, func() { informer.NewResourceVersionInformer("pods", bad) })
	}
}

func TestPruneDropsFieldsBeforeAnyoneSeesThem(t *testing.T) {
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		obj := harness.Object(harness.Pods, "a/1", "kept")
		obj.SetManagedFields([]metav1.ManagedFieldsEntry{{Manager: "someone"}})
		obj.SetAnnotations(map[string]string{"example.com/long": "x", "short": "y"})
		_, err := w.Create(harness.Pods, obj)
		require.NoError(t, err)
		var seen []*unstructured.Unstructured
		see := func(obj interface{}) { seen = append(seen, obj.(*unstructured.Unstructured)) }
		harness.Settled(w, informer.InformerConfig{
			Prune:     []string{"metadata.managedFields", `metadata.annotations.example\.com/long`, "status"},
			Transform: func(obj interface{}) (interface{}, error) { see(obj); return obj, nil },
			Handler: informer.ResourceEventHandlerFuncs{
				AddFunc:    see,
				UpdateFunc: func(_, obj interface{}) { see(obj) },
			},
		})
		w.UpdatePod("a/1", "changed")
		synctest.Wait()
		require.Len(t, seen, 4)
		for _, obj := range seen {
			require.Empty(t, obj.GetManagedFields())
			require.NotContains(t, obj.GetAnnotations(), "example.com/long")
			require.Contains(t, obj.Object, "data")
		}
	})
}

func TestBackoffOfTheConfig(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var asked []time.Time
		i := informer.NewResourceVersionInformer("pods", informer.InformerConfig{
			ListerWatcher: harness.Script{List: func(context.Context, metav1.ListOptions) (runtime.Object, error) {
				asked = append(asked, time.Now())
				return nil, errors.New("down")
			}}.LW(),
			Handler: &harness.Recorder{}, ErrorHandler: harness.IgnoreErrors,
			Backoff: &wait.Backoff{Duration: 7 * time.Second},
		})
		stop := harness.Start(i.RunWithContext)
		time.Sleep(time.Minute)
		stop()
		require.Len(t, asked, 9)
		require.Equal(t, 7*time.Second, asked[8].Sub(asked[7]))
	})
}

func TestMinWatchTimeoutOfTheConfig(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var asked time.Duration
		i := informer.NewResourceVersionInformer("pods", informer.InformerConfig{
			ListerWatcher: harness.Script{List: harness.Listing("10"), Watch: func(_ context.Context, opts metav1.ListOptions) (watch.Interface, error) {
				asked = time.Duration(*opts.TimeoutSeconds) * time.Second
				return watch.NewFake(), nil
			}}.LW(),
			Handler: &harness.Recorder{}, MinWatchTimeout: time.Hour,
		})
		stop := harness.Settle(i.RunWithContext)
		stop()
		require.GreaterOrEqual(t, asked, time.Hour)
		require.Less(t, asked, 2*time.Hour)
	})
}

func TestMaxInternalErrorRetryDurationOfTheConfig(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var lists atomic.Int32
		i := informer.NewResourceVersionInformer("pods", informer.InformerConfig{
			ListerWatcher: harness.Script{
				List: func(context.Context, metav1.ListOptions) (runtime.Object, error) {
					lists.Add(1)
					return harness.List("10", ""), nil
				},
				Watch: func(context.Context, metav1.ListOptions) (watch.Interface, error) {
					events := watch.NewFakeWithChanSize(1, false)
					events.Error(&apierrors.NewInternalError(errors.New("broken")).ErrStatus)
					return events, nil
				},
			}.LW(),
			Handler: &harness.Recorder{}, ErrorHandler: harness.IgnoreErrors, MaxInternalErrorRetryDuration: time.Minute,
		})
		stop := harness.Start(i.RunWithContext)
		harness.Sleep(50 * time.Second)
		require.EqualValues(t, 1, lists.Load(), "retried without a list")
		time.Sleep(3 * time.Minute)
		stop()
		require.Greater(t, lists.Load(), int32(1))
	})
}

// Versions that were loaded without UIDs adopt them when the objects are first
// seen, also where no handler is told of unchanged objects.
func TestRule7UIDsAreAdopted(t *testing.T) {
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		w.CreatePods("a/1")
		storage := informer.NewResourceVersionStorage()
		require.NoError(t, storage.Replace(map[string]interface{}{"a/1": w.ResourceVersion()}))
		var r harness.Recorder
		handler := informer.ResourceEventHandlerFuncs{
			AddFunc:    func(obj interface{}) { r.OnAdd(obj, false) },
			UpdateFunc: r.OnUpdate,
			DeleteFunc: r.OnDelete,
		}
		i := harness.Follow(w, informer.InformerConfig{Handler: handler, Storage: storage})
		stop := harness.Settle(i.RunWithContext)
		stop()
		require.Empty(t, r.Events())
		w.DeletePods("a/1")
		w.CreatePods("a/1")
		stop = harness.Settle(i.RunWithContext)
		stop()
		require.Equal(t, []string{"delete a/1 unknown", "add a/1"}, r.Events())
	})
}

// Whether anyone listens to OnSync is known through every adapter.
func TestRule6EveryAdapterKnowsItsListeners(t *testing.T) {
	listen := func(interface{}) {}
	for name, test := range map[string]struct {
		handler informer.ResourceEventHandler
		queued  bool
	}{
		"Funcs":                    {informer.ResourceEventHandlerFuncs{}, false},
		"Funcs, listening":         {informer.ResourceEventHandlerFuncs{SyncFunc: listen}, true},
		"Detailed":                 {informer.ResourceEventHandlerDetailedFuncs{}, false},
		"Detailed, listening":      {informer.ResourceEventHandlerDetailedFuncs{SyncFunc: listen}, true},
		"Typed":                    {informer.TypedResourceEventHandlerFuncs[*unstructured.Unstructured]{}, false},
		"Typed, listening":         {informer.TypedResourceEventHandlerFuncs[*unstructured.Unstructured]{SyncFunc: func(*unstructured.Unstructured) {}}, true},
		"TypedDetailed":            {informer.TypedResourceEventHandlerDetailedFuncs[*unstructured.Unstructured]{}, false},
		"TypedDetailed, listening": {informer.TypedResourceEventHandlerDetailedFuncs[*unstructured.Unstructured]{SyncFunc: func(*unstructured.Unstructured) {}}, true},
		"Filtering":                {filtering(informer.ResourceEventHandlerFuncs{}), false},
		"Filtering, listening":     {filtering(informer.ResourceEventHandlerFuncs{SyncFunc: listen}), true},
		"a handler of one's own":   {&harness.Recorder{}, true},
	} {
		harness.BubbleRun(t, name, informertest.Options{}, func(t *testing.T, w *harness.World) {
			w.CreatePods("a/1")
			transformed := 0
			i := harness.Follow(w, informer.InformerConfig{Handler: test.handler, Transform: func(obj interface{}) (interface{}, error) {
				transformed++
				return obj, nil
			}})
			for range 2 {
				stop := harness.Settle(i.RunWithContext)
				stop()
			}
			require.Equal(t, test.queued, transformed == 2, "transformed %d times", transformed)
		})
	}
}

func filtering(handler informer.ResourceEventHandler) informer.ResourceEventHandler {
	return informer.FilteringResourceEventHandler{FilterFunc: func(interface{}) bool { return true }, Handler: handler}
}

func TestStatusKnowsWhen(t *testing.T) {
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		i := harness.Follow(w, informer.InformerConfig{Handler: &harness.Recorder{}})
		require.Zero(t, i.Status().LastContact)
		defer harness.Start(i.RunWithContext)()
		time.Sleep(59 * time.Second)
		began := time.Now().Add(-59 * time.Second)
		require.Equal(t, began, i.Status().LastContact)
		harness.Sleep(2 * time.Second)
		require.Equal(t, began.Add(time.Minute), i.Status().LastContact, "a bookmark")
		w.Blocked.Lock()
		w.CloseClientConnections()
		synctest.Wait()
		require.Error(t, i.Status().LastError)
		require.WithinDuration(t, time.Now(), i.Status().LastErrorTime, time.Second)
		w.Blocked.Unlock()
		time.Sleep(time.Minute)
		require.NoError(t, i.Status().LastError)
		require.Zero(t, i.Status().LastErrorTime)
	})
}

// What fails again and again has failed since the first time.
func TestStatusKnowsSinceWhenItFails(t *testing.T) {
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		refusing := errors.New("refusing")
		var refused atomic.Bool
		i := harness.Follow(w, informer.InformerConfig{
			ErrorHandler: harness.IgnoreErrors,
			BatchHandler: informer.BatchHandlerFunc(func(context.Context, []informer.Event) error {
				if refused.Load() {
					return refusing
				}
				return nil
			}),
		})
		heal := w.Inject(informertest.Fault{Effect: informertest.Status(503)})
		began := time.Now()
		defer harness.Start(i.RunWithContext)()
		time.Sleep(10 * time.Minute)
		failing := i.Status()
		require.False(t, failing.Synced)
		require.Error(t, failing.LastError)
		require.Equal(t, began, failing.FailingSince)
		require.WithinRange(t, failing.LastErrorTime, began.Add(9*time.Minute), time.Now())
		heal()
		time.Sleep(time.Minute)
		require.True(t, i.Status().Synced)
		require.Zero(t, i.Status().FailingSince)

		refused.Store(true)
		began = time.Now()
		w.CreatePods("a/1")
		time.Sleep(10 * time.Minute)
		failing = i.Status()
		require.ErrorIs(t, failing.LastError, refusing)
		require.Equal(t, began, failing.FailingSince)
		require.WithinRange(t, failing.LastErrorTime, began.Add(9*time.Minute), time.Now())
		refused.Store(false)
		time.Sleep(time.Minute)
		require.Zero(t, i.Status().FailingSince)
	})
}

func TestStatusOfManyHandlersKnowsSinceWhenOneFails(t *testing.T) {
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		i := harness.Share(w, informer.InformerConfig{})
		var fails, alsoFails atomic.Bool
		for _, handler := range []informer.BatchHandlerFunc{
			func(context.Context, []informer.Event) error {
				if alsoFails.Load() {
					return errors.New("away")
				}
				return nil
			},
			func(context.Context, []informer.Event) error {
				if fails.Load() {
					return errors.New("full")
				}
				return nil
			},
		} {
			_, err := i.AddHandler(informer.HandlerConfig{BatchHandler: handler})
			require.NoError(t, err)
		}
		defer harness.Start(i.RunWithContext)()
		time.Sleep(time.Hour)
		require.Zero(t, i.Status().FailingSince)
		fails.Store(true)
		began := time.Now()
		w.CreatePods("a/1")
		time.Sleep(time.Hour)
		require.ErrorContains(t, i.Status().LastError, "full")
		require.Equal(t, began, i.Status().FailingSince)
		alsoFails.Store(true)
		w.CreatePods("a/2")
		synctest.Wait()
		require.ErrorContains(t, i.Status().LastError, "away", "the newest")
		require.Equal(t, began, i.Status().FailingSince, "the first of the failures has not ended")
	})
}

// A store that takes its time to resync is not the server's silence.
func TestRule10AResyncIsNoSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		watches := 0
		r := informer.NewReflector(harness.Script{
			List: harness.Listing("10"),
			Watch: func(context.Context, metav1.ListOptions) (watch.Interface, error) {
				watches++
				return watch.NewFake(), nil
			},
		}.LW(), nil, slowResync{&harness.Journal{}}, 45*time.Second)
		r.StallTimeout = time.Minute
		stop := harness.Start(r.RunWithContext)
		time.Sleep(100 * time.Second) // 45 s of silence, 50 s of a resync, 5 s of silence
		stop()
		require.Equal(t, 1, watches)
	})
}

type slowResync struct{ *harness.Journal }

func (s slowResync) Resync() error {
	time.Sleep(50 * time.Second)
	return nil
}

// A queue cannot be asked for what it has: when a list has an object that can
// not be read, it is told of nothing that may be deleted.
func TestRule12AQueueIsNotToldThatALiveObjectIsGone(t *testing.T) {
	nameless := harness.Pod("a/2", "8")
	nameless.SetName("")
	for what, unreadable := range map[string]*unstructured.Unstructured{"of another kind": harness.Object(harness.Widgets, "a/2", ""), "without a name": nameless} {
		for name, queue := range map[string]func(known cache.Store) cache.Queue{
			"DeltaFIFO": func(known cache.Store) cache.Queue {
				return cache.NewDeltaFIFOWithOptions(cache.DeltaFIFOOptions{KnownObjects: known, EmitDeltaTypeReplaced: true})
			},
			"RealFIFO": func(known cache.Store) cache.Queue {
				return cache.NewRealFIFOWithOptions(cache.RealFIFOOptions{KnownObjects: known})
			},
			"atomic RealFIFO": func(cache.Store) cache.Queue {
				return cache.NewRealFIFOWithOptions(cache.RealFIFOOptions{AtomicEvents: true})
			},
		} {
			harness.SynctestRun(t, fmt.Sprint(name, ", ", what), func(t *testing.T) {
				store := harness.NewStore()
				require.NoError(t, store.Add(harness.Pod("a/2", "5")))
				c := informer.NewNamedController("pods", &informer.Config{
					Queue: queue(store), WatchErrorHandler: harness.IgnoreErrors, ObjectType: harness.ExampleObject("v1", "Pod"),
					ListerWatcher: harness.Script{
						List:  harness.Listing("10", harness.Pod("a/1", "7"), unreadable),
						Watch: func(context.Context, metav1.ListOptions) (watch.Interface, error) { return watch.NewFake(), nil },
					}.LW(),
					Process: func(obj interface{}, _ bool) error { return harness.Apply(store, obj) },
				})
				stop := harness.Synced(c)
				stop()
				require.Equal(t, map[string]string{"a/1": "7", "a/2": "5"}, harness.Contents(store))
			})
		}
	}
}
