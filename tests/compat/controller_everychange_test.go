package compat_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"pgregory.net/rapid"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/informertest"
	"github.com/rvinformer/informer/tests/harness"
)

// diary is a handler of an ordinary informer that writes down each call with the
// resource versions that it was given, as "add a/1 7", "update a/1 7 8" or "delete a/1 9".
type diary struct {
	// before, if set, is called first in every call.
	before func()

	mu    sync.Mutex
	lines []string
}

func (d *diary) OnAdd(obj interface{}, _ bool)       { d.write("add", obj) }
func (d *diary) OnUpdate(oldObj, newObj interface{}) { d.write("update", oldObj, newObj) }
func (d *diary) OnDelete(obj interface{})            { d.write("delete", obj) }
func (d *diary) write(verb string, objs ...interface{}) {
	if d.before != nil {
		d.before()
	}
	line := verb + " " + harness.Key(objs[0])
	for _, obj := range objs {
		line += " " + obj.(*unstructured.Unstructured).GetResourceVersion()
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.lines = append(d.lines, line)
}

func (d *diary) all() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.lines)
}

// history makes random changes of some pods, and knows what an ordinary informer
// delivers of them.
type history struct {
	w        *harness.World
	versions map[string]string
	lines    []string
}

func (h *history) change(key string, remove bool) {
	h.w.T.Helper()
	old, exists := h.versions[key]
	switch {
	case exists && remove:
		h.w.DeletePods(key)
		h.lines = append(h.lines, fmt.Sprintf("delete %s %s", key, h.w.ResourceVersion()))
		delete(h.versions, key)
		return
	case exists:
		h.w.UpdatePod(key, "after "+old)
		h.lines = append(h.lines, fmt.Sprintf("update %s %s %s", key, old, h.w.ResourceVersion()))
	default:
		h.w.CreatePods(key)
		h.lines = append(h.lines, fmt.Sprintf("add %s %s", key, h.w.ResourceVersion()))
	}
	h.versions[key] = h.w.ResourceVersion()
}

// More changes than the queue takes arrive while the handler is busy with the first.
func TestOrdinaryInformerDeliversEveryChangeInOrderToABusyHandler(t *testing.T) {
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		h := history{w: w, versions: map[string]string{}}
		free := make(chan struct{})
		d := diary{before: func() { <-free }}
		store := harness.NewStore()
		c := informer.NewInformer(w.Lister(), &unstructured.Unstructured{}, store, 0, &d, nil)
		defer harness.Settle(c.RunWithContext)()
		for n := range 3000 {
			h.change(fmt.Sprintf("a/%d", n%3), n%100 > 97)
		}
		close(free)
		synctest.Wait()
		require.Equal(t, h.lines, d.all())
		require.Equal(t, h.versions, harness.Contents(store))
	})
}

func TestOrdinaryInformerDeliversTheHistoryOfTheServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		// rapid would ask for a deadline, which a bubble does not have.
		rapid.Check(struct{ testing.TB }{t}, func(rt *rapid.T) {
			w := &harness.World{T: t, Server: informertest.NewServer(informertest.Options{InMemory: true})}
			defer w.Close()
			h := history{w: w, versions: map[string]string{}}
			for n := range rapid.IntRange(0, 4).Draw(rt, "objects before the start") {
				h.change(fmt.Sprintf("a/%d", n), false)
			}
			pace := rapid.SampledFrom([]time.Duration{0, time.Millisecond, time.Second}).Draw(rt, "pace of the handler")
			d := diary{before: func() { time.Sleep(pace) }}
			store := harness.NewStore()
			c := informer.NewInformer(w.Lister(), &unstructured.Unstructured{}, store, 0, &d, nil)
			if rapid.Bool().Draw(rt, "as a controller") {
				c = controllerOver(w.Lister(), store, &d)
			}
			defer harness.Start(c.RunWithContext)()
			time.Sleep(10 * time.Second)
			listed := len(h.lines)
			for range rapid.IntRange(1, 60).Draw(rt, "changes") {
				h.change(fmt.Sprintf("a/%d", rapid.IntRange(0, 3).Draw(rt, "object")), rapid.IntRange(0, 3).Draw(rt, "remove") == 0)
				time.Sleep(rapid.SampledFrom([]time.Duration{0, 0, time.Second}).Draw(rt, "pause"))
			}
			time.Sleep(2 * time.Minute)
			if told := d.all(); !slices.Equal(told[listed:], h.lines[listed:]) {
				rt.Fatalf("delivered:\n%s\nwritten:\n%s", strings.Join(told[listed:], "\n"), strings.Join(h.lines[listed:], "\n"))
			}
			if stored := harness.Contents(store); !maps.Equal(stored, h.versions) {
				rt.Fatalf("the store has %v, the server %v", stored, h.versions)
			}
		})
	})
}

// controllerOver is a controller with a queue of its own that keeps store and tells d.
func controllerOver(lw cache.ListerWatcher, store cache.Store, d *diary) cache.Controller {
	return informer.NewNamedController("test", &informer.Config{
		ListerWatcher: lw,
		Process: func(obj interface{}, initial bool) error {
			for _, delta := range obj.(cache.Deltas) {
				old, exists, err := store.Get(delta.Object)
				switch {
				case err != nil:
					return err
				case delta.Type == cache.Deleted:
					d.OnDelete(delta.Object)
				case exists:
					d.OnUpdate(old, delta.Object)
				default:
					d.OnAdd(delta.Object, initial)
				}
				if err := harness.Apply(store, cache.Deltas{delta}); err != nil {
					return err
				}
			}
			return nil
		},
	})
}

// A handler deletes what it has seen change: each object is seen to be created, changed
// and deleted, however soon its change follows its creation.
func TestOrdinaryInformerDeliversTheUpdateThatFollowsACreationAtOnce(t *testing.T) {
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		var created, updated, deleted []string
		h := cache.ResourceEventHandlerFuncs{
			AddFunc: func(obj interface{}) { created = append(created, harness.Key(obj)) },
			UpdateFunc: func(oldObj, newObj interface{}) {
				require.Equal(t, "created", oldObj.(*unstructured.Unstructured).Object["data"])
				require.Equal(t, "changed", newObj.(*unstructured.Unstructured).Object["data"])
				updated = append(updated, harness.Key(newObj))
				w.DeletePods(harness.Key(newObj))
			},
			DeleteFunc: func(obj interface{}) { deleted = append(deleted, harness.Key(obj)) },
		}
		c := informer.NewInformer(w.Lister(), &unstructured.Unstructured{}, harness.NewStore(), 0, h, nil)
		stop := harness.Settle(c.RunWithContext)
		var writers sync.WaitGroup
		for i := range 3 {
			writers.Go(func() {
				for n := range 20 {
					name := fmt.Sprintf("a/%d-%d", i, n)
					w.CreatePods(name)
					w.UpdatePod(name, "changed")
				}
			})
		}
		writers.Wait()
		synctest.Wait()
		stop()
		require.Len(t, created, 60)
		require.ElementsMatch(t, created, updated)
		require.Equal(t, updated, deleted)
	})
}

// A handler waits for what another informer, with the same budget, is to be told.
func TestOrdinaryInformerReadsNoFurtherThanTheBudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const changes = 40
		big := strings.Repeat("x", 1<<20)
		var events []watch.Event
		for n := range changes {
			obj := harness.Pod("a/1", strconv.Itoa(10+n))
			obj.SetAnnotations(map[string]string{"big": big})
			events = append(events, watch.Event{Type: watch.Modified, Object: obj})
		}
		begin := func(h cache.ResourceEventHandler) (c cache.Controller, stop func()) {
			lw := &harness.Tap{OnList: harness.Lists(harness.List("5", "", harness.Pod("a/1", "2"))), OnWatch: harness.Watches(harness.Open(events...))}
			c = informer.NewInformer(lw, &unstructured.Unstructured{}, harness.NewStore(), 0, h, nil)
			return c, harness.Start(c.RunWithContext)
		}
		var quick diary
		slow := diary{before: func() {
			for end := time.Now().Add(time.Minute); len(quick.all()) <= changes && time.Now().Before(end); {
				time.Sleep(time.Second)
			}
		}}
		waits, stop := begin(&slow)
		defer stop()
		synctest.Wait()
		read, err := strconv.Atoi(waits.LastSyncResourceVersion())
		require.NoError(t, err)
		require.InDelta(t, 10+15, read, 1, "what was read has to fit into the budget")
		_, stop = begin(&quick)
		defer stop()
		harness.Sleep(time.Minute)
		require.Len(t, quick.all(), 1+changes)
		require.Equal(t, quick.all(), slow.all())
	})
}

// What fails is replaced by what has arrived for its key, and the rest stays in order.
func TestOrdinaryControllerRetriesWithTheNextChange(t *testing.T) {
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		var calls []string
		failures := 3
		free := make(chan struct{})
		c := informer.NewNamedController("test", &informer.Config{
			ListerWatcher:     w.Lister(),
			RetryOnError:      true,
			WatchErrorHandler: func(*informer.Reflector, error) {},
			Process: func(obj interface{}, _ bool) error {
				<-free
				d := obj.(cache.Deltas)[0]
				calls = append(calls, fmt.Sprintf("%s %s %s", d.Type, harness.Key(d.Object), d.Object.(*unstructured.Unstructured).Object["data"]))
				if harness.Key(d.Object) == "a/1" && failures > 0 {
					failures--
					return errors.New("failed")
				}
				return nil
			},
		})
		defer harness.Settle(c.RunWithContext)()
		w.CreatePods("a/1")
		w.UpdatePod("a/1", "1")
		w.CreatePods("b/1")
		w.UpdatePod("a/1", "2")
		w.UpdatePod("a/1", "3")
		w.UpdatePod("a/1", "4")
		close(free)
		harness.Sleep(time.Minute)
		require.Equal(t, []string{"Added a/1 created", "Added a/1 1", "Added b/1 created", "Added a/1 2", "Added a/1 3", "Updated a/1 4"}, calls)
	})
}
