package status_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/informertest"
	"github.com/rvinformer/informer/tests/harness"
)

// One of the default utilruntime.ErrorHandlers sleeps by the time since the error before it, which
// in a bubble is decades ahead.
func TestDefaultErrorHandlerDoesNotSleepInABubble(t *testing.T) {
	refused, err := informertest.ParseFault("list 500 times=3")
	require.NoError(t, err)
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		defer w.Inject(refused)()
		w.CreatePods("a/1")
		var r harness.Recorder
		i := informer.NewResourceVersionInformer("pods", informer.InformerConfig{
			ListerWatcher: w.Lister(), ListMode: informer.ListModePaged, Handler: &r,
		})
		defer harness.Settle(i.RunWithContext)()
		require.Error(t, i.Status().LastError)
		time.Sleep(time.Minute)
		w.RequireState(&r)
		require.NoError(t, i.Status().LastError)
	})
}
