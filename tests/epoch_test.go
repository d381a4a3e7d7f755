package tests_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/informertest"
)

// The epoch of Run's context is in each batch: in its context and in its events.
func TestEpochGoesWithEveryBatch(t *testing.T) {
	bubble(t, informertest.Options{}, func(t *testing.T, w *world) {
		w.create("ns/a")
		type batch struct {
			ofContext int64
			known     bool
			ofEvent   int64
		}
		var got []batch
		i := follow(w, informer.InformerConfig{
			Storage: informer.NewResourceVersionStorage(),
			BatchHandler: informer.BatchHandlerFunc(func(ctx context.Context, events []informer.Event) error {
				b := batch{ofEvent: events[0].Epoch}
				b.ofContext, b.known = informer.EpochOf(ctx)
				got = append(got, b)
				return nil
			}),
		})
		stop := start(func(ctx context.Context) { i.RunWithContext(informer.WithEpoch(ctx, 7)) })
		time.Sleep(time.Second)
		w.update("ns/a", "2")
		time.Sleep(time.Second)
		stop()
		require.Equal(t, []batch{{7, true, 7}, {7, true, 7}}, got)

		w.update("ns/a", "3")
		got = nil
		stop = start(i.RunWithContext)
		time.Sleep(time.Second)
		stop()
		require.Equal(t, []batch{{}}, got[:1], "no epoch")
	})
}
