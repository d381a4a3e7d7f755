package delivery_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
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
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/informertest"
	"github.com/rvinformer/informer/tests/harness"
)

// inAllForms runs test for every kind of object that a handler may ask for, with one
// worker and with several.
func inAllForms(t *testing.T, test func(t *testing.T, w *harness.World, c informer.InformerConfig)) {
	for name, example := range map[string]runtime.Object{"raw": &informer.RawObject{}, "typed": &corev1.Pod{}, "unstructured": nil} {
		for _, workers := range []int{1, 4} {
			harness.BubbleRun(t, fmt.Sprintf("%s, %d workers", name, workers), informertest.Options{}, func(t *testing.T, w *harness.World) {
				test(t, w, informer.InformerConfig{ExampleObject: example, Workers: workers, Budget: informer.NewBudget(1 << 20)})
			})
		}
	}
}

func TestABatchHandlerIsToldAll(t *testing.T) {
	inAllForms(t, func(t *testing.T, w *harness.World, c informer.InformerConfig) {
		w.CreatePods(harness.Keys(20)...)
		var mu sync.Mutex
		inFlight := map[string]bool{}
		var b harness.Batches
		b.See = func(events []informer.Event) {
			for _, e := range events {
				mu.Lock()
				if inFlight[e.Key] {
					t.Errorf("%s is in flight twice", e.Key)
				}
				inFlight[e.Key] = true
				mu.Unlock()
				accessor, err := meta.Accessor(e.Object)
				if err != nil || harness.Key(e.Object) != e.Key || accessor.GetResourceVersion() != e.ResourceVersion {
					t.Errorf("%+v: %v", e, err)
				}
			}
			time.Sleep(10 * time.Millisecond)
			mu.Lock()
			defer mu.Unlock()
			for _, e := range events {
				delete(inFlight, e.Key)
			}
		}
		c.BatchHandler, c.MaxBatch, c.Storage = &b, 7, informer.NewResourceVersionStorage()
		i := harness.Running(w, c)
		time.Sleep(time.Second)
		require.True(t, i.HasSynced())
		for n := range 30 {
			w.UpdatePod("a/0003", fmt.Sprint(n))
			w.DeletePods("a/0004")
			w.CreatePods("a/0004")
			time.Sleep(time.Duration(n) * time.Millisecond)
		}
		w.DeletePods("a/0005")
		time.Sleep(time.Second)
		w.Down(func() { w.DeletePods("a/0006") })
		w.RequireState(&b.Recorder)
		require.Equal(t, b.State(), maps.Collect(c.Storage.All()))
		require.Contains(t, b.Events(), "delete a/0005")
		require.Contains(t, b.Events(), "delete a/0006 unknown")
		require.Contains(t, b.Events(), "sync a/0007")
		for _, size := range b.Sizes() {
			require.LessOrEqual(t, size, 7)
		}
		require.Zero(t, c.Budget.InUse())
	})
}

func TestMaxBatch(t *testing.T) {
	for most, want := range map[int][]int{0: {1, 500, 199}, 1: slices.Repeat([]int{1}, 700), 300: {1, 300, 300, 99}, 900: {1, 699}} {
		harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
			w.CreatePods(harness.Keys(1)...)
			var b harness.Batches
			b.See = func(events []informer.Event) {
				if events[0].Key == harness.Keys(1)[0] {
					time.Sleep(time.Minute) // meanwhile the others come
				}
			}
			harness.Settled(w, informer.InformerConfig{BatchHandler: &b, MaxBatch: most})
			w.CreatePods(harness.Keys(700)[1:]...)
			time.Sleep(2 * time.Minute)
			require.Equal(t, want, b.Sizes())
			require.Equal(t, harness.Keys(700)[1:], func() (in []string) {
				for _, call := range b.Events()[1:] {
					in = append(in, strings.TrimPrefix(call, "add "))
				}
				return in
			}(), "in the order of their arrival")
		})
	}
}

// What an event says, for each kind of change.
func TestEvents(t *testing.T) {
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		w.CreatePods("a/1", "a/2")
		var told []informer.Event
		b := harness.Batches{See: func(events []informer.Event) { told = append(told, events...) }}
		harness.Settled(w, informer.InformerConfig{BatchHandler: &b, MaxBatch: 1, ExampleObject: harness.ExampleObject("v1", "Pod")})
		w.UpdatePod("a/1", "changed")
		synctest.Wait()
		w.DeletePods("a/1")
		deleted := w.ResourceVersion()
		synctest.Wait()
		known, err := w.Get(harness.Pods, "a", "2")
		require.NoError(t, err)
		w.Down(func() { w.DeletePods("a/2"); w.CreatePods("a/3") })
		synctest.Wait()
		require.Len(t, told, 6)
		for n, want := range []informer.Event{
			{Type: informer.Added, Key: "a/1", IsInInitialList: true},
			{Type: informer.Added, Key: "a/2", IsInInitialList: true},
			{Type: informer.Updated, Key: "a/1"},
			{Type: informer.Deleted, Key: "a/1", ResourceVersion: deleted},
			{Type: informer.Added, Key: "a/3"},
			{Type: informer.Deleted, Key: "a/2", FinalStateUnknown: true, ResourceVersion: known.GetResourceVersion()},
		} {
			got := told[n]
			accessor, err := meta.Accessor(got.Object)
			require.NoError(t, err)
			require.Equal(t, got.ResourceVersion, accessor.GetResourceVersion())
			require.Equal(t, got.Key, harness.Key(got.Object))
			if want.ResourceVersion == "" {
				want.ResourceVersion = got.ResourceVersion
			}
			got.Object = nil
			require.Equal(t, want, got)
		}
		require.Equal(t, &metav1.PartialObjectMetadata{
			TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
			ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "2", UID: known.GetUID(), ResourceVersion: known.GetResourceVersion()},
		}, told[5].Object)
	})
}

// A handler that ignores unchanged objects is not told of them, and they are not decoded.
func TestIgnoreSynced(t *testing.T) {
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		w.CreatePods("a/1", "a/2")
		transformed := 0
		var b harness.Batches
		harness.Settled(w, informer.InformerConfig{
			BatchHandler: informer.IgnoreSynced(&b),
			Transform:    func(obj interface{}) (interface{}, error) { transformed++; return obj, nil },
		})
		w.Down(func() { w.UpdatePod("a/2", "changed") })
		synctest.Wait()
		require.Equal(t, []string{"add a/1 initial", "add a/2 initial", "update a/2"}, b.Events())
		require.Equal(t, 3, transformed)
	})
}

func TestBatchConfigurations(t *testing.T) {
	good := informer.InformerConfig{ListerWatcher: &cache.ListWatch{}, BatchHandler: informer.BatchHandlerFunc(func(context.Context, []informer.Event) error { return nil })}
	require.NotPanics(t, func() { informer.NewResourceVersionInformer("pods", good) })
	for says, change := range map[string]func(c *informer.InformerConfig){
		`informer "pods": MaxBatch is -1`:                              func(c *informer.InformerConfig) { c.MaxBatch = -1 },
		`informer "pods": Handler or BatchHandler is required`:         func(c *informer.InformerConfig) { c.BatchHandler = nil },
		`informer "pods": Handler and BatchHandler exclude each other`: func(c *informer.InformerConfig) { c.Handler = &harness.Recorder{} },
	} {
		bad := good
		change(&bad)
		require.PanicsWithValue(t, says, func() { informer.NewResourceVersionInformer("pods", bad) })
	}
}

// A context that ends is no reason to give up: Run waits, and nil acknowledges.
func TestABatchDuringWhichRunIsStopped(t *testing.T) {
	inAllForms(t, func(t *testing.T, w *harness.World, c informer.InformerConfig) {
		w.CreatePods("a/1", "a/2")
		var f harness.Failures
		c.ErrorHandler, c.Storage = f.Handle, informer.NewResourceVersionStorage()
		var second atomic.Bool
		c.BatchHandler = informer.BatchHandlerFunc(func(ctx context.Context, events []informer.Event) error {
			<-ctx.Done()
			if !second.Load() {
				return ctx.Err() // which is no failure
			}
			time.Sleep(time.Second)
			return nil
		})
		i := harness.Follow(w, c)
		for n := range 2 {
			before := time.Now()
			stop := harness.Settle(i.RunWithContext)
			stop()
			require.Equal(t, time.Duration(n)*time.Second, time.Since(before))
			require.Zero(t, c.Budget.InUse())
			if n == 0 {
				require.Zero(t, c.Storage.Len())
				require.False(t, i.HasSynced())
				second.Store(true)
			}
		}
		require.NotZero(t, c.Storage.Len())
		require.Empty(t, f.Errors())
	})
}

// A failure that is told while Run ends is told all the same.
func TestABatchThatFailsWhileRunIsStopped(t *testing.T) {
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		w.CreatePods("a/1")
		var f harness.Failures
		i := harness.Follow(w, informer.InformerConfig{ErrorHandler: f.Handle, BatchHandler: informer.BatchHandlerFunc(func(ctx context.Context, _ []informer.Event) error {
			<-ctx.Done()
			return errors.New("the disk is full")
		})})
		stop := harness.Settle(i.RunWithContext)
		stop()
		require.EqualError(t, f.One(t), `batch of 1 events from "a/1" on, attempt 1: the disk is full`)
	})
}

// An object that cannot be told is skipped; those beside it are told.
func TestABatchWithoutWhatCanNotBeTransformed(t *testing.T) {
	harness.SurvivePanics(t)
	for name, transform := range map[string]cache.TransformFunc{
		"an error":   func(interface{}) (interface{}, error) { return nil, errors.New("too ugly") },
		"nil":        func(interface{}) (interface{}, error) { return nil, nil },
		"no object":  func(interface{}) (interface{}, error) { return "text", nil },
		"a panic":    func(interface{}) (interface{}, error) { panic("too ugly") },
		"its answer": func(obj interface{}) (interface{}, error) { return nil, fmt.Errorf("%s is too ugly", harness.Key(obj)) },
	} {
		t.Run(name, func(t *testing.T) {
			inAllForms(t, func(t *testing.T, w *harness.World, c informer.InformerConfig) {
				for _, extra := range []informer.ExtraStore{nil, harness.Nothing{}} {
					w.CreatePods("a/1", "a/2", "a/3")
					var f harness.Failures
					var b harness.Batches
					c.BatchHandler, c.ErrorHandler, c.ExtraStore = &b, f.Handle, extra
					c.Storage = informer.NewResourceVersionStorage()
					c.Transform = func(obj interface{}) (interface{}, error) {
						if harness.Key(obj) == "a/2" {
							return transform(obj)
						}
						return obj, nil
					}
					i := harness.Follow(w, c)
					stop := harness.Settle(i.RunWithContext)
					defer stop()
					require.True(t, i.HasSynced())
					require.Equal(t, []string{"add a/1 initial", "add a/3 initial"}, slices.Sorted(slices.Values(b.Events())))
					require.Equal(t, 2, c.Storage.Len())
					require.EqualValues(t, 1, i.Status().Skipped)
					require.Equal(t, w.ResourceVersion(), i.Status().ResourceVersion, "it is not waited for")
					skipped := harness.ErrorAs[*informer.ItemError](t, f.One(t))
					require.Equal(t, "a/2", skipped.Key)
					w.DeletePods("a/1", "a/2", "a/3")
					synctest.Wait()
					require.Empty(t, b.State())
					require.NotContains(t, b.Events(), "delete a/2", "it was not told of")
					stop()
					require.Zero(t, c.Budget.InUse())
				}
			})
		})
	}
}

// What comes of Transform is what the events have, also where it is of another type.
func TestABatchOfWhatWasTransformed(t *testing.T) {
	inAllForms(t, func(t *testing.T, w *harness.World, c informer.InformerConfig) {
		w.CreatePods("a/1")
		c.Transform = func(obj interface{}) (interface{}, error) {
			accessor := obj.(metav1.Object)
			return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: "transformed " + accessor.GetName()}}, nil
		}
		var told []informer.Event
		c.BatchHandler = informer.BatchHandlerFunc(func(_ context.Context, events []informer.Event) error {
			if told = append(told, events...); len(told) == 1 {
				return errors.New("again")
			}
			return nil
		})
		defer harness.Start(harness.Follow(w, c).RunWithContext)()
		harness.Sleep(time.Second)
		w.DeletePods("a/1")
		synctest.Wait()
		require.Len(t, told, 3)
		for _, e := range told {
			require.Equal(t, "transformed 1", e.Object.(*metav1.PartialObjectMetadata).Name)
			require.Equal(t, "a/1", e.Key)
			require.NotEmpty(t, e.ResourceVersion)
		}
	})
}

// Objects that cannot be decoded are skipped one by one, with a batch that fails too.
func TestABatchWithoutWhatCanNotBeDecoded(t *testing.T) {
	wrong := `{"metadata":{"namespace":"a","name":"2","resourceVersion":"5","uid":"u"},"spec":{"containers":"none"}}`
	harness.Bubble(t, informertest.Options{Wrap: harness.Answering("application/json", harness.ListJSON(harness.PodJSON("1", ""), wrong, harness.PodJSON("3", "")))}, func(t *testing.T, w *harness.World) {
		var f harness.Failures
		fails := 2
		b := harness.Batches{Fail: func([]string) error {
			if fails--; fails >= 0 {
				return errors.New("no")
			}
			return nil
		}}
		i := harness.Follow(w, informer.InformerConfig{BatchHandler: &b, ErrorHandler: f.Handle, ExampleObject: &corev1.Pod{}})
		stop := harness.Synced(i)
		stop()
		require.ElementsMatch(t, []string{"add a/1 initial", "add a/3 initial"}, b.Events())
		require.EqualValues(t, 1, i.Status().Skipped)
		item := harness.ErrorAs[*informer.ItemError](t, errors.Join(f.Errors()...))
		require.Equal(t, informer.ItemError{Index: 1, Key: "a/2", Err: item.Err}, *item)
	})
}

// The slice and its objects are the handler's, but for the raw objects.
func TestEventsAreTheHandlersToKeep(t *testing.T) {
	inAllForms(t, func(t *testing.T, w *harness.World, c informer.InformerConfig) {
		w.CreatePods(harness.Keys(10)...)
		var mu sync.Mutex
		var kept [][]informer.Event
		var were []string
		text := func(events []informer.Event) string {
			var all []string
			for _, e := range events {
				all = append(all, harness.EventText(e)+e.ResourceVersion)
				if _, raw := e.Object.(*informer.RawObject); !raw {
					all = append(all, harness.IdentityOf(e.Object))
				}
			}
			return strings.Join(all, ", ")
		}
		calls := 0
		c.MaxBatch = 3
		c.BatchHandler = informer.BatchHandlerFunc(func(_ context.Context, events []informer.Event) error {
			mu.Lock()
			defer mu.Unlock()
			kept, were = append(kept, events), append(were, text(events))
			if calls++; calls%2 == 0 {
				return errors.New("again")
			}
			return nil
		})
		harness.Running(w, c)
		for n := range 5 {
			time.Sleep(time.Minute)
			w.UpdatePod(harness.Keys(10)[n], "changed")
		}
		time.Sleep(time.Hour)
		mu.Lock()
		defer mu.Unlock()
		require.Greater(t, len(kept), 6)
		for n, events := range kept {
			require.Equal(t, were[n], text(events))
		}
	})
}

// What a handler does to the slice that it is given changes nothing, whether it then
// fails or not.
func TestAHandlerMayWriteToItsEvents(t *testing.T) {
	inAllForms(t, func(t *testing.T, w *harness.World, c informer.InformerConfig) {
		w.CreatePods(harness.Keys(10)...)
		var b harness.Batches
		fails := harness.Dice{Rand: rand.New(rand.NewPCG(1, 1))}
		c.MaxBatch, c.Storage = 4, informer.NewResourceVersionStorage()
		c.BatchHandler = informer.BatchHandlerFunc(func(ctx context.Context, events []informer.Event) error {
			defer clear(events)
			if slices.Reverse(events); fails.One(2) {
				return errors.New("again")
			}
			return b.OnBatch(ctx, events)
		})
		i := harness.Running(w, c)
		time.Sleep(time.Minute)
		w.DeletePods("a/0003")
		w.UpdatePod("a/0004", "changed")
		harness.Sleep(time.Minute)
		w.RequireState(&b.Recorder)
		require.Equal(t, b.State(), maps.Collect(c.Storage.All()))
		require.Equal(t, w.ResourceVersion(), i.Status().ResourceVersion)
	})
}

// A lent object is valid until OnBatch returns, also where it comes again.
func TestRawObjectsOfABatchThatFails(t *testing.T) {
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		w.CreatePods(harness.Keys(50)...)
		dice := harness.Dice{Rand: rand.New(rand.NewPCG(1, 1))}
		b := harness.Batches{
			See: func(events []informer.Event) {
				var before []string
				for _, e := range events {
					before = append(before, harness.IdentityOf(e.Object))
				}
				time.Sleep(time.Second)
				for n, e := range events {
					if now := harness.IdentityOf(e.Object); now != before[n] || !strings.HasPrefix(now, e.Key+" ") || !strings.HasSuffix(now, " "+e.ResourceVersion) {
						t.Errorf("%s became %s", before[n], now)
					}
				}
			},
			Fail: func([]string) error {
				if dice.One(2) {
					return errors.New("no")
				}
				return nil
			},
		}
		harness.Running(w, informer.InformerConfig{BatchHandler: &b, MaxBatch: 4, Workers: 3, ExampleObject: &informer.RawObject{}})
		for n := range 200 {
			k := harness.Keys(50)[dice.N(50)]
			switch n % 3 {
			case 0:
				w.DeletePods(k)
				w.CreatePods(k)
			default:
				w.UpdatePod(k, fmt.Sprint(n))
			}
			time.Sleep(100 * time.Millisecond)
		}
		time.Sleep(time.Hour)
		w.RequireState(&b.Recorder)
	})
}

// A batch that fails comes again, and nothing of it counts as acknowledged before.
func TestABatchThatFailsIsTriedAgain(t *testing.T) {
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		w.CreatePods(harness.Keys(5)...)
		var f harness.Failures
		var full atomic.Bool
		full.Store(true)
		b := harness.Batches{Fail: func([]string) error {
			if full.Load() {
				return errors.New("the disk is full")
			}
			return nil
		}}
		storage := informer.NewResourceVersionStorage()
		i := harness.Settled(w, informer.InformerConfig{BatchHandler: &b, Storage: storage, ErrorHandler: f.Handle})
		require.False(t, i.HasSynced())
		require.Zero(t, storage.Len())
		require.Empty(t, i.Status().ResourceVersion)
		require.ErrorContains(t, i.Status().LastError, "the disk is full")
		time.Sleep(2 * time.Second)
		full.Store(false)
		time.Sleep(time.Minute)
		require.True(t, i.HasSynced())
		require.Equal(t, w.ResourceVersion(), i.Status().ResourceVersion)
		require.NoError(t, i.Status().LastError)
		w.RequireState(&b.Recorder)
		errs := f.Errors()
		require.GreaterOrEqual(t, len(errs), 4, "after 0, 0.1 to 0.15, 0.3 to 0.45, and 0.7 to 1.05 s")
		harness.ErrorAs[*informer.BatchError](t, errs[0])
	})
}
