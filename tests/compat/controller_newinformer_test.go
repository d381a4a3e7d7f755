package compat_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/informertest"
	"github.com/rvinformer/informer/tests/harness"
)

// storeKeys are the key functions that NewInformer's store may have.
var storeKeys = map[string]cache.KeyFunc{
	"MetaNamespaceKeyFunc":                 cache.MetaNamespaceKeyFunc,
	"DeletionHandlingMetaNamespaceKeyFunc": cache.DeletionHandlingMetaNamespaceKeyFunc,
}

func TestNewInformerKeepsItsStoreAndTellsItsHandler(t *testing.T) {
	for name, keyFunc := range storeKeys {
		harness.BubbleRun(t, name, informertest.Options{}, func(t *testing.T, w *harness.World) {
			errs := harness.Reported(t)
			w.CreatePods("a/1", "a/2")
			store := cache.NewStore(keyFunc)
			var r harness.Recorder
			c := informer.NewInformer(w.Lister(), &unstructured.Unstructured{}, store, 0, &r, nil)
			require.False(t, c.HasSynced())
			require.Empty(t, c.LastSyncResourceVersion())
			defer harness.Start(c.RunWithContext)()
			agrees := func() {
				t.Helper()
				synctest.Wait()
				w.RequireState(&r)
				require.Equal(t, r.State(), harness.Contents(store))
				require.Empty(t, errs())
			}
			agrees()
			require.True(t, c.HasSynced())
			require.True(t, cache.IsDone(c.HasSyncedChecker()))
			require.ElementsMatch(t, []string{"add a/1 initial", "add a/2 initial"}, r.Events())
			r.Forget()
			w.UpdatePod("a/1", "changed")
			w.DeletePods("a/2")
			w.CreatePods("a/3")
			agrees()
			require.Equal(t, []string{"update a/1", "delete a/2", "add a/3"}, r.Events())
			require.Equal(t, w.ResourceVersion(), c.LastSyncResourceVersion())
		})
	}
}

func TestNewInformerTellsOldAndNew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := harness.NewSent()
		store := harness.NewStore()
		type call struct{ old, new string }
		calls := make(chan call, 10)
		h := cache.ResourceEventHandlerFuncs{UpdateFunc: func(oldObj, newObj interface{}) {
			calls <- call{oldObj.(*unstructured.Unstructured).GetResourceVersion(), newObj.(*unstructured.Unstructured).GetResourceVersion()}
		}}
		c := informer.NewInformer(&harness.Tap{OnList: harness.Lists(harness.List("5", "", harness.Pod("a/1", "2"))), OnWatch: w.Answer}, nil, store, 0, h, nil)
		defer harness.Settle(c.RunWithContext)()
		w.Modify(harness.Pod("a/1", "6"))
		require.Equal(t, call{"2", "6"}, <-calls)
		w.Modify(harness.Pod("a/1", "7"))
		require.Equal(t, call{"6", "7"}, <-calls)
	})
}

// What a list finds gone or recreated, or unchanged.
func TestNewInformerAfterARelist(t *testing.T) {
	for name, keyFunc := range storeKeys {
		harness.BubbleRun(t, name, informertest.Options{}, func(t *testing.T, w *harness.World) {
			errs := harness.Reported(t)
			w.CreatePods("a/gone", "a/new", "a/same")
			lw := harness.TapOn(w.Lister())
			lw.OnWatch = func(_ context.Context, n int, _ metav1.ListOptions) (watch.Interface, error) {
				if n == 2 { // what happens now, no watch tells
					w.DeletePods("a/gone", "a/new")
					w.CreatePods("a/new")
					w.Compact()
				}
				return nil, harness.ErrPass
			}
			store := cache.NewStore(keyFunc)
			var mu sync.Mutex
			var deleted []interface{}
			var r harness.Recorder
			h := cache.ResourceEventHandlerFuncs{AddFunc: func(obj interface{}) { r.OnAdd(obj, false) }, UpdateFunc: r.OnUpdate, DeleteFunc: func(obj interface{}) {
				mu.Lock()
				deleted = append(deleted, obj)
				mu.Unlock()
				r.OnDelete(obj)
			}}
			c := informer.NewInformer(lw, &unstructured.Unstructured{}, store, 0, h, nil)
			defer harness.Settle(c.RunWithContext)()
			gone, _, err := store.GetByKey("a/gone")
			require.NoError(t, err)
			old, _, err := store.GetByKey("a/new")
			require.NoError(t, err)
			r.Forget()
			w.CloseClientConnections()
			harness.Sleep(time.Minute)
			w.RequireState(&r)
			require.Equal(t, r.State(), harness.Contents(store))
			require.ElementsMatch(t, []string{"delete a/gone unknown", "delete a/new unknown", "add a/new", "update a/same"}, r.Events())
			mu.Lock()
			defer mu.Unlock()
			require.ElementsMatch(t, []interface{}{
				cache.DeletedFinalStateUnknown{Key: "a/gone", Obj: gone},
				cache.DeletedFinalStateUnknown{Key: "a/new", Obj: old},
			}, deleted)
			for _, err := range errs() {
				require.NotErrorAs(t, err, new(*informer.ProcessError))
			}
		})
	}
}

func TestNewInformerWithAFilledStore(t *testing.T) {
	for name, keyFunc := range storeKeys {
		harness.BubbleRun(t, name, informertest.Options{}, func(t *testing.T, w *harness.World) {
			errs := harness.Reported(t)
			w.CreatePods("a/1", "a/2")
			store := cache.NewStore(keyFunc)
			there, err := w.Get(harness.Pods, "a", "1")
			require.NoError(t, err)
			require.NoError(t, store.Add(there))
			require.NoError(t, store.Add(harness.Pod("a/old", "1")))
			var r harness.Recorder
			c := informer.NewInformer(w.Lister(), nil, store, 0, &r, nil)
			defer harness.Settle(c.RunWithContext)()
			require.ElementsMatch(t, []string{"update a/1", "add a/2 initial", "delete a/old unknown"}, r.Events())
			w.RequireState(&r)
			require.Equal(t, r.State(), harness.Contents(store))
			require.Empty(t, errs())
			require.True(t, c.HasSynced())
		})
	}
}

func TestNewInformerTransforms(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		errs := harness.Reported(t)
		w := harness.NewSent()
		store := harness.NewStore()
		failed := errors.New("failed")
		var told []string
		tell := func(verb string, obj interface{}) {
			told = append(told, verb+" "+harness.Key(obj)+" "+obj.(*unstructured.Unstructured).GetAnnotations()["t"])
		}
		h := cache.ResourceEventHandlerFuncs{
			AddFunc:    func(obj interface{}) { tell("add", obj) },
			UpdateFunc: func(_, obj interface{}) { tell("update", obj) },
			DeleteFunc: func(obj interface{}) { tell("delete", obj) },
		}
		c := informer.NewInformer(&harness.Tap{OnList: harness.Lists(harness.List("5", "", harness.Pod("a/1", "2"), harness.Pod("a/bad", "3"))), OnWatch: w.Answer}, nil, store, 0, h, func(obj interface{}) (interface{}, error) {
			u := obj.(*unstructured.Unstructured)
			if u.GetName() == "bad" {
				return nil, failed
			}
			u.SetAnnotations(map[string]string{"t": "done"})
			return u, nil
		})
		defer harness.Settle(c.RunWithContext)()
		w.Modify(harness.Pod("a/1", "6"))
		synctest.Wait()
		w.Delete(harness.Pod("a/1", "7"))
		synctest.Wait()
		w.Add(harness.Pod("a/2", "8"))
		synctest.Wait()
		require.Equal(t, []string{"add a/1 done", "update a/1 done", "delete a/1 done", "add a/2 done"}, told)
		require.Equal(t, map[string]string{"a/2": "8"}, harness.Contents(store))
		require.Len(t, errs(), 1)
		item := harness.ErrorAs[*informer.ItemError](t, errs()[0])
		require.Equal(t, "a/bad", item.Key)
		require.ErrorIs(t, item, failed)
	})
}

// A deletion is not lost because its last state cannot be transformed.
func TestNewInformerLosesNoDeletionThatCanNotBeTransformed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		errs := harness.Reported(t)
		store := harness.NewStore()
		var r harness.Recorder
		c := informer.NewInformer(&harness.Tap{OnList: harness.Lists(harness.List("5", "", harness.Pod("a/1", "2"))), OnWatch: harness.Watches(harness.Open(watch.Event{Type: watch.Deleted, Object: harness.Pod("a/1", "6")}))},
			nil, store, 0, &r, func(obj interface{}) (interface{}, error) {
				if obj.(*unstructured.Unstructured).GetResourceVersion() == "6" {
					return nil, errors.New("failed")
				}
				return obj, nil
			})
		defer harness.Settle(c.RunWithContext)()
		require.Len(t, errs(), 1)
		require.Empty(t, store.ListKeys())
		require.Empty(t, r.State())
	})
}

func TestNewInformerResyncs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := harness.NewStore()
		var r harness.Recorder
		c := informer.NewInformer(&harness.Tap{OnList: harness.Lists(harness.List("5", "", harness.Pod("a/1", "2"), harness.Pod("a/2", "3"))), OnWatch: harness.Watches(harness.Open())}, nil, store, time.Minute, &r, nil)
		defer harness.Settle(c.RunWithContext)()
		r.Forget()
		harness.Sleep(150 * time.Second)
		require.ElementsMatch(t, []string{"update a/1", "update a/2", "update a/1", "update a/2"}, r.Events())
	})
}

// hooked is a store whose List calls after with what it is going to return.
type hooked struct {
	cache.Store
	after func()
}

func (h hooked) List() []interface{} {
	objects := h.Store.List()
	h.after()
	return objects
}

// What a resync has read of the store, and what has become of it since.
func TestNewInformerResyncBringsNothingBack(t *testing.T) {
	for name, c := range map[string]struct {
		event watch.Event
		want  map[string]string
	}{
		"that is deleted": {watch.Event{Type: watch.Deleted, Object: harness.Pod("b/1", "7")}, map[string]string{"a/1": "6"}},
		"that is older":   {watch.Event{Type: watch.Modified, Object: harness.Pod("b/1", "7")}, map[string]string{"a/1": "6", "b/1": "7"}},
	} {
		harness.SynctestRun(t, name, func(t *testing.T) {
			w := harness.NewSent()
			release := make(chan struct{})
			resyncing := false
			store := hooked{Store: harness.NewStore()}
			store.after = func() {
				if resyncing {
					resyncing = false
					close(release)
					time.Sleep(time.Millisecond) // the queue is emptied now
				}
			}
			r := harness.Recorder{Before: func(call string) {
				if call == "update a/1" {
					<-release
				}
			}}
			con := informer.NewInformer(&harness.Tap{OnList: harness.Lists(harness.List("5", "", harness.Pod("a/1", "2"), harness.Pod("b/1", "3"))), OnWatch: w.Answer}, nil, &store, time.Minute, &r, nil)
			defer harness.Settle(con.RunWithContext)()
			resyncing = true
			w.Modify(harness.Pod("a/1", "6"))
			w.Action(c.event.Type, c.event.Object)
			harness.Sleep(61 * time.Second)
			require.Equal(t, c.want, harness.Contents(store.Store))
			require.Equal(t, c.want, r.State())
		})
	}
}

func TestNewInformerReportsWhatItsStoreRefuses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		errs := harness.Reported(t)
		var r harness.Recorder
		store := cache.NewStore(func(obj interface{}) (string, error) {
			if harness.Key(obj) == "a/bad" {
				return "", errors.New("failed")
			}
			return harness.Key(obj), nil
		})
		c := informer.NewInformer(&harness.Tap{OnList: harness.Lists(harness.List("5", "", harness.Pod("a/bad", "2"), harness.Pod("a/good", "3"))), OnWatch: harness.Watches(harness.Open())}, nil, store, 0, &r, nil)
		defer harness.Settle(c.RunWithContext)()
		require.Equal(t, []string{"add a/good initial"}, r.Events())
		require.Len(t, errs(), 1)
		process := harness.ErrorAs[*informer.ProcessError](t, errs()[0])
		require.Equal(t, "a/bad", process.Key)
		refusal := harness.ErrorAs[*informer.StoreError](t, errs()[0])
		require.Equal(t, "Add", refusal.Op)
	})
}

func TestPanicOfAHandlerOfNewInformerIsReported(t *testing.T) {
	harness.SurvivePanics(t)
	synctest.Test(t, func(t *testing.T) {
		errs := harness.Reported(t)
		store := harness.NewStore()
		r := harness.Recorder{Before: func(call string) {
			if strings.HasPrefix(call, "add a/bad") {
				panic("oops")
			}
		}}
		c := informer.NewInformer(&harness.Tap{OnList: harness.Lists(harness.List("5", "", harness.Pod("a/bad", "2"), harness.Pod("a/good", "3"))), OnWatch: harness.Watches(harness.Open())}, nil, store, 0, &r, nil)
		defer harness.Settle(c.RunWithContext)()
		require.Equal(t, []string{"add a/good initial"}, r.Events())
		require.Len(t, errs(), 1)
		process := harness.ErrorAs[*informer.ProcessError](t, errs()[0])
		require.Equal(t, "a/bad", process.Key)
		require.True(t, c.HasSynced())
	})
}

// ReallyCrash is true, as it is by default.
func TestPanicOfAnOrdinaryHandlerReachesTheCallerOfRun(t *testing.T) {
	harness.SurvivePanics(t)
	utilruntime.ReallyCrash = true
	for name, make := range map[string]func(lw cache.ListerWatcher, store cache.Store, r *harness.Recorder) cache.Controller{
		"NewInformer": func(lw cache.ListerWatcher, store cache.Store, r *harness.Recorder) cache.Controller {
			return informer.NewInformer(lw, &unstructured.Unstructured{}, store, 0, r, nil)
		},
		"NewNamedController": func(lw cache.ListerWatcher, store cache.Store, r *harness.Recorder) cache.Controller {
			return informer.NewNamedController("test", &informer.Config{ListerWatcher: lw, Process: func(obj interface{}, initial bool) error {
				r.OnAdd(obj.(cache.Deltas).Newest().Object, initial)
				return harness.Apply(store, obj)
			}})
		},
	} {
		harness.BubbleRun(t, name, informertest.Options{}, func(t *testing.T, w *harness.World) {
			errs := harness.Reported(t)
			w.CreatePods("a/1", "a/2", "a/3")
			oops := errors.New("oops")
			panics := true
			r := harness.Recorder{Before: func(string) {
				if panics {
					panic(oops)
				}
			}}
			store := harness.NewStore()
			c := make(w.Lister(), store, &r)
			require.PanicsWithValue(t, oops, func() { c.RunWithContext(t.Context()) })
			synctest.Wait()
			require.Zero(t, w.Watching.Load(), "the watch has ended")
			require.Len(t, errs(), 1)
			panics = false
			defer harness.Settle(c.RunWithContext)()
			w.RequireState(&r)
			require.True(t, c.HasSynced())
		})
	}
}

func TestNewInformerNeedsItsParts(t *testing.T) {
	for i, f := range []func(){
		func() { informer.NewInformer(nil, nil, harness.NewStore(), 0, &harness.Recorder{}, nil) },
		func() { informer.NewInformer(&harness.Tap{}, nil, nil, 0, &harness.Recorder{}, nil) },
		func() { informer.NewInformer(&harness.Tap{}, nil, harness.NewStore(), 0, nil, nil) },
	} {
		require.Panics(t, f, fmt.Sprint(i))
	}
}

func TestNewInformerRunsAgain(t *testing.T) {
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		w.CreatePods("a/1", "a/2")
		store := harness.NewStore()
		var r harness.Recorder
		c := informer.NewInformer(w.Lister(), nil, store, 0, &r, nil)
		for range 3 {
			stopCh, done := make(chan struct{}), make(chan struct{})
			go func() { defer close(done); c.Run(stopCh) }()
			synctest.Wait()
			w.RequireState(&r)
			require.Equal(t, r.State(), harness.Contents(store))
			close(stopCh)
			<-done
			w.DeletePods("a/1")
			w.CreatePods("a/1")
			w.UpdatePod("a/2", w.ResourceVersion())
		}
	})
}
