package lists_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/informertest"
	"github.com/rvinformer/informer/tests/harness"
)

func TestRule6UnchangedIsUnchanged(t *testing.T) {
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		w.CreatePods("a/1", "a/2")
		storage := informer.NewResourceVersionStorage()
		var r harness.Recorder
		i := harness.Follow(w, informer.InformerConfig{Handler: &r, Storage: storage, WatchListPageSize: 1})
		stop := harness.Start(i.RunWithContext)
		defer func() { stop() }()
		synctest.Wait()

		r.Forget()
		w.Relist()
		require.Equal(t, []string{"sync a/1", "sync a/2"}, r.Events(), "a relist")

		stop()
		r.Forget()
		w.UpdatePod("a/2", "changed meanwhile")
		stop = harness.Settle(i.RunWithContext)
		require.Equal(t, []string{"sync a/1", "update a/2"}, r.Events(), "the same informer again")
		stop()

		r.Forget()
		i = harness.Follow(w, informer.InformerConfig{Handler: &r, Storage: storage})
		stop = harness.Settle(i.RunWithContext)
		require.Equal(t, []string{"sync a/1", "sync a/2"}, r.Events(), "another informer, same storage")
		stop()

		r.Forget()
		loaded := map[string]interface{}{}
		for key, rv := range storage.All() {
			loaded[key] = rv
		}
		fresh := informer.NewResourceVersionStorage()
		require.NoError(t, fresh.Replace(loaded))
		i = harness.Follow(w, informer.InformerConfig{Handler: &r, Storage: fresh})
		stop = harness.Settle(i.RunWithContext)
		require.Equal(t, []string{"sync a/1", "sync a/2"}, r.Events(), "a storage loaded from elsewhere")
		w.RequireState(&r)
	})
}

func TestRule6UnchangedIsNotQueuedWhereNoOneListens(t *testing.T) {
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		w.CreatePods("a/1", "a/2")
		transformed := 0
		config := informer.InformerConfig{
			Handler: informer.ResourceEventHandlerFuncs{AddFunc: func(interface{}) {}},
			Transform: func(obj interface{}) (interface{}, error) {
				transformed++
				return obj, nil
			},
		}
		i := harness.Follow(w, config)
		harness.Start(i.RunWithContext)()
		stop := harness.Settle(i.RunWithContext)
		require.Equal(t, 2, transformed)
		w.Relist()
		stop()
		require.Equal(t, 2, transformed)
	})
}

func TestRule7RecreatedObjects(t *testing.T) {
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		w.CreatePods("a/1")
		old, err := w.Get(harness.Pods, "a", "1")
		require.NoError(t, err)
		var tombstones []interface{}
		var r harness.Recorder
		handler := harness.Deletions{Recorder: &r, Objects: &tombstones}
		i := harness.Follow(w, informer.InformerConfig{Handler: handler, ExampleObject: harness.ExampleObject("v1", "Pod")})
		stop := harness.Start(i.RunWithContext)
		defer func() { stop() }()
		synctest.Wait()
		stop()

		r.Forget()
		w.DeletePods("a/1")
		w.CreatePods("a/1")
		stop = harness.Settle(i.RunWithContext)
		require.Equal(t, []string{"delete a/1 unknown", "add a/1 initial"}, r.Events(), "recreated while the informer was down")
		require.Equal(t, &metav1.PartialObjectMetadata{
			TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
			ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "1", UID: old.GetUID(), ResourceVersion: old.GetResourceVersion()},
		}, harness.LastKnown(t, tombstones[0]))

		r.Forget()
		hold := make(chan struct{})
		r.Before = func(call string) {
			if call == "add a/2" {
				<-hold
			}
		}
		w.CreatePods("a/2")
		synctest.Wait()
		w.DeletePods("a/1")
		w.CreatePods("a/1")
		w.UpdatePod("a/1", "and changed")
		synctest.Wait()
		close(hold)
		synctest.Wait()
		require.Equal(t, []string{"add a/2", "delete a/1", "add a/1"}, r.Events(), "recreated while it waited")
		w.RequireState(&r)
	})
}

func TestRule8AListIsNotOlderThanTheStorage(t *testing.T) {
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		w.CreatePods("a/1", "a/2")
		storage := informer.NewResourceVersionStorage()
		require.NoError(t, storage.Replace(map[string]interface{}{"a/1": "2", "a/2": "3", "a/3": "opaque"}))
		var r harness.Recorder
		harness.Settled(w, informer.InformerConfig{Handler: &r, Storage: storage, ListMode: informer.ListModeFull})
		require.Equal(t, "list rv=3", w.Verbs()[0])
		require.Equal(t, []string{"sync a/1", "sync a/2", "delete a/3 unknown"}, r.Events())
	})
}

// A server whose versions went back, as after a restore, is noticed: what
// differs is told although its versions are lower.
func TestRule8ARestoredServer(t *testing.T) {
	for _, mode := range []informer.ListMode{informer.ListModePaged, informer.ListModeFull} {
		harness.BubbleRun(t, mode.String(), informertest.Options{}, func(t *testing.T, w *harness.World) {
			w.SetResourceVersion(500)
			w.CreatePods("a/1", "a/2")
			var r harness.Recorder
			i := harness.Settled(w, informer.InformerConfig{Handler: &r, ListMode: mode})

			w.SetResourceVersion(100)
			w.UpdatePod("a/1", "as it was long ago")
			w.DeletePods("a/2")
			w.CreatePods("a/3")
			w.CloseClientConnections()
			time.Sleep(time.Hour)
			w.RequireState(&r)
			require.Contains(t, r.Events(), "update a/1")

			w.UpdatePod("a/1", "and life goes on")
			synctest.Wait()
			w.RequireState(&r)
			require.Zero(t, i.Status().Stale)
		})
	}
}

func TestRule8StaleEventsAreDroppedAndCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		events := watch.NewFake()
		var r harness.Recorder
		i := informer.NewResourceVersionInformer("pods", informer.InformerConfig{
			ListerWatcher: harness.Script{
				List:  harness.Listing("10", harness.Pod("a/1", "7"), harness.Pod("a/2", "8")),
				Watch: func(context.Context, metav1.ListOptions) (watch.Interface, error) { return events, nil },
			}.LW(),
			Handler: &r,
		})
		defer harness.Settle(i.RunWithContext)()
		r.Forget()
		events.Modify(harness.Pod("a/1", "6"))
		events.Modify(harness.Pod("a/1", "7"))
		events.Delete(harness.Pod("a/2", "5"))
		synctest.Wait()
		require.Empty(t, r.Events())
		require.EqualValues(t, 3, i.Status().Stale)
		require.Equal(t, "10", i.LastSyncResourceVersion())

		events.Modify(harness.Pod("a/1", "100")) // longer is later
		events.Delete(harness.Pod("a/2", "8"))   // a deletion in the version that it ended
		synctest.Wait()
		require.Equal(t, []string{"update a/1", "delete a/2"}, r.Events())
		require.EqualValues(t, 3, i.Status().Stale)
	})
}
