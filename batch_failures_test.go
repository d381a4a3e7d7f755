package informer_test

import (
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/informertest"
)

// A batch comes again in the order in which it came first, which is not always that
// in which its keys began to wait.
func TestABatchThatFailsKeepsItsOrder(t *testing.T) {
	bubble(t, informertest.Options{}, func(t *testing.T, w *world) {
		var tried [][]string
		b := batches{fail: func(batch []string) error {
			tried = append(tried, batch)
			switch len(tried) {
			case 1:
				time.Sleep(time.Second)
			case 2, 3:
				return errors.New("no")
			}
			return nil
		}}
		i := follow(w, informer.InformerConfig{BatchHandler: &b})
		defer start(i.RunWithContext)()
		synctest.Wait()
		w.create("a/1")
		synctest.Wait()
		w.update("a/1", "while it is taken")
		w.create("a/2")
		time.Sleep(time.Second)
		time.Sleep(time.Minute)
		synctest.Wait()
		require.Equal(t, [][]string{{"add a/1"}, {"add a/2", "update a/1"}, {"add a/2", "update a/1"}, {"add a/2", "update a/1"}}, tried)
	})
}

// The events of a batch that panicked are not acknowledged before they have come one
// by one.
func TestHasSyncedWaitsForWhatShareABatchThatPanicked(t *testing.T) {
	survivePanics(t)
	bubble(t, informertest.Options{}, func(t *testing.T, w *world) {
		w.create(keys(3)...)
		b := batches{fail: func(batch []string) error {
			if slices.Contains(batch, "add a/0001 initial") {
				panic("no a/0001 for me")
			}
			return nil
		}}
		i := follow(w, informer.InformerConfig{BatchHandler: &b})
		defer start(i.RunWithContext)()
		synctest.Wait()
		require.False(t, i.HasSynced(), "nothing is acknowledged")
		time.Sleep(200 * time.Millisecond)
		require.Equal(t, []string{"add a/0000 initial", "add a/0002 initial"}, b.events())
		require.False(t, i.HasSynced(), "one is tried again")
		time.Sleep(time.Minute)
		require.True(t, i.HasSynced(), "one is passed over")
		require.Zero(t, i.Status().Queued)
	})
}
