package informer_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/informertest"
)

// batches is a BatchHandler that writes down its batches, as a recorder writes down
// calls: "add a/b initial", "update a/b", "delete a/b", "delete a/b unknown", "sync
// a/b".
type batches struct {
	// fail, if set, is asked what to return for a batch, which then is not written down.
	fail func(batch []string) error

	mu  sync.Mutex
	all [][]string
	recorder
}

func (b *batches) OnBatch(_ context.Context, events []informer.Event) error {
	var batch []string
	for _, e := range events {
		batch = append(batch, eventText(e))
	}
	if b.fail != nil {
		if err := b.fail(batch); err != nil {
			return err
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.all = append(b.all, batch)
	for i, e := range events {
		b.record(batch[i], e.Object, e.Type != informer.Deleted)
	}
	return nil
}

// sizes are those of the batches so far.
func (b *batches) sizes() (sizes []int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, batch := range b.all {
		sizes = append(sizes, len(batch))
	}
	return sizes
}

func eventText(e informer.Event) string {
	text := map[informer.EventType]string{informer.Added: "add ", informer.Updated: "update ", informer.Deleted: "delete ", informer.Synced: "sync "}[e.Type] + e.Key
	if e.Type == informer.Added && e.IsInInitialList {
		text += " initial"
	}
	if e.FinalStateUnknown {
		text += " unknown"
	}
	return text
}

func TestBatchHandler(t *testing.T) {
	bubble(t, informertest.Options{}, func(t *testing.T, w *world) {
		w.create(keys(20)...)
		var b batches
		i := follow(w, informer.InformerConfig{BatchHandler: &b, MaxBatch: 7})
		defer start(i.RunWithContext)()
		synctest.Wait()
		require.True(t, i.HasSynced())
		for _, size := range b.sizes() {
			require.LessOrEqual(t, size, 7)
		}
		w.update("a/0003", "changed")
		w.remove("a/0004")
		w.create("a/new")
		synctest.Wait()
		w.requireState(&b.recorder)
	})
}

// A batch that fails comes again, whole and in its order, after 100 ms at first and
// 30 s at most, and nothing of it counts as acknowledged before.
func TestABatchThatFailsIsTriedAgain(t *testing.T) {
	bubble(t, informertest.Options{}, func(t *testing.T, w *world) {
		w.create(keys(5)...)
		var f failures
		var tried [][]string
		b := batches{fail: func(batch []string) error {
			tried = append(tried, batch)
			if len(tried) < 4 {
				return errors.New("the disk is full")
			}
			return nil
		}}
		storage := informer.NewResourceVersionStorage()
		i := follow(w, informer.InformerConfig{BatchHandler: &b, Storage: storage, ErrorHandler: f.handle})
		defer start(i.RunWithContext)()
		synctest.Wait()
		require.False(t, i.HasSynced())
		require.Zero(t, storage.Len())
		require.Empty(t, i.Status().ResourceVersion)
		require.ErrorContains(t, i.Status().LastError, "the disk is full")
		time.Sleep(time.Minute)
		require.True(t, i.HasSynced())
		require.Equal(t, w.ResourceVersion(), i.Status().ResourceVersion)
		require.NoError(t, i.Status().LastError)
		w.requireState(&b.recorder)
		errs, _ := f.all()
		require.Len(t, errs, 3)
		var failed *informer.BatchError
		require.ErrorAs(t, errs[0], &failed)
	})
}
