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
