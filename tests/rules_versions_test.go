package tests_test

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
)

func TestRule6UnchangedIsUnchanged(t *testing.T) {
	bubble(t, informertest.Options{}, func(t *testing.T, w *world) {
		w.create("a/1", "a/2")
		storage := informer.NewResourceVersionStorage()
		var r recorder
		i := follow(w, informer.InformerConfig{Handler: &r, Storage: storage, WatchListPageSize: 1})
		stop := start(i.RunWithContext)
		defer func() { stop() }()
		synctest.Wait()

		r.forget()
		w.relist()
		require.Equal(t, []string{"sync a/1", "sync a/2"}, r.events(), "a relist")

		stop()
		r.forget()
		w.update("a/2", "changed meanwhile")
		stop = start(i.RunWithContext)
		synctest.Wait()
		require.Equal(t, []string{"sync a/1", "update a/2"}, r.events(), "the same informer again")
		stop()

		r.forget()
		i = follow(w, informer.InformerConfig{Handler: &r, Storage: storage})
		stop = start(i.RunWithContext)
		synctest.Wait()
		require.Equal(t, []string{"sync a/1", "sync a/2"}, r.events(), "another informer, same storage")
		stop()

		r.forget()
		loaded := map[string]interface{}{}
		for key, rv := range storage.All() {
			loaded[key] = rv
		}
		fresh := informer.NewResourceVersionStorage()
		require.NoError(t, fresh.Replace(loaded))
		i = follow(w, informer.InformerConfig{Handler: &r, Storage: fresh})
		stop = start(i.RunWithContext)
		synctest.Wait()
		require.Equal(t, []string{"sync a/1", "sync a/2"}, r.events(), "a storage loaded from elsewhere")
		w.requireState(&r)
	})
}

func TestRule6UnchangedIsNotQueuedWhereNoOneListens(t *testing.T) {
	bubble(t, informertest.Options{}, func(t *testing.T, w *world) {
		w.create("a/1", "a/2")
		transformed := 0
		config := informer.InformerConfig{
			Handler: informer.ResourceEventHandlerFuncs{AddFunc: func(interface{}) {}},
			Transform: func(obj interface{}) (interface{}, error) {
				transformed++
				return obj, nil
			},
		}
		i := follow(w, config)
		start(i.RunWithContext)()
		stop := start(i.RunWithContext)
		synctest.Wait()
		require.Equal(t, 2, transformed)
		w.relist()
		stop()
		require.Equal(t, 2, transformed)
	})
}

func TestRule7RecreatedObjects(t *testing.T) {
	bubble(t, informertest.Options{}, func(t *testing.T, w *world) {
		w.create("a/1")
		old, err := w.Get(pods, "a", "1")
		require.NoError(t, err)
		var tombstones []interface{}
		var r recorder
		handler := deletions{&r, &tombstones}
		i := follow(w, informer.InformerConfig{Handler: handler, ExampleObject: example("v1", "Pod")})
		stop := start(i.RunWithContext)
		defer func() { stop() }()
		synctest.Wait()
		stop()

		r.forget()
		w.remove("a/1")
		w.create("a/1")
		stop = start(i.RunWithContext)
		synctest.Wait()
		require.Equal(t, []string{"delete a/1 unknown", "add a/1 initial"}, r.events(), "recreated while the informer was down")
		require.Equal(t, &metav1.PartialObjectMetadata{
			TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
			ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "1", UID: old.GetUID(), ResourceVersion: old.GetResourceVersion()},
		}, lastKnown(t, tombstones[0]))

		r.forget()
		hold := make(chan struct{})
		r.before = func(call string) {
			if call == "add a/2" {
				<-hold
			}
		}
		w.create("a/2")
		synctest.Wait()
		w.remove("a/1")
		w.create("a/1")
		w.update("a/1", "and changed")
		synctest.Wait()
		close(hold)
		synctest.Wait()
		require.Equal(t, []string{"add a/2", "delete a/1", "add a/1"}, r.events(), "recreated while it waited")
		w.requireState(&r)
	})
}

func TestRule8AListIsNotOlderThanTheStorage(t *testing.T) {
	bubble(t, informertest.Options{}, func(t *testing.T, w *world) {
		w.create("a/1", "a/2")
		storage := informer.NewResourceVersionStorage()
		require.NoError(t, storage.Replace(map[string]interface{}{"a/1": "2", "a/2": "3", "a/3": "opaque"}))
		var r recorder
		i := follow(w, informer.InformerConfig{Handler: &r, Storage: storage, ListMode: informer.ListModeFull})
		defer start(i.RunWithContext)()
		synctest.Wait()
		require.Equal(t, "list rv=3", w.verbs()[0])
		require.Equal(t, []string{"sync a/1", "sync a/2", "delete a/3 unknown"}, r.events())
	})
}

// A server whose versions went back, as after a restore, is noticed: what
// differs is told although its versions are lower.
func TestRule8ARestoredServer(t *testing.T) {
	for _, mode := range []informer.ListMode{informer.ListModePaged, informer.ListModeFull} {
		t.Run(mode.String(), func(t *testing.T) {
			bubble(t, informertest.Options{}, func(t *testing.T, w *world) {
				w.SetResourceVersion(500)
				w.create("a/1", "a/2")
				var r recorder
				i := follow(w, informer.InformerConfig{Handler: &r, ListMode: mode})
				defer start(i.RunWithContext)()
				synctest.Wait()

				w.SetResourceVersion(100)
				w.update("a/1", "as it was long ago")
				w.remove("a/2")
				w.create("a/3")
				w.CloseClientConnections()
				time.Sleep(time.Hour)
				w.requireState(&r)
				require.Contains(t, r.events(), "update a/1")

				w.update("a/1", "and life goes on")
				synctest.Wait()
				w.requireState(&r)
				require.Zero(t, i.Status().Stale)
			})
		})
	}
}

func TestRule8StaleEventsAreDroppedAndCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		events := watch.NewFake()
		var r recorder
		i := informer.NewResourceVersionInformer("pods", informer.InformerConfig{
			ListerWatcher: script{
				list:  listing("10", pod("a/1", "7"), pod("a/2", "8")),
				watch: func(context.Context, metav1.ListOptions) (watch.Interface, error) { return events, nil },
			}.lw(),
			Handler: &r,
		})
		defer start(i.RunWithContext)()
		synctest.Wait()
		r.forget()
		events.Modify(pod("a/1", "6"))
		events.Modify(pod("a/1", "7"))
		events.Delete(pod("a/2", "5"))
		synctest.Wait()
		require.Empty(t, r.events())
		require.EqualValues(t, 3, i.Status().Stale)
		require.Equal(t, "10", i.LastSyncResourceVersion())

		events.Modify(pod("a/1", "100")) // longer is later
		events.Delete(pod("a/2", "8"))   // a deletion in the version that it ended
		synctest.Wait()
		require.Equal(t, []string{"update a/1", "delete a/2"}, r.events())
		require.EqualValues(t, 3, i.Status().Stale)
	})
}
