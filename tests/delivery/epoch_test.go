package delivery_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/informertest"
	"github.com/rvinformer/informer/tests/harness"
)

// The epoch of Run's context is in each batch: in its context and in its events.
func TestEpochGoesWithEveryBatch(t *testing.T) {
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		w.CreatePods("ns/a")
		type batch struct {
			ofContext int64
			known     bool
			ofEvent   int64
		}
		var got []batch
		i := harness.Follow(w, informer.InformerConfig{
			Storage: informer.NewResourceVersionStorage(),
			BatchHandler: informer.BatchHandlerFunc(func(ctx context.Context, events []informer.Event) error {
				b := batch{ofEvent: events[0].Epoch}
				b.ofContext, b.known = informer.EpochOf(ctx)
				got = append(got, b)
				return nil
			}),
		})
		stop := harness.Start(func(ctx context.Context) { i.RunWithContext(informer.WithEpoch(ctx, 7)) })
		time.Sleep(time.Second)
		w.UpdatePod("ns/a", "2")
		time.Sleep(time.Second)
		stop()
		require.Equal(t, []batch{{7, true, 7}, {7, true, 7}}, got)

		w.UpdatePod("ns/a", "3")
		got = nil
		stop = harness.Start(i.RunWithContext)
		time.Sleep(time.Second)
		stop()
		require.Equal(t, []batch{{}}, got[:1], "no epoch")
	})
}
