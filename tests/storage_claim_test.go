package tests_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/tools/cache"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/informertest"
)

// ofNamespace lists and watches the pods of a namespace.
func (w *world) ofNamespace(namespace string) cache.ListerWatcher {
	w.t.Helper()
	return w.factory().ForResource(namespace, pods)
}

func TestSecondInformerOfARunningStorageDoesNotRun(t *testing.T) {
	bubble(t, informertest.Options{}, func(t *testing.T, w *world) {
		w.create("a/1", "a/2", "b/1")
		storage := informer.NewResourceVersionStorage()
		var f failures
		var first, second recorder
		one := follow(w, informer.InformerConfig{ListerWatcher: w.ofNamespace("a"), Handler: &first, Storage: storage})
		two := follow(w, informer.InformerConfig{ListerWatcher: w.ofNamespace("b"), Handler: &second, Storage: storage, ErrorHandler: f.handle})
		stop := start(one.RunWithContext)
		synctest.Wait()
		two.Run(make(chan struct{})) // it returns
		errs, _ := f.all()
		require.Len(t, errs, 1)
		require.ErrorIs(t, errs[0], informer.ErrStorageInUse)
		require.ErrorContains(t, errs[0], `"pods"`)
		require.ErrorIs(t, two.Status().LastError, informer.ErrStorageInUse)
		require.Equal(t, informer.PhaseStopped, two.Status().Phase)
		require.False(t, two.HasSynced())
		require.Empty(t, second.events())
		require.Equal(t, []string{"add a/1 initial", "add a/2 initial"}, first.events())
		require.Equal(t, 2, storage.Len())
		stop()

		// Runs that follow one another may share it, of one informer or of two.
		stop = start(one.RunWithContext)
		synctest.Wait()
		stop()
		defer start(two.RunWithContext)()
		synctest.Wait()
		require.True(t, two.HasSynced())
		require.Equal(t, 1, storage.Len())
		require.NoError(t, two.Status().LastError)
		require.Contains(t, second.events(), "delete a/1 unknown", "it goes on from what was stored")
	})
}

func TestSecondInformerOfARunningStoreDoesNotRun(t *testing.T) {
	bubble(t, informertest.Options{}, func(t *testing.T, w *world) {
		errs := reported(t)
		w.create("a/1", "a/2", "b/1")
		store := cache.NewStore(cache.MetaNamespaceKeyFunc)
		one := informer.NewInformer(w.ofNamespace("a"), nil, store, 0, cache.ResourceEventHandlerFuncs{}, nil)
		two := informer.NewInformer(w.ofNamespace("b"), nil, store, 0, cache.ResourceEventHandlerFuncs{}, nil)
		stop := start(one.RunWithContext)
		synctest.Wait()
		two.RunWithContext(context.Background()) // it returns
		require.Len(t, errs(), 1)
		require.ErrorIs(t, errs()[0], informer.ErrStorageInUse)
		require.ElementsMatch(t, []string{"a/1", "a/2"}, store.ListKeys())
		stop()
		defer start(two.RunWithContext)()
		synctest.Wait()
		require.ElementsMatch(t, []string{"b/1"}, store.ListKeys())
	})
}

// A handler that takes the place of a removed one may have its Storage once that has ended.
func TestStorageOfARemovedHandlerIsFreeWhenItHasEnded(t *testing.T) {
	bubble(t, informertest.Options{}, func(t *testing.T, w *world) {
		w.create("a/1")
		storage := informer.NewResourceVersionStorage()
		shared := informer.NewSharedResourceVersionInformer("pods", informer.InformerConfig{ListerWatcher: w.lister(), ListMode: informer.ListModePaged})
		slow := &recorder{before: func(string) { time.Sleep(time.Minute) }}
		old, err := shared.AddHandler(informer.HandlerConfig{Handler: slow, Storage: storage})
		require.NoError(t, err)
		defer start(shared.RunWithContext)()
		time.Sleep(time.Second)
		ended := shared.RemoveHandler(old)
		var f failures
		early, err := shared.AddHandler(informer.HandlerConfig{Handler: &recorder{}, Storage: storage, ErrorHandler: f.handle})
		require.NoError(t, err)
		synctest.Wait()
		errs, _ := f.all()
		require.Len(t, errs, 1)
		require.ErrorIs(t, errs[0], informer.ErrStorageInUse)
		shared.RemoveHandler(early)
		<-ended
		r := &recorder{}
		h, err := shared.AddHandler(informer.HandlerConfig{Handler: r, Storage: storage})
		require.NoError(t, err)
		synctest.Wait()
		require.True(t, h.HasSynced())
		require.Equal(t, []string{"sync a/1"}, r.events())
	})
}
