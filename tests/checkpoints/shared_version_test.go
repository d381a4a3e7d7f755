package checkpoints_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/informertest"
	"github.com/rvinformer/informer/tests/harness"
)

// A server deletes several objects in one resource version: see informertest.Server.Expire. A run that
// ends between their deletions has the next one told of the others, without a list.
func TestRestartBetweenDeletionsOfOneVersion(t *testing.T) {
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		w.CreatePods(harness.Keys(9)...)
		r := &harness.Recorder{}
		s := w.Lived(r)
		r.Before = func(string) { time.Sleep(time.Second) }
		stop := w.Run(harness.Follow(w, informer.InformerConfig{Handler: r, Checkpoint: s}))
		synctest.Wait()
		require.NoError(t, w.Expire(harness.Pods, "a", "0003", "0004", "0005", "0006", "0007", "0008"))
		time.Sleep(2500 * time.Millisecond)
		stop()
		told := r.Events()
		require.Less(t, len(told), 6)
		require.Greater(t, len(told), 1)

		r.Before = nil
		w.Run(harness.Follow(w, informer.InformerConfig{Handler: r, Checkpoint: s}))
		synctest.Wait()
		w.RequireState(r)
		require.Empty(t, w.Lists())
		require.Len(t, r.State(), 3)
		for _, call := range r.Events() {
			require.True(t, strings.HasPrefix(call, "delete "), call)
		}
	})
}

// A later Run of an informer that has seen versions with several events goes on from before the newest
// one.
func TestRunsGoOnFromBeforeAVersionOfSeveralEvents(t *testing.T) {
	a := &harness.Aggregated{}
	for n, key := range harness.Keys(6) {
		a.Put(key, 1+n)
	}
	harness.Bubble(t, informertest.Options{Wrap: a.Wrap}, func(t *testing.T, w *harness.World) {
		w.SetResourceVersion(1000)
		r := &harness.Recorder{}
		checkpoint := informer.FileCheckpoint(t.TempDir() + "/checkpoint")
		i := harness.Follow(w, informer.InformerConfig{Handler: r, ListMode: informer.ListModePaged, Checkpoint: checkpoint})
		stop := harness.Settle(i.RunWithContext)
		a.Delete("a/0000", 10)
		a.Delete("a/0001", 10)
		synctest.Wait()
		stop()
		for version := 11; version < 13; version++ {
			stop = harness.Settle(i.RunWithContext)
			time.Sleep(10 * time.Second)
			require.Equal(t, a.Versions(), r.State())
			if version == 11 {
				a.Delete("a/0002", version)
			} else {
				a.Put("a/0005", version)
			}
			synctest.Wait()
			stop()
			a.Delete(map[int]string{11: "a/0003", 12: "a/0004"}[version], version)
		}
		defer harness.Settle(i.RunWithContext)()
		time.Sleep(10 * time.Second)
		require.Equal(t, a.Versions(), r.State())
		lists, _ := a.Asked()
		require.Equal(t, 1, lists)
	})
}
