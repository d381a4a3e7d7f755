package compat_test

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/informertest"
	"github.com/rvinformer/informer/tests/harness"
)

// B2: an expired continue token deleted every object of the pages that had not
// been read.
func TestB2AnExpiredTokenDeletesNothing(t *testing.T) {
	var w *harness.World
	expired := false
	expireOnce := harness.Before(func(_ http.ResponseWriter, r *http.Request) bool {
		if harness.Continues(r) && !expired {
			expired = true
			w.UpdatePod("a/0000", "changed")
			w.CreatePods("a/9999")
			w.Compact()
		}
		return true
	})
	harness.Bubble(t, informertest.Options{Wrap: expireOnce}, func(t *testing.T, world *harness.World) {
		w = world
		w.CreatePods(harness.Keys(10)...)
		storage := informer.NewResourceVersionStorage()
		var r harness.Recorder
		harness.Fill(t, w, storage, &r)
		i := harness.Follow(w, informer.InformerConfig{
			Handler: &r, Storage: storage,
			WatchListPageSize: 3, ForcePaginatedList: true, StreamHandleForPaginatedList: true,
		})
		defer harness.Settle(i.RunWithContext)()
		require.True(t, expired)
		for _, call := range r.Events() {
			require.NotContains(t, call, "delete")
		}
		w.RequireState(&r)
	})
}

// B3: a change that arrived while the listed object still waited was dropped.
func TestB3ChangesBehindAListedObject(t *testing.T) {
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		w.CreatePods("a/1", "a/2", "a/3")
		storage := informer.NewResourceVersionStorage()
		hold := make(chan struct{})
		var r harness.Recorder
		r.Before = func(string) { <-hold }
		i := harness.Follow(w, informer.InformerConfig{Handler: &r, Storage: storage})
		defer harness.Settle(i.RunWithContext)()
		w.UpdatePod("a/2", "changed")
		w.DeletePods("a/3")
		synctest.Wait()
		close(hold)
		synctest.Wait()
		w.RequireState(&r)
		versions, err := w.ResourceVersions(harness.Pods, "")
		require.NoError(t, err)
		for key, rv := range versions {
			stored, _, _ := storage.GetByKey(key)
			require.Equal(t, rv, stored)
		}
		require.Equal(t, 2, storage.Len())
	})
}

// B4: unchanged objects were updates, never syncs, and none was ever in the
// initial list.
func TestB4StreamedListsCompareVersions(t *testing.T) {
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		w.CreatePods("a/1", "a/2", "a/3")
		storage := informer.NewResourceVersionStorage()
		require.NoError(t, storage.Replace(map[string]interface{}{"a/1": "2", "a/2": "2"}))
		var r harness.Recorder
		i := harness.Follow(w, informer.InformerConfig{
			Handler: &r, Storage: storage,
			WatchListPageSize: 1, ForcePaginatedList: true, StreamHandleForPaginatedList: true,
		})
		defer harness.Settle(i.RunWithContext)()
		require.Equal(t, []string{"sync a/1", "update a/2", "add a/3 initial"}, r.Events())
	})
}

// B10: the filter was called with nil, and what left it was never a deletion.
func TestB10FilteringBehindAnInformer(t *testing.T) {
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		w.CreatePods("a/1", "a/2")
		var r harness.Recorder
		i := harness.Follow(w, informer.InformerConfig{Handler: informer.FilteringResourceEventHandler{
			FilterFunc: func(obj interface{}) bool {
				_, tombstone := obj.(cache.DeletedFinalStateUnknown)
				require.False(t, tombstone || obj == nil, "%v", obj)
				return !strings.Contains(harness.Data(obj), "ugly")
			},
			Handler: &r,
		}})
		stop := harness.Settle(i.RunWithContext)
		w.UpdatePod("a/1", "ugly")
		synctest.Wait()
		w.UpdatePod("a/1", "still ugly")
		synctest.Wait()
		stop()
		w.DeletePods("a/2")
		defer harness.Settle(i.RunWithContext)()
		require.Equal(t, []string{"add a/1 initial", "add a/2 initial", "delete a/1", "delete a/1", "delete a/2 unknown"}, r.Events())
	})
}

// extras is an ExtraStore that writes down what it is told.
type extras struct {
	calls  []string
	refuse error
}

func (e *extras) Add(obj interface{}) error    { return e.told("add", obj) }
func (e *extras) Update(obj interface{}) error { return e.told("update", obj) }
func (e *extras) Delete(obj interface{}) error {
	if _, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		return e.told("delete unknown", obj)
	}
	return e.told("delete", obj)
}
func (e *extras) Replace([]interface{}, string) error { panic("Replace holds a whole list") }

func (e *extras) told(what string, obj interface{}) error {
	if _, ok := obj.(cache.ExplicitKey); ok {
		panic("ExplicitKey")
	}
	e.calls = append(e.calls, what+" "+harness.Key(obj))
	return e.refuse
}

// B11: an ExtraStore was told of each object twice, and of keys without objects.
func TestB11AnExtraStoreIsToldOnce(t *testing.T) {
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		w.CreatePods("a/1", "a/2")
		var e extras
		var r harness.Recorder
		var f harness.Failures
		i := harness.Follow(w, informer.InformerConfig{
			Handler: informer.ResourceEventHandlerFuncs{AddFunc: func(obj interface{}) { r.OnAdd(obj, false) }},
			// No handler listens to OnSync; the store is told of unchanged objects all the same.
			ExtraStore: &e, ErrorHandler: f.Handle, WatchListPageSize: 1, StreamHandleForPaginatedList: true,
		})
		stop := harness.Settle(i.RunWithContext)
		w.UpdatePod("a/1", "changed")
		w.CreatePods("a/3")
		w.DeletePods("a/3")
		synctest.Wait()
		stop()
		require.Equal(t, []string{"add a/1", "add a/2", "update a/1", "add a/3", "delete a/3"}, e.calls)

		e.calls = nil
		w.DeletePods("a/1")
		e.refuse = fmt.Errorf("full")
		stop = harness.Settle(i.RunWithContext)
		stop()
		require.Equal(t, []string{"update a/2", "delete unknown a/1"}, e.calls)
		errs := f.Errors()
		require.Len(t, errs, 2)
		require.EqualError(t, errs[0], `store: Update "a/2": full`)
		require.EqualError(t, errs[1], `store: Delete "a/1": full`)
	})
}

// B12: objects of a server whose versions went back, are no numbers, or are very
// long were ignored for ever. (For versions that went back: TestRule8ARestoredServer.)
func TestB12AnyVersionThatDiffersIsAChange(t *testing.T) {
	const long, longer = "340282366920938463463374607431768211455", "1340282366920938463463374607431768211456"
	for _, test := range []struct {
		name, stored, listed string
		want                 string
	}{
		{"opaque", "blue", "green", "update a/1"},
		{"opaque and equal", "blue", "blue", "sync a/1"},
		{"lower", "500", "10", "update a/1"},
		{"128 bits", long, longer, "update a/1"},
		{"none", "500", "", "update a/1"},
	} {
		harness.SynctestRun(t, test.name, func(t *testing.T) {
			storage := informer.NewResourceVersionStorage()
			require.NoError(t, storage.Replace(map[string]interface{}{"a/1": test.stored}))
			var r harness.Recorder
			events := watch.NewFake()
			i := informer.NewResourceVersionInformer("pods", informer.InformerConfig{
				ListerWatcher: harness.Script{
					List:  harness.Listing(test.listed, harness.Pod("a/1", test.listed)),
					Watch: func(context.Context, metav1.ListOptions) (watch.Interface, error) { return events, nil },
				}.LW(),
				Handler: &r, Storage: storage,
			})
			defer harness.Settle(i.RunWithContext)()
			require.Equal(t, []string{test.want}, r.Events())

			events.Modify(harness.Pod("a/1", test.listed+"0"))
			synctest.Wait()
			require.Equal(t, "update a/1", r.Events()[1], "a change that a watch tells")
		})
	}
}

// B14: an object that was deleted and created again between two events was one
// update. (More in TestRule7RecreatedObjects.)
func TestB14DeletedAndCreatedAgain(t *testing.T) {
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		w.CreatePods("a/1")
		var r harness.Recorder
		i := harness.Follow(w, informer.InformerConfig{Handler: &r})
		defer harness.Settle(i.RunWithContext)()
		w.Down(func() {
			w.DeletePods("a/1")
			w.CreatePods("a/1")
		})
		require.Equal(t, []string{"add a/1 initial", "delete a/1 unknown", "add a/1"}, r.Events())
		w.RequireState(&r)
	})
}

// B15: what waited was not bounded.
func TestB15TheQueueIsBounded(t *testing.T) {
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		w.CreatePods(harness.Keys(5000)...)
		hold := make(chan struct{})
		var r harness.Recorder
		r.Before = func(string) { <-hold }
		i := harness.Follow(w, informer.InformerConfig{Handler: &r})
		defer harness.Start(i.RunWithContext)()
		time.Sleep(time.Hour)
		require.LessOrEqual(t, i.Status().Queued, 1000)
		require.LessOrEqual(t, len(w.Requests()), 3, "reading stops")
		close(hold)
		time.Sleep(time.Hour)
		w.RequireState(&r)
	})
}

// B15: one object that a handler kept held the memory of its whole page.
func TestB15AnObjectDoesNotHoldItsPage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		page := &corev1.PodList{ListMeta: metav1.ListMeta{ResourceVersion: "5"}, Items: make([]corev1.Pod, 3)}
		for i := range page.Items {
			page.Items[i].Name = fmt.Sprint(i)
		}
		var kept []*corev1.Pod
		i := informer.NewResourceVersionInformer("pods", informer.InformerConfig{
			ListerWatcher: harness.Script{
				List:  func(context.Context, metav1.ListOptions) (runtime.Object, error) { return page, nil },
				Watch: func(context.Context, metav1.ListOptions) (watch.Interface, error) { return watch.NewFake(), nil },
			}.LW(),
			ExampleObject: &corev1.Pod{},
			Handler: informer.TypedResourceEventHandlerFuncs[*corev1.Pod]{
				AddFunc: func(pod *corev1.Pod) { kept = append(kept, pod) },
			},
		})
		defer harness.Settle(i.RunWithContext)()
		require.Len(t, kept, 3)
		for n := range kept {
			require.Equal(t, page.Items[n].Name, kept[n].Name)
			require.NotSame(t, &page.Items[n], kept[n])
		}
	})
}

// Rule 13: with utilruntime.ReallyCrash, its default, a panic ends the process;
// what was reported before names the key. The process is this test, run again.
func TestRule13APanicCrashesTheProcess(t *testing.T) {
	const inside = "INFORMER_TEST_CRASH"
	for told, handle := range map[string]func(c *informer.InformerConfig){
		`processing "a/1": panic: boom`: func(c *informer.InformerConfig) {
			c.Handler = informer.ResourceEventHandlerFuncs{AddFunc: func(interface{}) { panic("boom") }}
		},
		`batch of 1 events from "a/1" on, attempt 1: panic: boom`: func(c *informer.InformerConfig) {
			c.BatchHandler = informer.BatchHandlerFunc(func(context.Context, []informer.Event) error { panic("boom") })
		},
	} {
		switch os.Getenv(inside) {
		case "":
			cmd := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$", "-test.timeout=1m")
			cmd.Env = append(os.Environ(), inside+"="+told)
			output, err := cmd.CombinedOutput()
			require.Error(t, err)
			require.Contains(t, string(output), "told: "+told)
			require.Contains(t, string(output), "panic: boom [recovered")
		case told:
			config := informer.InformerConfig{
				ListerWatcher: harness.Script{
					List:  harness.Listing("10", harness.Pod("a/1", "7")),
					Watch: func(context.Context, metav1.ListOptions) (watch.Interface, error) { return watch.NewFake(), nil },
				}.LW(),
				ErrorHandler: func(_ *informer.Reflector, err error) { fmt.Println("told:", err) },
			}
			handle(&config)
			informer.NewResourceVersionInformer("pods", config).RunWithContext(t.Context())
		}
	}
}
