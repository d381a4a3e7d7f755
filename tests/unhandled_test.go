package tests_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/informertest"
)

// One of the default utilruntime.ErrorHandlers sleeps by the time since the error before it, which
// in a bubble is decades ahead.
func TestDefaultErrorHandlerDoesNotSleepInABubble(t *testing.T) {
	refused, err := informertest.ParseFault("list 500 times=3")
	require.NoError(t, err)
	bubble(t, informertest.Options{}, func(t *testing.T, w *world) {
		defer w.Inject(refused)()
		w.create("a/1")
		var r recorder
		i := informer.NewResourceVersionInformer("pods", informer.InformerConfig{
			ListerWatcher: w.lister(), ListMode: informer.ListModePaged, Handler: &r,
		})
		defer start(i.RunWithContext)()
		synctest.Wait()
		require.Error(t, i.Status().LastError)
		time.Sleep(time.Minute)
		w.requireState(&r)
		require.NoError(t, i.Status().LastError)
	})
}
