package checkpoints_test

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/informertest"
	"github.com/rvinformer/informer/tests/harness"
)

// A program that has lost all its rows says so with an empty map. The checkpoint that is left does not
// fill its Storage again.
func TestStorageThatIsFilledWithNothingIsNotFilledFromTheCheckpoint(t *testing.T) {
	for _, lost := range []int{1, 9, 10} {
		harness.BubbleRun(t, fmt.Sprintf("%d of 10 rows are lost", lost), informertest.Options{}, func(t *testing.T, w *harness.World) {
			w.CreateKubeSystem()
			w.CreatePods(harness.Keys(10)...)
			s := w.Lived(&harness.Recorder{})
			storage, r := informer.NewResourceVersionStorage(), &harness.Recorder{}
			harness.Fill(t, w, storage, r)
			rows := map[string]any{}
			for _, key := range harness.Keys(10) {
				rows[key] = r.Folded[key]
			}
			for _, key := range harness.Keys(lost) {
				delete(rows, key)
				delete(r.Folded, key)
			}
			require.NoError(t, storage.Replace(rows))
			w.Run(harness.Follow(w, informer.InformerConfig{Handler: r, Checkpoint: s, Storage: storage}))
			harness.Sleep(time.Minute)
			w.RequireState(r)
		})
	}
}

// An empty Storage goes on from an empty checkpoint.
func TestStorageThatIsFilledWithNothingGoesOnFromAnEmptyCheckpoint(t *testing.T) {
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		w.CreateKubeSystem()
		s, storage := w.Lived(&harness.Recorder{}), informer.NewResourceVersionStorage()
		require.NoError(t, storage.Replace(nil))
		w.CreatePods("a/new")
		r := &harness.Recorder{}
		w.Run(harness.Follow(w, informer.InformerConfig{Handler: r, Checkpoint: s, Storage: storage}))
		harness.Sleep(time.Minute)
		require.Empty(t, w.Lists())
		w.RequireState(r)
	})
}

// What a run has emptied is listed by the next process, also if the run has gone on from a checkpoint
// and nothing has changed since.
func TestNextProcessListsWhatARunHasEmptied(t *testing.T) {
	for _, known := range []bool{false, true} {
		harness.BubbleRun(t, fmt.Sprintf("the cluster is known=%v", known), informertest.Options{}, func(t *testing.T, w *harness.World) {
			if known {
				w.CreateKubeSystem()
			}
			w.CreatePods(harness.Keys(10)...)
			s := informer.FileCheckpoint(filepath.Join(t.TempDir(), "checkpoint"))
			w.RunFor(harness.Follow(w, informer.InformerConfig{Handler: &harness.Recorder{}, Checkpoint: s}), 5*time.Minute)
			storage := informer.NewResourceVersionStorage()
			i := harness.Follow(w, informer.InformerConfig{Handler: &harness.Recorder{}, Checkpoint: s, Storage: storage})
			stop := w.Run(i)
			harness.Sleep(5 * time.Minute)
			require.NotEmpty(t, i.Status().ResumedFrom)
			require.NoError(t, storage.Replace(nil))
			harness.Sleep(5 * time.Minute)
			stop()
			r := &harness.Recorder{}
			next := harness.Follow(w, informer.InformerConfig{Handler: r, Checkpoint: s})
			w.Run(next)
			harness.Sleep(5 * time.Minute)
			require.NoError(t, next.Status().CheckpointError)
			w.RequireState(r)
		})
	}
}
