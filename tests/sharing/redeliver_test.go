package sharing_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/informertest"
	"github.com/rvinformer/informer/tests/harness"
)

// The handlers run in contexts made of the one that Run and Redeliver have, and which end later than
// that. The redelivery goes on with the next run nevertheless.
func TestRedeliverInTheContextOfRunGoesOnInTheNextRun(t *testing.T) {
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		w.CreatePods(harness.Keys(20)...)
		for range 10 {
			s := harness.Share(w, informer.InformerConfig{})
			h := harness.AddHandler(t, s, &harness.Recorder{})
			stop := make(chan struct{})
			ctx := wait.ContextForChannel(stop)
			stopRun := harness.Start(func(context.Context) { s.RunWithContext(ctx) })
			synctest.Wait()
			redelivered := make(chan error, 1)
			go func() { redelivered <- s.Redeliver(ctx, informer.RedeliverOptions{PerSecond: 1}) }()
			time.Sleep(time.Second)
			close(stop)
			stopRun()
			require.ErrorIs(t, <-redelivered, informer.ErrStopped)
			require.NotNil(t, h.Status().Redelivery)
		}
	})
}
