package status_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/informertest"
	"github.com/rvinformer/informer/tests/harness"
)

func TestCountsOfListsWatchesAndEvents(t *testing.T) {
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		w.CreatePods(harness.Keys(3)...)
		i := harness.Follow(w, informer.InformerConfig{Handler: &harness.Recorder{}, ListMode: informer.ListModePaged})
		require.Equal(t, informer.Counts{}, i.Status().Counts)
		heal := w.Inject(informertest.Fault{Match: informertest.Match{Verbs: []string{"list"}}, Effect: informertest.Hang(), Times: 1})
		stop := w.Run(i)
		time.Sleep(2 * time.Minute)
		heal()
		c := i.Status().Counts
		require.Equal(t, informer.ListCounts{Initial: 1, Failed: 1}, c.Lists)
		require.Equal(t, informer.WatchCounts{Listed: 1}, c.Watches)
		require.EqualValues(t, 3, c.Listed)
		require.Greater(t, c.TimeToSync, 10*time.Second)
		require.Less(t, c.TimeToSync, 2*time.Minute)
		require.Positive(t, c.StoredBytes)

		w.CreatePods("default/new")
		w.UpdatePod("default/new", "2")
		w.DeletePods("default/new")
		synctest.Wait()
		events := i.Status().Counts.Events
		require.EqualValues(t, 1, events.Added)
		require.EqualValues(t, 1, events.Modified)
		require.EqualValues(t, 1, events.Deleted)

		w.Inject(informertest.Fault{Match: informertest.Match{Verbs: []string{"watch"}}, Effect: informertest.Status(500), Times: 1})
		time.Sleep(time.Hour)
		c = i.Status().Counts
		require.EqualValues(t, 1, c.Watches.Failed)
		require.Positive(t, c.Watches.Ended)
		require.Greater(t, c.Events.Bookmarks, int64(30))
		require.Equal(t, informer.ListCounts{Initial: 1, Failed: 1}, c.Lists)
		stop()
	})
}

func TestCountsOfRestoredServer(t *testing.T) {
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		w.CreateKubeSystem()
		backup := w.Backup()
		w.CreatePods(harness.Keys(3)...)
		i := harness.Follow(w, informer.InformerConfig{Handler: &harness.Recorder{}, ListMode: informer.ListModePaged})
		stop := w.Run(i)
		time.Sleep(time.Minute)
		require.Zero(t, i.Status().Counts.Restores)
		w.Restore(backup)
		w.CloseClientConnections()
		time.Sleep(10 * time.Minute)
		c := i.Status().Counts
		require.EqualValues(t, 1, c.Restores)
		require.EqualValues(t, 1, c.Lists.Restored)
		stop()
	})
}

func TestCountsOfExpiredVersion(t *testing.T) {
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		w.CreatePods(harness.Keys(3)...)
		i := harness.Follow(w, informer.InformerConfig{Handler: &harness.Recorder{}})
		stop := w.Run(i)
		time.Sleep(time.Minute)
		w.Inject(informertest.Fault{Match: informertest.Match{Verbs: []string{"watch"}}, Effect: informertest.ErrorEvent(410), Times: 1})
		time.Sleep(time.Hour)
		require.EqualValues(t, 1, i.Status().Counts.Lists.Expired)
		stop()
	})
}

func TestCountsOfBatches(t *testing.T) {
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		w.CreatePods(harness.Keys(30)...)
		failed := false
		i := harness.Follow(w, informer.InformerConfig{MaxBatch: 10, BatchHandler: informer.BatchHandlerFunc(func(context.Context, []informer.Event) error {
			time.Sleep(200 * time.Millisecond)
			if !failed {
				failed = true
				return errors.New("not now")
			}
			return nil
		})})
		stop := w.Run(i)
		time.Sleep(time.Minute)
		c := i.Status().Counts
		require.EqualValues(t, 1, c.HandlerFailures)
		require.Greater(t, c.HandlerCalls, int64(3))
		require.EqualValues(t, c.HandlerCalls, c.BatchSize.Count())
		require.Greater(t, c.BatchSize.Sum(), 30.0)
		require.EqualValues(t, c.HandlerCalls, c.HandlerDuration.Count())
		require.InDelta(t, 0.2*float64(c.HandlerCalls), c.HandlerDuration.Sum(), 0.001)
		for bound, n := range c.HandlerDuration.Buckets() {
			if bound < 0.2 {
				require.Zero(t, n, bound)
			} else {
				require.EqualValues(t, c.HandlerCalls, n, bound)
			}
		}
		stop()
	})
}

func TestCountsOfSharedInformerAreSums(t *testing.T) {
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		w.CreatePods(harness.Keys(3)...)
		s := informer.NewSharedResourceVersionInformer("pods", informer.InformerConfig{ListerWatcher: w.Lister()})
		for range 2 {
			harness.AddHandler(t, s, &harness.Recorder{})
		}
		stop := w.Run(s)
		time.Sleep(time.Minute)
		c := s.Status().Counts
		require.EqualValues(t, 2, c.Lists.Initial)
		require.EqualValues(t, 6, c.Listed)
		require.EqualValues(t, 6, c.HandlerCalls)
		require.EqualValues(t, 6, c.HandlerDuration.Count())
		stop()
	})
}

func TestCountsOfCheckpoint(t *testing.T) {
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		w.CreatePods(harness.Keys(3)...)
		s := &harness.MemoryCheckpoint{OnSave: func(context.Context, int) error { time.Sleep(time.Second); return nil }}
		i := harness.Follow(w, informer.InformerConfig{Handler: &harness.Recorder{}, Checkpoint: s})
		stop := w.Run(i)
		time.Sleep(5 * time.Minute)
		c := i.Status().Counts
		require.Positive(t, c.CheckpointSaves)
		require.Equal(t, time.Second, c.CheckpointDuration)
		stop()
	})
}
