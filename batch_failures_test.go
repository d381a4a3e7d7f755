package informer_test

import (
	"errors"
	"runtime"
	"slices"
	"strings"
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
		require.ElementsMatch(t, []string{"add a/0000 initial", "add a/0002 initial"}, b.events())
		require.False(t, i.HasSynced(), "one is tried again")
		time.Sleep(time.Minute)
		require.True(t, i.HasSynced(), "one is passed over")
		require.Zero(t, i.Status().Queued)
	})
}

// A BatchHandler that ends its goroutine may have taken part of the batch in: it
// hears of the deletion.
func TestADeletionAfterAnEndedGoroutine(t *testing.T) {
	bubble(t, informertest.Options{}, func(t *testing.T, w *world) {
		b := batches{fail: func(batch []string) error {
			if slices.Contains(batch, "add a/1") {
				runtime.Goexit()
			}
			return nil
		}}
		i := follow(w, informer.InformerConfig{BatchHandler: &b})
		defer start(i.RunWithContext)()
		synctest.Wait()
		w.create("a/1")
		synctest.Wait()
		w.remove("a/1")
		synctest.Wait()
		require.Equal(t, []string{"delete a/1"}, b.events())
	})
}

// A handler that ends its goroutine does not keep waiting what is to be tried again.
func TestAnEndedGoroutineLeavesNoBatchBehind(t *testing.T) {
	bubble(t, informertest.Options{}, func(t *testing.T, w *world) {
		first := true
		b := batches{fail: func(batch []string) error {
			switch {
			case strings.Contains(batch[0], "a/2"):
				runtime.Goexit()
			case first:
				first = false
				return errors.New("later")
			}
			return nil
		}}
		i := follow(w, informer.InformerConfig{BatchHandler: &b})
		defer start(i.RunWithContext)()
		synctest.Wait()
		w.create("a/1")
		synctest.Wait()
		w.create("a/2")
		time.Sleep(time.Minute)
		require.Equal(t, []string{"add a/1"}, b.events())
	})
}
