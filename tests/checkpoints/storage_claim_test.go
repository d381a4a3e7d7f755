package checkpoints_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/tools/cache"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/informertest"
	"github.com/rvinformer/informer/tests/harness"
)

// ofNamespace lists and watches the pods of a namespace.
func ofNamespace(w *harness.World, namespace string) cache.ListerWatcher {
	w.T.Helper()
	return w.Factory().ForResource(namespace, harness.Pods)
}

func TestSecondInformerOfARunningStorageDoesNotRun(t *testing.T) {
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		w.CreatePods("a/1", "a/2", "b/1")
		storage := informer.NewResourceVersionStorage()
		var f harness.Failures
		var first, second harness.Recorder
		one := harness.Follow(w, informer.InformerConfig{ListerWatcher: ofNamespace(w, "a"), Handler: &first, Storage: storage})
		two := harness.Follow(w, informer.InformerConfig{ListerWatcher: ofNamespace(w, "b"), Handler: &second, Storage: storage, ErrorHandler: f.Handle})
		stop := harness.Settle(one.RunWithContext)
		two.Run(make(chan struct{})) // it returns
		err := f.One(t)
		require.ErrorIs(t, err, informer.ErrStorageInUse)
		require.ErrorContains(t, err, `"pods"`)
		require.ErrorIs(t, two.Status().LastError, informer.ErrStorageInUse)
		require.Equal(t, informer.PhaseStopped, two.Status().Phase)
		require.False(t, two.HasSynced())
		require.Empty(t, second.Events())
		require.Equal(t, []string{"add a/1 initial", "add a/2 initial"}, first.Events())
		require.Equal(t, 2, storage.Len())
		stop()

		// Runs that follow one another may share it, of one informer or of two.
		stop = harness.Settle(one.RunWithContext)
		stop()
		defer harness.Settle(two.RunWithContext)()
		require.True(t, two.HasSynced())
		require.Equal(t, 1, storage.Len())
		require.NoError(t, two.Status().LastError)
		require.Contains(t, second.Events(), "delete a/1 unknown", "it goes on from what was stored")
	})
}

func TestSecondInformerOfARunningStoreDoesNotRun(t *testing.T) {
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		errs := harness.Reported(t)
		w.CreatePods("a/1", "a/2", "b/1")
		store := cache.NewStore(cache.MetaNamespaceKeyFunc)
		one := informer.NewInformer(ofNamespace(w, "a"), nil, store, 0, cache.ResourceEventHandlerFuncs{}, nil)
		two := informer.NewInformer(ofNamespace(w, "b"), nil, store, 0, cache.ResourceEventHandlerFuncs{}, nil)
		stop := harness.Settle(one.RunWithContext)
		two.RunWithContext(context.Background()) // it returns
		require.Len(t, errs(), 1)
		require.ErrorIs(t, errs()[0], informer.ErrStorageInUse)
		require.ElementsMatch(t, []string{"a/1", "a/2"}, store.ListKeys())
		stop()
		defer harness.Settle(two.RunWithContext)()
		require.ElementsMatch(t, []string{"b/1"}, store.ListKeys())
	})
}

// A handler that takes the place of a removed one may have its Storage once that has ended.
func TestStorageOfARemovedHandlerIsFreeWhenItHasEnded(t *testing.T) {
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		w.CreatePods("a/1")
		storage := informer.NewResourceVersionStorage()
		shared := informer.NewSharedResourceVersionInformer("pods", informer.InformerConfig{ListerWatcher: w.Lister(), ListMode: informer.ListModePaged})
		slow := &harness.Recorder{Before: func(string) { time.Sleep(time.Minute) }}
		old, err := shared.AddHandler(informer.HandlerConfig{Handler: slow, Storage: storage})
		require.NoError(t, err)
		defer harness.Start(shared.RunWithContext)()
		time.Sleep(time.Second)
		ended := shared.RemoveHandler(old)
		var f harness.Failures
		early, err := shared.AddHandler(informer.HandlerConfig{Handler: &harness.Recorder{}, Storage: storage, ErrorHandler: f.Handle})
		require.NoError(t, err)
		synctest.Wait()
		require.ErrorIs(t, f.One(t), informer.ErrStorageInUse)
		shared.RemoveHandler(early)
		<-ended
		r := &harness.Recorder{}
		h, err := shared.AddHandler(informer.HandlerConfig{Handler: r, Storage: storage})
		require.NoError(t, err)
		synctest.Wait()
		require.True(t, h.HasSynced())
		require.Equal(t, []string{"sync a/1"}, r.Events())
	})
}
