package checkpoints_test

import (
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/informertest"
	"github.com/rvinformer/informer/tests/harness"
)

// An informer that has a checkpoint goes on with a watch: what happened meanwhile is
// told, and nothing is listed.
func TestResumeWithoutAList(t *testing.T) {
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		file := filepath.Join(t.TempDir(), "pods")
		w.CreatePods("a/1", "a/2", "a/3")
		var r harness.Recorder
		run := func() (i informer.ResourceVersionInformer, stop func()) {
			i = harness.Follow(w, informer.InformerConfig{Handler: &r, Checkpoint: informer.FileCheckpoint(file)})
			return i, harness.Start(i.RunWithContext)
		}
		i, stop := run()
		synctest.Wait()
		require.True(t, i.HasSynced())
		stop()
		require.Len(t, w.Lists(), 1)

		w.UpdatePod("a/1", "changed")
		w.DeletePods("a/2")
		w.CreatePods("a/4")
		r.Forget()
		i, stop = run()
		defer stop()
		synctest.Wait()
		time.Sleep(3 * time.Second)
		require.True(t, i.HasSynced())
		require.Equal(t, []string{"update a/1", "delete a/2", "add a/4"}, r.Events())
		require.Len(t, w.Lists(), 1, "asked: %v", w.Verbs())
		require.Equal(t, w.ResourceVersion(), i.Status().ResourceVersion)
		w.RequireState(&r)
	})
}

// Where the server has forgotten the version of the checkpoint, a list tells only
// what differs.
func TestResumeAfterTheVersionExpired(t *testing.T) {
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		file := filepath.Join(t.TempDir(), "pods")
		w.CreatePods("a/1", "a/2", "a/3")
		var r harness.Recorder
		run := func() (i informer.ResourceVersionInformer, stop func()) {
			i = harness.Follow(w, informer.InformerConfig{Handler: &r, Checkpoint: informer.FileCheckpoint(file)})
			return i, harness.Start(i.RunWithContext)
		}
		_, stop := run()
		synctest.Wait()
		stop()

		w.UpdatePod("a/1", "changed")
		w.DeletePods("a/2")
		w.CreatePods("a/4")
		w.Compact()
		r.Forget()
		i, stop := run()
		defer stop()
		synctest.Wait()
		require.True(t, i.HasSynced())
		require.Equal(t, []string{"update a/1", "sync a/3", "add a/4 initial", "delete a/2 unknown"}, r.Events())
		w.RequireState(&r)
	})
}
