package sharing_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/informertest"
	"github.com/rvinformer/informer/tests/harness"
)

// quarter is the first half of half.
var quarter = informer.Shard{Key: informer.ShardByUID, End: 1 << 62}

// uids are those of the pods.
func uids(w *harness.World) map[string]string {
	objects, err := w.List(harness.Pods, "")
	require.NoError(w.T, err)
	uids := map[string]string{}
	for _, o := range objects {
		uids[harness.Key(o)] = string(o.GetUID())
	}
	return uids
}

// TestCheckpointOfAnotherShard begins with the checkpoint of another shard. What both shards have
// is known by it. A shard that the checkpoint has all of is not listed. The informer tells what is
// gone, and has a checkpoint of its own shard afterwards.
func TestCheckpointOfAnotherShard(t *testing.T) {
	for name, test := range map[string]struct {
		to    informer.Shard
		lists bool
	}{
		"a part":      {quarter, false},
		"all":         {informer.Shard{}, true},
		"overlapping": {informer.Shard{Key: informer.ShardByUID, Start: 1 << 62, End: 3 << 62}, true},
		"another key": {informer.Shard{Key: informer.ShardByNamespace, Start: 1 << 63}, true},
	} {
		harness.BubbleRun(t, name, informertest.Options{}, func(t *testing.T, w *harness.World) {
			for n := range 30 {
				w.CreatePods(fmt.Sprintf("a/%d", n), fmt.Sprintf("other/%d", n))
			}
			path := filepath.Join(t.TempDir(), "pods")
			run := func(of informer.Shard) (*harness.Recorder, informer.ResourceVersionInformer) {
				var r harness.Recorder
				i := harness.Follow(w, informer.InformerConfig{Handler: &r, Shard: of, Checkpoint: informer.FileCheckpoint(path)})
				stop := harness.Synced(i)
				synctest.Wait()
				stop()
				require.NoError(t, i.Status().CheckpointError)
				require.Equal(t, len(shardOf(w, harness.Pods, of)), i.Status().Objects)
				require.Equal(t, of, i.Status().Shard)
				return &r, i
			}
			first, _ := run(half)
			uids := uids(w)
			for n := range 10 {
				w.DeletePods(fmt.Sprintf("a/%d", n), fmt.Sprintf("other/%d", n))
			}
			w.ResetRequests()
			second, i := run(test.to)
			require.Equal(t, test.lists, len(w.Lists()) > 0)
			require.Equal(t, test.lists, i.Status().ResumedFrom == "")
			told := strings.NewReplacer(" initial", "", " unknown", "").Replace(strings.Join(second.Events(), "\n") + "\n")
			common := 0
			for k, uid := range uids {
				namespace, _, _ := strings.Cut(k, "/")
				_, exists := shardOf(w, harness.Pods, informer.Shard{})[k]
				wasIn, isIn := half.Includes(namespace, uid), test.to.Includes(namespace, uid)
				if wasIn && isIn {
					common++
					require.Contains(t, first.Events(), "add "+k+" initial")
				}
				require.Equal(t, wasIn && isIn && !exists, strings.Contains(told, "delete "+k+"\n"), k)
				require.Equal(t, !wasIn && isIn && exists, strings.Contains(told, "add "+k+"\n"), k)
			}
			require.Positive(t, common)
			_, third := run(test.to)
			require.NotEmpty(t, third.Status().ResumedFrom)
		})
	}
}

// TestCheckpointOfAWiderShardIsReplacedAtOnce resumes a part of a checkpoint. The new one has only
// that part, although nothing has changed.
func TestCheckpointOfAWiderShardIsReplacedAtOnce(t *testing.T) {
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		w.CreatePods(harness.Keys(60)...)
		s := w.Lived(&harness.Recorder{})
		i := harness.Running(w, informer.InformerConfig{Handler: &harness.Recorder{}, Shard: half, Checkpoint: s})
		time.Sleep(time.Second)
		require.NotEmpty(t, i.Status().ResumedFrom)
		saved := harness.ReadSaved(t, s.Bytes())
		require.Equal(t, half.String(), saved.Metadata["shard"])
		require.Len(t, saved.Versions, len(shardOf(w, harness.Pods, half)))
	})
}

// TestShardIsDividedByCopiesOfItsCheckpoint has two informers go on with the parts of a shard, from
// copies of its checkpoint, without a list.
func TestShardIsDividedByCopiesOfItsCheckpoint(t *testing.T) {
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		w.CreatePods(harness.Keys(60)...)
		path := filepath.Join(t.TempDir(), "pods")
		var whole harness.Recorder
		i := harness.Follow(w, informer.InformerConfig{Handler: &whole, Shard: half, Checkpoint: informer.FileCheckpoint(path)})
		stop := harness.Synced(i)
		stop()
		content, err := os.ReadFile(path)
		require.NoError(t, err)
		gone := shardOf(w, harness.Pods, half)
		w.DeletePods(harness.Keys(30)...)
		w.ResetRequests()

		parts := half.Split(2)
		handlers := make([]harness.Recorder, len(parts))
		for n, part := range parts {
			copied := fmt.Sprint(path, n)
			require.NoError(t, os.WriteFile(copied, content, 0o600))
			i := harness.Follow(w, informer.InformerConfig{Handler: &handlers[n], Shard: part, Checkpoint: informer.FileCheckpoint(copied)})
			defer harness.Synced(i)()
			synctest.Wait()
			require.Equal(t, len(shardOf(w, harness.Pods, part)), i.Status().Objects)
		}
		require.Empty(t, w.Lists())
		deleted := 0
		for _, k := range harness.Keys(30) {
			if _, had := gone[k]; had {
				deleted++
				require.NotEqual(t, slices.Contains(handlers[0].Events(), "delete "+k), slices.Contains(handlers[1].Events(), "delete "+k), "%s is deleted once", k)
			}
		}
		require.Positive(t, deleted)
	})
}

// TestListAfterACheckpointOfAPartIsNotOlder asks for no list that is older than the checkpoint of
// another shard, also where no object has its version.
func TestListAfterACheckpointOfAPartIsNotOlder(t *testing.T) {
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		w.CreatePods(harness.Keys(20)...)
		path := filepath.Join(t.TempDir(), "pods")
		i := harness.Follow(w, informer.InformerConfig{Handler: &harness.Recorder{}, Shard: half, Checkpoint: informer.FileCheckpoint(path)})
		stop := harness.Synced(i)
		w.DeletePods(harness.Keys(20)...)
		time.Sleep(time.Minute)
		stop()
		saved := i.Status().ResourceVersion
		require.NotEmpty(t, saved)
		w.ResetRequests()
		j := harness.Follow(w, informer.InformerConfig{Handler: &harness.Recorder{}, Checkpoint: informer.FileCheckpoint(path), ListMode: informer.ListModeFull})
		stop = harness.Start(j.RunWithContext)
		<-j.HasSyncedChecker().Done()
		stop()
		require.NotEmpty(t, w.Lists())
		require.Contains(t, w.Lists()[0], "rv="+saved)
	})
}

// TestInformerListsAfterAnotherShardHasUsedItsStorage runs an informer again whose Storage an
// informer of a part has used meanwhile, which has forgotten the rest: the informer lists, and its
// checkpoint has everything.
func TestInformerListsAfterAnotherShardHasUsedItsStorage(t *testing.T) {
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		w.CreatePods(harness.Keys(20)...)
		path := filepath.Join(t.TempDir(), "pods")
		storage := informer.NewResourceVersionStorage()
		i := harness.Follow(w, informer.InformerConfig{
			Handler: &harness.Recorder{}, Storage: storage, Checkpoint: informer.FileCheckpoint(path),
		})
		part := harness.Follow(w, informer.InformerConfig{Handler: &harness.Recorder{}, Storage: storage, Shard: half})
		for _, of := range []informer.ResourceVersionInformer{i, part} {
			stop := harness.Synced(of)
			synctest.Wait()
			stop()
		}
		require.Less(t, storage.Len(), 20)
		w.ResetRequests()
		stop := harness.Start(i.RunWithContext)
		time.Sleep(time.Minute)
		stop()
		require.NotEmpty(t, w.Lists())
		require.Equal(t, 20, storage.Len())

		next := harness.Follow(w, informer.InformerConfig{Handler: &harness.Recorder{}, Checkpoint: informer.FileCheckpoint(path)})
		defer harness.Synced(next)()
		require.NotEmpty(t, next.Status().ResumedFrom)
		require.Equal(t, 20, next.Status().Objects)
	})
}

// TestListDeletesNothingBeyondTheShard has a program add an object of another shard to the Storage
// of an informer that runs. A list does not show it, and it is not told deleted.
func TestListDeletesNothingBeyondTheShard(t *testing.T) {
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		w.CreatePods(harness.Keys(20)...)
		storage, r := informer.NewResourceVersionStorage(), &harness.Recorder{}
		i := harness.Follow(w, informer.InformerConfig{Handler: r, Storage: storage, Shard: half})
		defer harness.Synced(i)()
		objects, err := w.List(harness.Pods, "")
		require.NoError(t, err)
		for _, o := range objects {
			require.NoError(t, storage.Add(o))
		}
		w.ResetRequests()
		w.Down(func() {})
		require.NotEmpty(t, w.Lists())
		require.NotContains(t, strings.Join(r.Events(), "\n"), "delete")
		require.GreaterOrEqual(t, storage.Len(), 20)
	})
}
