package watches_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	goruntime "runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/informertest"
	"github.com/rvinformer/informer/tests/harness"
)

// Objects that have neither a resource version nor a UID, as aggregated APIs serve
// them, keep keys of their own: Go's concatenation copies nothing where all operands
// but one are empty, so identity() returned the lent key itself.
func TestObjectsWithoutVersionAndUID(t *testing.T) {
	answer := harness.Before(func(w http.ResponseWriter, r *http.Request) bool {
		w.Header().Set("Content-Type", "application/json")
		if harness.IsWatch(r) {
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
			return false
		}
		_, _ = io.WriteString(w, `{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"9"},"items":[`+
			`{"metadata":{"namespace":"a","name":"1"}},{"metadata":{"namespace":"a","name":"2"}},{"metadata":{"namespace":"a","name":"3"}}]}`)
		return false
	})
	for name, example := range map[string]runtime.Object{"raw": &informer.RawObject{}, "unstructured": nil} {
		harness.BubbleRun(t, name, informertest.Options{Wrap: answer}, func(t *testing.T, w *harness.World) {
			storage := informer.NewResourceVersionStorage()
			var r harness.Recorder
			r.Before = func(string) { time.Sleep(time.Second) }
			harness.Running(w, informer.InformerConfig{Handler: &r, Storage: storage, ExampleObject: example})
			harness.Sleep(time.Minute)
			require.Equal(t, []string{"add a/1 initial", "add a/2 initial", "add a/3 initial"}, r.Events())
			require.ElementsMatch(t, []string{"a/1", "a/2", "a/3"}, storage.ListKeys())
		})
	}
}

// What a list shows is not taken for deleted by the retries of a user's queue: they
// noted it under keys that were lent.
func TestRetriesForgetWhatAListShows(t *testing.T) {
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		w.CreatePods(harness.Keys(20)...)
		const failing = "a/0010"
		known := harness.NewStore()
		queue := cache.NewDeltaFIFOWithOptions(cache.DeltaFIFOOptions{KnownObjects: known, EmitDeltaTypeReplaced: true})
		var mu sync.Mutex
		var popped []string
		c := informer.NewNamedController("test", &informer.Config{
			Queue: queue, RetryOnError: true, ForcePaginatedList: true, ListerWatcher: w.Lister(), WatchErrorHandler: harness.IgnoreErrors,
			Process: func(obj interface{}, _ bool) error {
				d := obj.(cache.Deltas).Newest()
				if harness.Key(d.Object) == failing {
					mu.Lock()
					defer mu.Unlock()
					popped = append(popped, string(d.Type))
					return errors.New("failed")
				}
				return harness.Apply(known, obj)
			},
		})
		defer harness.Start(c.RunWithContext)()
		time.Sleep(time.Minute)
		w.Relist()
		mu.Lock()
		defer mu.Unlock()
		require.NotContains(t, popped, string(cache.Deleted), "it lives")
	})
}

// A deletion that arrives while what came before it is tried again is kept with its
// object and under a key of its own.
func TestRetriesKeepADeletionOffTheWire(t *testing.T) {
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		known := harness.NewStore()
		queue := cache.NewDeltaFIFOWithOptions(cache.DeltaFIFOOptions{KnownObjects: known, EmitDeltaTypeReplaced: true})
		release := make(chan struct{})
		calls := 0
		var deleted []interface{}
		c := informer.NewNamedController("test", &informer.Config{
			Queue: queue, RetryOnError: true, ForcePaginatedList: true, ListerWatcher: w.Lister(), WatchErrorHandler: harness.IgnoreErrors,
			Process: func(obj interface{}, _ bool) error {
				d := obj.(cache.Deltas).Newest()
				if harness.Key(d.Object) != "a/1" {
					return harness.Apply(known, obj)
				}
				if d.Type == cache.Deleted {
					deleted = append(deleted, d.Object)
					return nil
				}
				if calls++; calls == 2 {
					<-release
				}
				return errors.New("failed")
			},
		})
		defer harness.Settle(c.RunWithContext)()
		w.CreatePods("a/1")
		time.Sleep(time.Second) // it has failed, and is being tried again
		synctest.Wait()
		w.DeletePods("a/1")
		synctest.Wait()
		w.CreatePods("zz/another-that-overwrites-the-lent-key")
		synctest.Wait()
		close(release)
		harness.Sleep(2 * time.Minute)
		require.Len(t, deleted, 1, "the deletion is told")
		require.Equal(t, "a/1", harness.Key(deleted[0]))
		require.IsType(t, &unstructured.Unstructured{}, deleted[0], "its final state was seen")
	})
}

// keptStore is an ExtraStore that keeps the deletions that it is told of.
type keptStore struct{ deleted []interface{} }

func (*keptStore) Add(interface{}) error               { return nil }
func (*keptStore) Update(interface{}) error            { return nil }
func (k *keptStore) Delete(obj interface{}) error      { k.deleted = append(k.deleted, obj); return nil }
func (*keptStore) Replace([]interface{}, string) error { return nil }

// An ExtraStore may keep what it is told of a deletion whose object could not be
// transformed.
func TestExtraStoreKeepsATombstone(t *testing.T) {
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		var extra keptStore
		harness.Settled(w, informer.InformerConfig{
			Handler: &harness.Recorder{}, ExtraStore: &extra,
			Transform: func(obj interface{}) (interface{}, error) {
				if harness.Key(obj) == "a/1" {
					return nil, errors.New("no")
				}
				return obj, nil
			},
		})
		w.CreatePods("a/1")
		w.DeletePods("a/1")
		synctest.Wait()
		w.CreatePods("zz/2")
		synctest.Wait()
		require.Len(t, extra.deleted, 1)
		require.Equal(t, "a/1", extra.deleted[0].(cache.DeletedFinalStateUnknown).Key)
		require.Equal(t, "1", harness.LastKnown(t, extra.deleted[0]).Name)
		require.Equal(t, "3", harness.LastKnown(t, extra.deleted[0]).ResourceVersion)
	})
}

// What DeepCopyObject returns is kept by whoever called it, also when a Transform
// hands it on: its memory is not taken back.
func TestACopyOfARawObjectIsKept(t *testing.T) {
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		w.CreatePods(harness.Keys(20)...)
		kept := map[string]*informer.RawObject{}
		harness.Settled(w, informer.InformerConfig{
			Handler: &harness.Recorder{}, ExampleObject: &informer.RawObject{},
			Transform: func(obj interface{}) (interface{}, error) {
				own := obj.(*informer.RawObject).DeepCopyObject().(*informer.RawObject)
				kept[harness.Key(own)] = own
				return own, nil
			},
		})
		w.CreatePods("zz/another", "zz/and-another")
		synctest.Wait()
		for k, own := range kept {
			require.Equal(t, k, harness.Key(own))
			pod := &corev1.Pod{}
			require.NoError(t, own.Decode(pod), k)
			require.Equal(t, k, pod.Namespace+"/"+pod.Name)
		}
	})
}

// One RawObject that a Transform returns for several objects is recycled once.
func TestARawObjectIsNotRecycledTwice(t *testing.T) {
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		w.CreatePods(harness.Keys(4)...)
		shared := &informer.RawObject{}
		var seen []string
		harness.Settled(w, informer.InformerConfig{
			Handler: informer.ResourceEventHandlerFuncs{
				AddFunc: func(obj interface{}) {
					if raw := obj.(*informer.RawObject); raw != shared {
						time.Sleep(time.Second)
						pod := &corev1.Pod{}
						if raw.Decode(pod) != nil {
							pod.Name = "undecodable"
						}
						seen = append(seen, pod.Name)
					}
				},
			},
			ExampleObject: &informer.RawObject{},
			Transform: func(obj interface{}) (interface{}, error) {
				if strings.HasPrefix(harness.Key(obj), "a/") {
					return shared, nil
				}
				return obj, nil
			},
		})
		w.CreatePods("zz/0001", "zz/0002", "zz/0003", "zz/0004")
		harness.Sleep(time.Minute)
		require.Equal(t, []string{"0001", "0002", "0003", "0004"}, seen)
	})
}

// That the last call for a key panicked is not forgotten because what came next
// could not be read: the handler is told that the object is gone.
func TestAPanicIsNotSettledByAnUnreadableObject(t *testing.T) {
	harness.SurvivePanics(t)
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		var r harness.Recorder
		panicked := false
		r.Before = func(call string) {
			if call == "add a/1" && !panicked {
				panicked = true
				panic("after having begun to take it in")
			}
		}
		harness.Settled(w, informer.InformerConfig{
			Handler:      &r,
			ErrorHandler: harness.IgnoreErrors,
			Transform: func(obj interface{}) (interface{}, error) {
				if data, _, _ := unstructured.NestedString(obj.(*unstructured.Unstructured).Object, "data"); data == "unreadable" {
					return nil, errors.New("no")
				}
				return obj, nil
			},
		})
		w.CreatePods("a/1")
		synctest.Wait()
		require.True(t, panicked)
		w.UpdatePod("a/1", "unreadable")
		time.Sleep(time.Minute) // it is tried again, and skipped
		w.DeletePods("a/1")
		synctest.Wait()
		require.Equal(t, []string{"delete a/1 unknown"}, r.Events())
	})
}

// A proxy that holds the head of an answer back until the answer ends does not
// keep an informer from its first list.
func TestAWatchListWithoutAHead(t *testing.T) {
	hang := harness.Before(func(_ http.ResponseWriter, r *http.Request) bool {
		if harness.IsWatchList(r) {
			<-r.Context().Done()
		}
		return !harness.IsWatchList(r)
	})
	harness.Bubble(t, informertest.Options{Wrap: hang}, func(t *testing.T, w *harness.World) {
		w.CreatePods("a/1")
		var r harness.Recorder
		i := harness.RunningAuto(w, informer.InformerConfig{Handler: &r})
		time.Sleep(30 * time.Minute)
		require.True(t, i.HasSynced(), "asked: %v", w.Verbs())
	})
}

// The time that the server asks to be left alone for is not its silence.
func TestRetryAfterIsNoSilence(t *testing.T) {
	for name, test := range map[string]struct {
		stall time.Duration
		after int
	}{"by default": {0, 100}, "with a StallTimeout": {20 * time.Second, 30}} {
		t.Run(name, func(t *testing.T) {
			var times []time.Time
			busy := harness.Before(func(w http.ResponseWriter, r *http.Request) bool {
				if harness.IsWatch(r) {
					return true
				}
				if times = append(times, time.Now()); len(times) > 1 {
					return true
				}
				w.Header().Set("Retry-After", fmt.Sprint(test.after))
				http.Error(w, "busy", http.StatusTooManyRequests)
				return false
			})
			harness.Bubble(t, informertest.Options{Wrap: busy}, func(t *testing.T, w *harness.World) {
				w.CreatePods("a/1")
				var r harness.Recorder
				var f harness.Failures
				i := harness.Follow(w, informer.InformerConfig{Handler: &r, ErrorHandler: f.Handle, StallTimeout: test.stall})
				defer harness.Synced(i)()
				require.GreaterOrEqual(t, times[1].Sub(times[0]), time.Duration(test.after)*time.Second)
				var stalled *informer.StallError
				errs := f.Errors()
				require.False(t, errors.As(errors.Join(errs...), &stalled), "%v", errs)
			})
		})
	}
}

// An answer that is neither JSON nor protobuf is known for that at once, also when
// nothing follows its head.
func TestASilentAnswerOfAnUnknownType(t *testing.T) {
	wrong := harness.Before(func(w http.ResponseWriter, r *http.Request) bool {
		if harness.IsWatch(r) {
			w.Header().Set("Content-Type", "text/event-stream")
			w.WriteHeader(http.StatusOK)
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
		}
		return !harness.IsWatch(r)
	})
	harness.Bubble(t, informertest.Options{Wrap: wrong}, func(t *testing.T, w *harness.World) {
		w.CreatePods("a/1")
		i := harness.Running(w, informer.InformerConfig{Handler: &harness.Recorder{}})
		time.Sleep(10 * time.Minute)
		require.ErrorIs(t, i.Status().LastError, informer.ErrContentType)
	})
}

// A deletion whose object cannot be transformed is reported, and the handler is not
// given what the Transform returned beside its error.
func TestADeletionThatCanNotBeTransformed(t *testing.T) {
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		w.CreatePods("a/1")
		var f harness.Failures
		var deleted []interface{}
		fails := false
		harness.Settled(w, informer.InformerConfig{
			ErrorHandler: f.Handle, ExampleObject: &corev1.Pod{},
			Handler: informer.ResourceEventHandlerFuncs{DeleteFunc: func(obj interface{}) { deleted = append(deleted, obj) }},
			Transform: func(obj interface{}) (interface{}, error) {
				if fails {
					return (*corev1.Pod)(nil), errors.New("no")
				}
				return obj, nil
			},
		})
		fails = true
		w.DeletePods("a/1")
		synctest.Wait()
		require.Len(t, deleted, 1)
		require.IsType(t, cache.DeletedFinalStateUnknown{}, deleted[0])
		require.NotEmpty(t, f.Errors(), "skipped and reported")
	})
}

// The time for which the client's own rate limiter makes a request wait is not the
// server's silence.
func TestTheRateLimiterIsNoSilence(t *testing.T) {
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		w.CreatePods(harness.Keys(20)...)
		config := w.Config()
		config.RateLimiter = &slowLimiter{wait: 100 * time.Second}
		var r harness.Recorder
		var f harness.Failures
		i := harness.Running(w, informer.InformerConfig{ListerWatcher: harness.ListerOf(t, config), Handler: &r, ErrorHandler: f.Handle, WatchListPageSize: 5})
		time.Sleep(10 * time.Minute)
		require.Empty(t, f.Errors())
		require.True(t, i.HasSynced())
	})
}

// slowLimiter makes each request wait.
type slowLimiter struct{ wait time.Duration }

func (*slowLimiter) TryAccept() bool { return false }
func (l *slowLimiter) Accept()       { time.Sleep(l.wait) }
func (*slowLimiter) Stop()           {}
func (*slowLimiter) QPS() float32    { return 1 }
func (l *slowLimiter) Wait(ctx context.Context) error {
	select {
	case <-time.After(l.wait):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// An informer that waits holds nothing that it has read: no reader's buffer either.
func TestAnIdleInformerHoldsNoBuffer(t *testing.T) {
	const informers, size = 20, 1 << 20
	for _, mode := range []informer.ListMode{informer.ListModePaged, informer.ListModeWatchList} {
		for _, watched := range []bool{false, true} {
			harness.BubbleRun(t, fmt.Sprint(mode, watched), informertest.Options{}, func(t *testing.T, w *harness.World) {
				large := harness.Object(harness.Pods, "a/large", strings.Repeat("x", size))
				if !watched {
					_, err := w.Create(harness.Pods, large)
					require.NoError(t, err)
				}
				heap := func() int64 {
					harness.Sleep(10 * time.Second)
					var m goruntime.MemStats
					for range 3 {
						goruntime.GC()
					}
					goruntime.ReadMemStats(&m)
					return int64(m.HeapAlloc)
				}
				before := heap()
				for range informers {
					i := harness.Follow(w, informer.InformerConfig{ListMode: mode, Handler: informer.ResourceEventHandlerFuncs{}, ExampleObject: &informer.RawObject{}})
					defer harness.Settle(i.RunWithContext)()
					require.True(t, i.HasSynced())
				}
				if watched {
					_, err := w.Create(harness.Pods, large)
					require.NoError(t, err)
					time.Sleep(time.Second)
				}
				grown := heap() - before
				require.Less(t, grown/informers, int64(size/2), "for each informer")
			})
		}
	}
}

// An informer that may list and not watch gets the set, as with other libraries.
func TestWhoMayNotWatchGetsAList(t *testing.T) {
	forbid := harness.Before(func(w http.ResponseWriter, r *http.Request) bool {
		if harness.IsWatch(r) {
			http.Error(w, "forbidden", http.StatusForbidden)
		}
		return !harness.IsWatch(r)
	})
	harness.Bubble(t, informertest.Options{Wrap: forbid}, func(t *testing.T, w *harness.World) {
		w.CreatePods("a/1")
		i := harness.RunningAuto(w, informer.InformerConfig{Handler: &harness.Recorder{}})
		time.Sleep(30 * time.Minute)
		require.True(t, i.HasSynced(), "asked: %v", w.Verbs()[:3])
	})
}

// A slow handler gets past what cuts a list short, its first page too: what it was
// told before the cut is not told again.
func TestASlowHandlerGetsPastWhatCutsAList(t *testing.T) {
	for _, mode := range []informer.ListMode{informer.ListModePaged, informer.ListModeFull, informer.ListModeWatchList} {
		harness.BubbleRun(t, mode.String(), informertest.Options{}, func(t *testing.T, w *harness.World) {
			w.CreatePods(harness.Keys(50)...)
			config := w.Config()
			config.Timeout = 10 * time.Second
			var r harness.Recorder
			r.Before = func(string) { time.Sleep(time.Second) }
			i := harness.Running(w, informer.InformerConfig{ListerWatcher: harness.ListerOf(t, config), Handler: &r, ListMode: mode, Budget: informer.NewBudget(1000)})
			harness.Sleep(30 * time.Minute)
			require.True(t, i.HasSynced(), "told: %v", len(r.State()))
			w.RequireState(&r)
		})
	}
}

type nilResponses struct{}

func (nilResponses) RoundTrip(*http.Request) (*http.Response, error) { return nil, nil }

// A transport of the user's that returns nothing is an error of the request, as it
// is for every http.Client, and does not crash the process.
func TestATransportThatReturnsNothing(t *testing.T) {
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		config := w.Config()
		config.WrapTransport = func(http.RoundTripper) http.RoundTripper { return nilResponses{} }
		i := harness.Running(w, informer.InformerConfig{ListerWatcher: harness.ListerOf(t, config), Handler: &harness.Recorder{}})
		time.Sleep(time.Minute)
		require.Error(t, i.Status().LastError)
	})
}

// A controller whose Process keeps failing does not take the budget of the whole
// process for what it tries again.
func TestAFailingControllerDoesNotHoldTheBudgetOfOthers(t *testing.T) {
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		for _, key := range harness.Keys(18) { // more than the budget that is the default
			_, err := w.Create(harness.Pods, harness.Object(harness.Pods, key, strings.Repeat("x", 1<<20)))
			require.NoError(t, err)
		}
		failing := informer.NewNamedController("failing", &informer.Config{
			ListerWatcher: w.Lister(), ObjectType: &informer.RawObject{}, RetryOnError: true, WatchErrorHandler: harness.IgnoreErrors,
			Process: func(interface{}, bool) error { return errors.New("failed") },
		})
		defer harness.Start(failing.RunWithContext)()
		time.Sleep(time.Minute)

		_, err := w.Create(harness.Widgets, harness.Object(harness.Widgets, "a/0", ""))
		require.NoError(t, err)
		for _, key := range harness.Keys(100) {
			_, err := w.Create(harness.Widgets, harness.Object(harness.Widgets, key, ""))
			require.NoError(t, err)
		}
		factory := w.Factory()
		var r harness.Recorder
		r.Before = func(string) { time.Sleep(time.Second) }
		i := harness.Running(w, informer.InformerConfig{ListerWatcher: factory.ForResource("", harness.Widgets), Handler: &r, Workers: 10})
		began := time.Now()
		<-i.HasSyncedChecker().Done()
		require.Less(t, time.Since(began), 15*time.Second, "101 calls of 1 s, 10 side by side")
	})
}
