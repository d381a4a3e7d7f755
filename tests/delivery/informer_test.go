package delivery_test

import (
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/informertest"
	"github.com/rvinformer/informer/tests/harness"
)

func TestInformerTellsTheInitialListAndEveryChange(t *testing.T) {
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		w.CreatePods("a/1", "a/2", "b/1")
		var r harness.Recorder
		i := informer.NewResourceVersionInformer("pods", informer.InformerConfig{
			ListerWatcher:     w.Lister(),
			Handler:           &r,
			WatchListPageSize: 2,
			ListMode:          informer.ListModePaged,
		})
		require.False(t, i.HasSynced())
		require.Equal(t, informer.PhaseIdle, i.Status().Phase)

		stop := harness.Settle(i.RunWithContext)
		defer stop()
		require.True(t, i.HasSynced())
		require.Equal(t, []string{"add a/1 initial", "add a/2 initial", "add b/1 initial"}, r.Events())
		require.Equal(t, []string{"list limit=2", "list limit=2 continue", "watch rv=4"}, w.Verbs())

		r.Forget()
		w.UpdatePod("a/1", "changed")
		w.DeletePods("a/2")
		w.CreatePods("c/1")
		synctest.Wait()
		require.Equal(t, []string{"update a/1", "delete a/2", "add c/1"}, r.Events())
		w.RequireState(&r)

		status := i.Status()
		require.Equal(t, informer.PhaseWatching, status.Phase)
		require.Equal(t, informer.ListModePaged, status.ListMode)
		require.Equal(t, w.ResourceVersion(), status.ResourceVersion)
		require.Equal(t, 3, status.Objects)
		require.Zero(t, status.Queued)
		stop()
		require.Equal(t, informer.PhaseStopped, i.Status().Phase)
	})
}
