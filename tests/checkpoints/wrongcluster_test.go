package checkpoints_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/ktesting"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/informertest"
	"github.com/rvinformer/informer/tests/harness"
)

// another makes the second cluster one without the names of the first. It has its objects since
// before the checkpoint of the first, which has come as far as the pods of behind.
func (c *twoClusters) another(behind ...string) {
	c.second.DeletePods(harness.Keys(20)...)
	fresh := informertest.NewServer(informertest.Options{InMemory: true, Wrap: func(h http.Handler) http.Handler {
		c.handler = h
		return h
	}})
	c.T.Cleanup(fresh.Close)
	c.second = &harness.World{T: c.T, Server: fresh}
	c.second.CreatePods("other/1", "other/2")
	c.CreatePods(behind...)
}

// further has the second cluster come further than the first.
func (c *twoClusters) further() {
	for range 20 {
		c.second.UpdatePod("other/2", c.second.ResourceVersion())
	}
}

// Where none of the known names exists, and kube-system is forbidden, the objects that the checkpoint
// would have tell that it is of another cluster.
func TestCheckpointOfAnotherClusterIsRecognizedByTheObjectsItLacks(t *testing.T) {
	for _, further := range []bool{true, false} {
		for _, mode := range []informer.ListMode{informer.ListModePaged, informer.ListModeWatchList} {
			t.Run(fmt.Sprintf("%v, further %v", mode, further), func(t *testing.T) {
				inTwoClusters(t, true, func(t *testing.T, c *twoClusters) {
					c.another("a/more", "a/and", "a/still")
					s := c.Lived(&harness.Recorder{})
					before := s.Bytes()
					if further {
						c.further()
					}
					c.replace()
					r := &harness.Recorder{}
					i := harness.Follow(c.World, informer.InformerConfig{Handler: r, Checkpoint: s, ListMode: mode})
					stop := c.Run(i)
					harness.Sleep(10 * time.Minute)
					harness.RequireAwaited(t, i, informer.ErrCheckpointSource)
					require.ErrorContains(t, i.Status().CheckpointError, "one without other/1 in version")
					require.Empty(t, r.Events())
					require.Zero(t, c.Watching.Load())
					stop()
					require.Equal(t, before, s.Bytes(), "it is another's")
					require.Less(t, len(c.second.Requests()), 200)

					// Back at the right cluster, it goes on.
					c.UpdatePod("a/0001", "changed")
					c.replaced.Store(false)
					c.CloseClientConnections()
					c.ResetRequests()
					c.Run(harness.Follow(c.World, informer.InformerConfig{Handler: r, Checkpoint: s, ListMode: mode}))
					harness.Sleep(time.Minute)
					require.Equal(t, []string{"update a/0001"}, r.Events())
				})
			})
		}
	}
}

func TestBeginAnewAfterObjectsThatTheCheckpointLacks(t *testing.T) {
	inTwoClusters(t, true, func(t *testing.T, c *twoClusters) {
		c.another()
		s := c.Lived(&harness.Recorder{})
		c.further()
		c.replace()
		r := &harness.Recorder{}
		i := harness.Follow(c.World, informer.InformerConfig{Handler: r, Checkpoint: s, BeginAnew: true})
		stop := c.Run(i)
		harness.Sleep(time.Minute)
		require.True(t, i.HasSynced())
		c.second.RequireState(r)
		stop()
		c.second.RequireSaved(s)
	})
}

// One object that the checkpoint has shows that the cluster is the same, whatever else is there.
func TestCheckpointIsUsedWhereOneKnownObjectIsLeft(t *testing.T) {
	inTwoClusters(t, true, func(t *testing.T, c *twoClusters) {
		c.CreatePods("b/stays")
		r := &harness.Recorder{}
		s := c.Lived(r)
		c.DeletePods(harness.Keys(3)...)
		c.CreatePods("a/new")
		i := harness.Follow(c.World, informer.InformerConfig{Handler: r, Checkpoint: s})
		c.Run(i)
		harness.Sleep(time.Minute)
		require.True(t, i.HasSynced())
		c.RequireState(r)
		c.RequireSaved(s)
	})
}

// What the handler has refused is no stranger, though the checkpoint does not have it among what it
// has taken in.
func TestDeadLetterIsNoSignOfAnotherCluster(t *testing.T) {
	inTwoClusters(t, true, func(t *testing.T, c *twoClusters) {
		c.CreatePods("b/refused")
		b := harness.Batches{Fail: refusingKeys(always, "b/refused")}
		config := informer.InformerConfig{BatchHandler: &b, Checkpoint: &harness.MemoryCheckpoint{}, MaxAttempts: 1}
		i := harness.Follow(c.World, config)
		c.RunFor(i, time.Minute)
		require.Len(t, i.DeadLetters(), 1)
		c.DeletePods(harness.Keys(3)...)
		i = harness.Follow(c.World, config)
		c.Run(i)
		harness.Sleep(time.Minute)
		require.NoError(t, i.Status().CheckpointError)
		require.True(t, i.HasSynced())
	})
}

// A checkpoint of a shard does not have the objects of the others.
func TestObjectsOfOtherShardsAreNoSignOfAnotherCluster(t *testing.T) {
	inTwoClusters(t, true, func(t *testing.T, c *twoClusters) {
		halves := informer.Shard{Key: informer.ShardByUID}.Split(2)
		c.CreatePods(harness.Keys(30)[3:]...)
		r, s := &harness.Recorder{}, &harness.MemoryCheckpoint{}
		c.RunFor(harness.Follow(c.World, informer.InformerConfig{Handler: r, Checkpoint: s, Shard: halves[0]}), time.Minute)
		require.NotEmpty(t, r.State())
		for key := range r.State() {
			c.DeletePods(key)
		}
		i := harness.Follow(c.World, informer.InformerConfig{Handler: r, Checkpoint: s, Shard: halves[0]})
		c.Run(i)
		harness.Sleep(time.Minute)
		require.NoError(t, i.Status().CheckpointError)
		require.True(t, i.HasSynced())
		require.Empty(t, r.State())
	})
}

// Nothing is delivered before the question is settled, also where its answer takes time.
func TestCheckpointWaitsForTheAnswerThatTellsTheCluster(t *testing.T) {
	inTwoClusters(t, true, func(t *testing.T, c *twoClusters) {
		c.another()
		s := c.Lived(&harness.Recorder{})
		c.further()
		var down atomic.Bool
		down.Store(true)
		c.handler = harness.Refusing(http.StatusServiceUnavailable, func(r *http.Request) bool {
			return down.Load() && strings.HasSuffix(r.URL.Path, "/pods") && !harness.IsWatch(r)
		})(c.handler)
		c.replace()
		r := &harness.Recorder{}
		i := harness.Follow(c.World, informer.InformerConfig{Handler: r, Checkpoint: s})
		c.Run(i)
		harness.Sleep(time.Minute)
		require.Error(t, i.Status().CheckpointError)
		require.Empty(t, r.Events())
		require.Zero(t, c.Watching.Load())
		down.Store(false)
		harness.Sleep(5 * time.Minute)
		harness.RequireAwaited(t, i, informer.ErrCheckpointSource)
		require.Empty(t, r.Events())
	})
}

// A server that was restored from a backup has other objects than the checkpoint in versions that are
// not newer, and known ones beside them.
func TestRestoredServerIsNoOtherCluster(t *testing.T) {
	inTwoClusters(t, true, func(t *testing.T, c *twoClusters) {
		c.CreatePods("b/stays", "b/goes")
		backup := c.Backup()
		c.DeletePods(append(harness.Keys(3), "b/goes")...)
		c.CreatePods("a/later-1", "a/later-2", "a/later-3")
		r := &harness.Recorder{}
		s := c.Lived(r)
		c.Restore(backup)
		c.DeletePods(harness.Keys(3)...)
		c.CreatePods("a/again-1", "a/again-2")
		i := harness.Follow(c.World, informer.InformerConfig{Handler: r, Checkpoint: s})
		c.Run(i)
		harness.Sleep(5 * time.Minute)
		require.NoError(t, i.Status().CheckpointError)
		require.True(t, i.HasSynced())
		c.RequireState(r)
	})
}

// The answer to the question whether a cluster is that of the checkpoint is quoted in no error, and
// not in the log, where it may have Secrets.
func TestQuestionAboutTheClusterQuotesNoSecrets(t *testing.T) {
	const planted = "hunter2"
	quoted := func(t *testing.T, resource schema.GroupVersionResource, kind string) (said string) {
		inTwoClusters(t, true, func(t *testing.T, c *twoClusters) {
			put := func(w *harness.World, keys ...string) {
				for _, key := range keys {
					object := harness.Object(resource, key, "created")
					object.SetKind(kind)
					_, err := w.Create(resource, object)
					require.NoError(t, err)
				}
			}
			c.another()
			put(c.World, "b/1", "b/2")
			put(c.second, "c/1")
			var f harness.Failures
			config := informer.InformerConfig{
				ListerWatcher: c.Factory().ForResource("", resource), Handler: &harness.Recorder{}, ErrorHandler: f.Handle, Checkpoint: &harness.MemoryCheckpoint{},
			}
			c.RunFor(harness.Follow(c.World, config), time.Minute)
			c.further()
			var compared atomic.Bool
			c.handler = harness.Before(func(w http.ResponseWriter, r *http.Request) bool {
				if r.URL.Query().Get("limit") != "500" || !strings.Contains(r.Header.Get("Accept"), "PartialObjectMetadataList") {
					return true
				}
				compared.Store(true)
				w.Header().Set("Content-Type", "application/json")
				_, _ = io.WriteString(w, planted)
				return false
			})(c.handler)
			c.replace()
			log := ktesting.NewLogger(ktesting.NopTL{}, ktesting.NewConfig(ktesting.BufferLogs(true), ktesting.Verbosity(9)))
			i := harness.Follow(c.World, config)
			stop := harness.Start(func(ctx context.Context) { i.RunWithContext(klog.NewContext(ctx, log)) })
			harness.Sleep(5 * time.Minute)
			status := i.Status()
			stop()
			require.True(t, compared.Load())
			require.ErrorContains(t, status.CheckpointError, "objects of the server, to compare")
			logged := log.GetSink().(ktesting.Underlier).GetBuffer().String()
			require.Contains(t, logged, "objects of the server, to compare")
			said = fmt.Sprintf("%v\n%+v\n%s", errors.Join(f.Errors()...), status, logged)
		})
		return said
	}
	require.Contains(t, quoted(t, harness.Pods, "Pod"), planted)
	require.NotContains(t, quoted(t, schema.GroupVersionResource{Version: "v1", Resource: "secrets"}, "Secret"), planted)
}
