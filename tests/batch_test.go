package tests_test

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
)

// batches is a BatchHandler that writes down its batches, as a recorder writes down
// calls: "add a/b initial", "update a/b", "delete a/b", "delete a/b unknown", "sync
// a/b".
type batches struct {
	// see, if set, is shown each batch first.
	see func(events []informer.Event)
	// fail, if set, is asked what to return for a batch, which then is not written down.
	fail func(batch []string) error

	mu  sync.Mutex
	all [][]string
	recorder
}

func (b *batches) OnBatch(_ context.Context, events []informer.Event) error {
	if b.see != nil {
		b.see(events)
	}
	var batch []string
	for _, e := range events {
		batch = append(batch, eventText(e))
	}
	if b.fail != nil {
		if err := b.fail(batch); err != nil {
			return err
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.all = append(b.all, batch)
	for i, e := range events {
		b.record(batch[i], e.Object, e.Type != informer.Deleted)
	}
	return nil
}

// sizes are those of the batches so far.
func (b *batches) sizes() (sizes []int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, batch := range b.all {
		sizes = append(sizes, len(batch))
	}
	return sizes
}

func eventText(e informer.Event) string {
	text := map[informer.EventType]string{informer.Added: "add ", informer.Updated: "update ", informer.Deleted: "delete ", informer.Synced: "sync "}[e.Type] + e.Key
	if e.Type == informer.Added && e.IsInInitialList {
		text += " initial"
	}
	if e.FinalStateUnknown {
		text += " unknown"
	}
	return text
}

// inAllForms runs test for every kind of object that a handler may ask for, with one
// worker and with several.
func inAllForms(t *testing.T, test func(t *testing.T, w *world, c informer.InformerConfig)) {
	for name, example := range map[string]runtime.Object{"raw": &informer.RawObject{}, "typed": &corev1.Pod{}, "unstructured": nil} {
		for _, workers := range []int{1, 4} {
			t.Run(fmt.Sprintf("%s, %d workers", name, workers), func(t *testing.T) {
				bubble(t, informertest.Options{}, func(t *testing.T, w *world) {
					test(t, w, informer.InformerConfig{ExampleObject: example, Workers: workers, Budget: informer.NewBudget(1 << 20)})
				})
			})
		}
	}
}

func TestABatchHandlerIsToldAll(t *testing.T) {
	inAllForms(t, func(t *testing.T, w *world, c informer.InformerConfig) {
		w.create(keys(20)...)
		var mu sync.Mutex
		inFlight := map[string]bool{}
		var b batches
		b.see = func(events []informer.Event) {
			for _, e := range events {
				mu.Lock()
				if inFlight[e.Key] {
					t.Errorf("%s is in flight twice", e.Key)
				}
				inFlight[e.Key] = true
				mu.Unlock()
				accessor, err := meta.Accessor(e.Object)
				if err != nil || key(e.Object) != e.Key || accessor.GetResourceVersion() != e.ResourceVersion {
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
		i := follow(w, c)
		defer start(i.RunWithContext)()
		time.Sleep(time.Second)
		require.True(t, i.HasSynced())
		for n := range 30 {
			w.update("a/0003", fmt.Sprint(n))
			w.remove("a/0004")
			w.create("a/0004")
			time.Sleep(time.Duration(n) * time.Millisecond)
		}
		w.remove("a/0005")
		time.Sleep(time.Second)
		w.down(func() { w.remove("a/0006") })
		w.requireState(&b.recorder)
		require.Equal(t, b.state(), maps.Collect(c.Storage.All()))
		require.Contains(t, b.events(), "delete a/0005")
		require.Contains(t, b.events(), "delete a/0006 unknown")
		require.Contains(t, b.events(), "sync a/0007")
		for _, size := range b.sizes() {
			require.LessOrEqual(t, size, 7)
		}
		require.Zero(t, c.Budget.InUse())
	})
}

func TestMaxBatch(t *testing.T) {
	for most, want := range map[int][]int{0: {1, 500, 199}, 1: slices.Repeat([]int{1}, 700), 300: {1, 300, 300, 99}, 900: {1, 699}} {
		bubble(t, informertest.Options{}, func(t *testing.T, w *world) {
			w.create(keys(1)...)
			var b batches
			b.see = func(events []informer.Event) {
				if events[0].Key == keys(1)[0] {
					time.Sleep(time.Minute) // meanwhile the others come
				}
			}
			i := follow(w, informer.InformerConfig{BatchHandler: &b, MaxBatch: most})
			defer start(i.RunWithContext)()
			synctest.Wait()
			w.create(keys(700)[1:]...)
			time.Sleep(2 * time.Minute)
			require.Equal(t, want, b.sizes())
			require.Equal(t, keys(700)[1:], func() (in []string) {
				for _, call := range b.events()[1:] {
					in = append(in, strings.TrimPrefix(call, "add "))
				}
				return in
			}(), "in the order of their arrival")
		})
	}
}

// What an event says, for each kind of change.
func TestEvents(t *testing.T) {
	bubble(t, informertest.Options{}, func(t *testing.T, w *world) {
		w.create("a/1", "a/2")
		var told []informer.Event
		b := batches{see: func(events []informer.Event) { told = append(told, events...) }}
		i := follow(w, informer.InformerConfig{BatchHandler: &b, MaxBatch: 1, ExampleObject: example("v1", "Pod")})
		defer start(i.RunWithContext)()
		synctest.Wait()
		w.update("a/1", "changed")
		synctest.Wait()
		w.remove("a/1")
		deleted := w.ResourceVersion()
		synctest.Wait()
		known, err := w.Get(pods, "a", "2")
		require.NoError(t, err)
		w.down(func() { w.remove("a/2"); w.create("a/3") })
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
			require.Equal(t, got.Key, key(got.Object))
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
	bubble(t, informertest.Options{}, func(t *testing.T, w *world) {
		w.create("a/1", "a/2")
		transformed := 0
		var b batches
		i := follow(w, informer.InformerConfig{
			BatchHandler: informer.IgnoreSynced(&b),
			Transform:    func(obj interface{}) (interface{}, error) { transformed++; return obj, nil },
		})
		defer start(i.RunWithContext)()
		synctest.Wait()
		w.down(func() { w.update("a/2", "changed") })
		synctest.Wait()
		require.Equal(t, []string{"add a/1 initial", "add a/2 initial", "update a/2"}, b.events())
		require.Equal(t, 3, transformed)
	})
}

func TestBatchConfigurations(t *testing.T) {
	good := informer.InformerConfig{ListerWatcher: &cache.ListWatch{}, BatchHandler: informer.BatchHandlerFunc(func(context.Context, []informer.Event) error { return nil })}
	require.NotPanics(t, func() { informer.NewResourceVersionInformer("pods", good) })
	for says, change := range map[string]func(c *informer.InformerConfig){
		`informer "pods": MaxBatch is -1`:                              func(c *informer.InformerConfig) { c.MaxBatch = -1 },
		`informer "pods": Handler or BatchHandler is required`:         func(c *informer.InformerConfig) { c.BatchHandler = nil },
		`informer "pods": Handler and BatchHandler exclude each other`: func(c *informer.InformerConfig) { c.Handler = &recorder{} },
	} {
		bad := good
		change(&bad)
		require.PanicsWithValue(t, says, func() { informer.NewResourceVersionInformer("pods", bad) })
	}
}

// A context that ends is no reason to give up: Run waits, and nil acknowledges.
func TestABatchDuringWhichRunIsStopped(t *testing.T) {
	inAllForms(t, func(t *testing.T, w *world, c informer.InformerConfig) {
		w.create("a/1", "a/2")
		var f failures
		c.ErrorHandler, c.Storage = f.handle, informer.NewResourceVersionStorage()
		var second atomic.Bool
		c.BatchHandler = informer.BatchHandlerFunc(func(ctx context.Context, events []informer.Event) error {
			<-ctx.Done()
			if !second.Load() {
				return ctx.Err() // which is no failure
			}
			time.Sleep(time.Second)
			return nil
		})
		i := follow(w, c)
		for n := range 2 {
			before := time.Now()
			stop := start(i.RunWithContext)
			synctest.Wait()
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
		errs, _ := f.all()
		require.Empty(t, errs)
	})
}

// A failure that is told while Run ends is told all the same.
func TestABatchThatFailsWhileRunIsStopped(t *testing.T) {
	bubble(t, informertest.Options{}, func(t *testing.T, w *world) {
		w.create("a/1")
		var f failures
		i := follow(w, informer.InformerConfig{ErrorHandler: f.handle, BatchHandler: informer.BatchHandlerFunc(func(ctx context.Context, _ []informer.Event) error {
			<-ctx.Done()
			return errors.New("the disk is full")
		})})
		stop := start(i.RunWithContext)
		synctest.Wait()
		stop()
		errs, _ := f.all()
		require.Len(t, errs, 1)
		require.EqualError(t, errs[0], `batch of 1 events from "a/1" on, attempt 1: the disk is full`)
	})
}

// An object that cannot be told is skipped; those beside it are told.
func TestABatchWithoutWhatCanNotBeTransformed(t *testing.T) {
	survivePanics(t)
	for name, transform := range map[string]cache.TransformFunc{
		"an error":   func(interface{}) (interface{}, error) { return nil, errors.New("too ugly") },
		"nil":        func(interface{}) (interface{}, error) { return nil, nil },
		"no object":  func(interface{}) (interface{}, error) { return "text", nil },
		"a panic":    func(interface{}) (interface{}, error) { panic("too ugly") },
		"its answer": func(obj interface{}) (interface{}, error) { return nil, fmt.Errorf("%s is too ugly", key(obj)) },
	} {
		t.Run(name, func(t *testing.T) {
			inAllForms(t, func(t *testing.T, w *world, c informer.InformerConfig) {
				for _, extra := range []informer.ExtraStore{nil, nothing{}} {
					w.create("a/1", "a/2", "a/3")
					var f failures
					var b batches
					c.BatchHandler, c.ErrorHandler, c.ExtraStore = &b, f.handle, extra
					c.Storage = informer.NewResourceVersionStorage()
					c.Transform = func(obj interface{}) (interface{}, error) {
						if key(obj) == "a/2" {
							return transform(obj)
						}
						return obj, nil
					}
					i := follow(w, c)
					stop := start(i.RunWithContext)
					defer stop()
					synctest.Wait()
					require.True(t, i.HasSynced())
					require.Equal(t, []string{"add a/1 initial", "add a/3 initial"}, slices.Sorted(slices.Values(b.events())))
					require.Equal(t, 2, c.Storage.Len())
					require.EqualValues(t, 1, i.Status().Skipped)
					require.Equal(t, w.ResourceVersion(), i.Status().ResourceVersion, "it is not waited for")
					errs, _ := f.all()
					require.Len(t, errs, 1)
					var skipped *informer.ItemError
					require.ErrorAs(t, errs[0], &skipped)
					require.Equal(t, "a/2", skipped.Key)
					w.remove("a/1", "a/2", "a/3")
					synctest.Wait()
					require.Empty(t, b.state())
					require.NotContains(t, b.events(), "delete a/2", "it was not told of")
					stop()
					require.Zero(t, c.Budget.InUse())
				}
			})
		})
	}
}

// What comes of Transform is what the events have, also where it is of another type.
func TestABatchOfWhatWasTransformed(t *testing.T) {
	inAllForms(t, func(t *testing.T, w *world, c informer.InformerConfig) {
		w.create("a/1")
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
		defer start(follow(w, c).RunWithContext)()
		time.Sleep(time.Second)
		synctest.Wait()
		w.remove("a/1")
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
	bubble(t, informertest.Options{Wrap: answering("application/json", listJSON(podJSON("1", ""), wrong, podJSON("3", "")))}, func(t *testing.T, w *world) {
		var f failures
		fails := 2
		b := batches{fail: func([]string) error {
			if fails--; fails >= 0 {
				return errors.New("no")
			}
			return nil
		}}
		i := follow(w, informer.InformerConfig{BatchHandler: &b, ErrorHandler: f.handle, ExampleObject: &corev1.Pod{}})
		stop := start(i.RunWithContext)
		<-i.HasSyncedChecker().Done()
		stop()
		require.ElementsMatch(t, []string{"add a/1 initial", "add a/3 initial"}, b.events())
		require.EqualValues(t, 1, i.Status().Skipped)
		errs, _ := f.all()
		var item *informer.ItemError
		require.ErrorAs(t, errors.Join(errs...), &item)
		require.Equal(t, informer.ItemError{Index: 1, Key: "a/2", Err: item.Err}, *item)
	})
}

// The slice and its objects are the handler's, but for the raw objects.
func TestEventsAreTheHandlersToKeep(t *testing.T) {
	inAllForms(t, func(t *testing.T, w *world, c informer.InformerConfig) {
		w.create(keys(10)...)
		var mu sync.Mutex
		var kept [][]informer.Event
		var were []string
		text := func(events []informer.Event) string {
			var all []string
			for _, e := range events {
				all = append(all, eventText(e)+e.ResourceVersion)
				if _, raw := e.Object.(*informer.RawObject); !raw {
					all = append(all, identityOf(e.Object))
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
		i := follow(w, c)
		defer start(i.RunWithContext)()
		for n := range 5 {
			time.Sleep(time.Minute)
			w.update(keys(10)[n], "changed")
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
	inAllForms(t, func(t *testing.T, w *world, c informer.InformerConfig) {
		w.create(keys(10)...)
		var b batches
		fails := dice{rand: rand.New(rand.NewPCG(1, 1))}
		c.MaxBatch, c.Storage = 4, informer.NewResourceVersionStorage()
		c.BatchHandler = informer.BatchHandlerFunc(func(ctx context.Context, events []informer.Event) error {
			defer clear(events)
			if slices.Reverse(events); fails.one(2) {
				return errors.New("again")
			}
			return b.OnBatch(ctx, events)
		})
		i := follow(w, c)
		defer start(i.RunWithContext)()
		time.Sleep(time.Minute)
		w.remove("a/0003")
		w.update("a/0004", "changed")
		time.Sleep(time.Minute)
		synctest.Wait()
		w.requireState(&b.recorder)
		require.Equal(t, b.state(), maps.Collect(c.Storage.All()))
		require.Equal(t, w.ResourceVersion(), i.Status().ResourceVersion)
	})
}

// A lent object is valid until OnBatch returns, also where it comes again.
func TestRawObjectsOfABatchThatFails(t *testing.T) {
	bubble(t, informertest.Options{}, func(t *testing.T, w *world) {
		w.create(keys(50)...)
		dice := dice{rand: rand.New(rand.NewPCG(1, 1))}
		b := batches{
			see: func(events []informer.Event) {
				var before []string
				for _, e := range events {
					before = append(before, identityOf(e.Object))
				}
				time.Sleep(time.Second)
				for n, e := range events {
					if now := identityOf(e.Object); now != before[n] || !strings.HasPrefix(now, e.Key+" ") || !strings.HasSuffix(now, " "+e.ResourceVersion) {
						t.Errorf("%s became %s", before[n], now)
					}
				}
			},
			fail: func([]string) error {
				if dice.one(2) {
					return errors.New("no")
				}
				return nil
			},
		}
		i := follow(w, informer.InformerConfig{BatchHandler: &b, MaxBatch: 4, Workers: 3, ExampleObject: &informer.RawObject{}})
		defer start(i.RunWithContext)()
		for n := range 200 {
			k := keys(50)[dice.n(50)]
			switch n % 3 {
			case 0:
				w.remove(k)
				w.create(k)
			default:
				w.update(k, fmt.Sprint(n))
			}
			time.Sleep(100 * time.Millisecond)
		}
		time.Sleep(time.Hour)
		w.requireState(&b.recorder)
	})
}

// A batch that fails comes again, and nothing of it counts as acknowledged before.
func TestABatchThatFailsIsTriedAgain(t *testing.T) {
	bubble(t, informertest.Options{}, func(t *testing.T, w *world) {
		w.create(keys(5)...)
		var f failures
		var full atomic.Bool
		full.Store(true)
		b := batches{fail: func([]string) error {
			if full.Load() {
				return errors.New("the disk is full")
			}
			return nil
		}}
		storage := informer.NewResourceVersionStorage()
		i := follow(w, informer.InformerConfig{BatchHandler: &b, Storage: storage, ErrorHandler: f.handle})
		defer start(i.RunWithContext)()
		synctest.Wait()
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
		w.requireState(&b.recorder)
		errs, _ := f.all()
		require.GreaterOrEqual(t, len(errs), 4, "after 0, 0.1 to 0.15, 0.3 to 0.45, and 0.7 to 1.05 s")
		var failed *informer.BatchError
		require.ErrorAs(t, errs[0], &failed)
	})
}
