package objectcache_test

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/sharding"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/informertest"
	"github.com/rvinformer/informer/objectcache"
)

// selectorOf is a shard as client-go writes it.
func selectorOf(s informer.Shard) sharding.Selector {
	end := "0x10000000000000000"
	if s.End != 0 {
		end = fmt.Sprintf("0x%016x", s.End)
	}
	return sharding.NewSelector(sharding.ShardRangeRequirement{Key: string(s.Key), Start: fmt.Sprintf("0x%016x", s.Start), End: end})
}

// keysIn returns the keys of the server's pods that are in a shard.
func (w *world) keysIn(s informer.Shard) (keys []string) {
	w.t.Helper()
	all, err := w.List(pods, "")
	require.NoError(w.t, err)
	for _, pod := range all {
		if s.Includes(pod.GetNamespace(), string(pod.GetUID())) {
			keys = append(keys, pod.GetNamespace()+"/"+pod.GetName())
		}
	}
	slices.Sort(keys)
	return keys
}

func keysOf(i *objectcache.Informer) []string {
	keys := i.GetStore().ListKeys()
	slices.Sort(keys)
	return keys
}

// Informers of two halves have each object once between them, whether the server divides the set or
// not, and whether the ListerWatcher is the library's or another one.
func TestShardHasOnlyItsObjects(t *testing.T) {
	for _, divides := range []bool{false, true} {
		for _, decodes := range []bool{false, true} {
			for _, bySelector := range []bool{false, true} {
				name := fmt.Sprintf("the server divides: %v, foreign: %v, by selector: %v", divides, decodes, bySelector)
				bubbleRun(t, name, informertest.Options{ShardedListAndWatch: divides}, func(t *testing.T, w *world) {
					for n := range 20 {
						w.create(fmt.Sprint("a/", n))
					}
					var halves []*objectcache.Informer
					var tolds []*told
					shards := informer.Shard{}.Split(2)
					for _, shard := range shards {
						lw := w.lister()
						if decodes {
							lw = decoding{lw}
						}
						var opts objectcache.Options
						if !bySelector {
							opts.Shard = shard
						}
						i := newInformer(lw, nil, opts)
						if bySelector {
							require.NoError(t, i.SetShardSelector(selectorOf(shard)))
						}
						h, _ := handle(t, i)
						defer w.run(i)()
						require.EqualError(t, i.SetShardSelector(nil), "informer has already started")
						require.Equal(t, shard, i.Status().Shard)
						halves, tolds = append(halves, i), append(tolds, h)
					}
					for k, i := range halves {
						require.Equal(t, w.keysIn(shards[k]), keysOf(i))
						require.Len(t, tolds[k].take(), len(keysOf(i)))
					}
					for n := range 10 {
						w.update(fmt.Sprint("a/", n), "x")
						w.remove(fmt.Sprint("a/", 10+n))
						w.create(fmt.Sprint("a/", 20+n))
					}
					synctest.Wait()
					w.CloseClientConnections()
					sleep(time.Minute)
					calls := 0
					for k, i := range halves {
						require.Equal(t, w.keysIn(shards[k]), keysOf(i))
						calls += len(tolds[k].take())
					}
					require.Equal(t, 30, calls, "each change was delivered by one of them")
				})
			}
		}
	}
}

// A Get of an object outside the shard finds nothing, as in client-go.
func TestObjectOutsideShardIsNotFound(t *testing.T) {
	bubble(t, informertest.Options{}, func(t *testing.T, w *world) {
		w.create("a/1", "a/2", "b/1")
		all := informer.Shard{Key: informer.ShardByNamespace}.Split(2)
		inFirst := slices.IndexFunc(all, func(s informer.Shard) bool { return s.Includes("a", "") })
		i := newInformer(w.lister(), &corev1.Pod{}, objectcache.Options{Shard: all[inFirst]})
		defer w.run(i)()
		_, exists, err := i.GetStore().GetByKey("a/1")
		require.NoError(t, err)
		require.True(t, exists)
		require.Equal(t, w.keysIn(all[inFirst]), keysOf(i))
		report, err := i.Audit(t.Context(), informer.AuditOptions{})
		require.NoError(t, err)
		require.Zero(t, report.Differences())
	})
}

// A snapshot of a shard serves that shard. One that follows more, or less, lists everything.
func TestSnapshotOfAnotherShardIsNotUsed(t *testing.T) {
	halves := informer.Shard{}.Split(2)
	for name, c := range map[string]struct {
		saved, next informer.Shard
		uses        bool
	}{
		"the same":       {halves[0], halves[0], true},
		"all, then half": {informer.Shard{}, halves[0], false},
		"half, then all": {halves[0], informer.Shard{}, false},
	} {
		bubbleRun(t, name, informertest.Options{}, func(t *testing.T, w *world) {
			for n := range 20 {
				w.create(fmt.Sprint("a/", n))
			}
			store := informer.FileCheckpoint(t.TempDir() + "/snapshot")
			i := newInformer(w.lister(), &corev1.Pod{}, objectcache.Options{Snapshot: store, Shard: c.saved})
			w.run(i)()
			require.Equal(t, w.keysIn(c.saved), keysOf(i))
			w.remove(w.keysIn(halves[0])[0])

			next := newInformer(w.lister(), &corev1.Pod{}, objectcache.Options{Snapshot: store, Shard: c.next})
			defer w.run(next)()
			sleep(time.Minute)
			require.Equal(t, w.keysIn(c.next), keysOf(next))
			require.Equal(t, c.uses, next.Status().ResumedFrom != "")
		})
	}
}

// A snapshot of other objects is another informer's, as a checkpoint is.
func TestSnapshotOfOtherHalfWaits(t *testing.T) {
	bubble(t, informertest.Options{}, func(t *testing.T, w *world) {
		for n := range 20 {
			w.create(fmt.Sprint("a/", n))
		}
		halves := informer.Shard{}.Split(2)
		store := informer.FileCheckpoint(t.TempDir() + "/snapshot")
		w.run(newInformer(w.lister(), &corev1.Pod{}, objectcache.Options{Snapshot: store, Shard: halves[0]}))()

		other := newInformer(w.lister(), &corev1.Pod{}, objectcache.Options{Snapshot: store, Shard: halves[1]})
		stop := w.run(other)
		sleep(time.Hour)
		require.False(t, other.HasSynced())
		var foreign *informer.CheckpointSourceError
		require.ErrorAs(t, other.Status().CheckpointError, &foreign)
		stop()

		anew := newInformer(w.lister(), &corev1.Pod{}, objectcache.Options{Snapshot: store, Shard: halves[1], BeginAnew: true})
		defer w.run(anew)()
		sleep(time.Minute)
		require.Equal(t, w.keysIn(halves[1]), keysOf(anew))
	})
}

func TestSelectorThatIsNoShardIsRefused(t *testing.T) {
	bubble(t, informertest.Options{}, func(t *testing.T, w *world) {
		quarters := informer.Shard{}.Split(4)
		of := func(shards ...informer.Shard) sharding.Selector {
			var all []sharding.ShardRangeRequirement
			for _, s := range shards {
				all = append(all, selectorOf(s).Requirements()...)
			}
			return sharding.NewSelector(all...)
		}
		i := newInformer(w.lister(), &corev1.Pod{}, objectcache.Options{Shard: quarters[3]})
		require.ErrorContains(t, i.SetShardSelector(of(quarters[0], quarters[2])), "ranges that do not meet")
		require.ErrorContains(t, i.SetShardSelector(of(quarters[0], informer.Shard{Key: informer.ShardByNamespace}.Split(4)[1])), "two keys")
		require.ErrorContains(t, i.SetShardSelector(of(informer.Shard{Key: "object.metadata.name", End: 1})), "shard key")
		require.Equal(t, quarters[3], i.Status().Shard)
		require.NoError(t, i.SetShardSelector(of(quarters[2], quarters[0], quarters[1])))
		require.Equal(t, informer.Shard{Key: informer.ShardByUID, End: quarters[3].Start}, i.Status().Shard)
		require.NoError(t, i.SetShardSelector(of(quarters...)))
		require.Equal(t, informer.Shard{}, i.Status().Shard)
		require.NoError(t, i.SetShardSelector(of(quarters[1])))
		require.NoError(t, i.SetShardSelector(sharding.Everything()))
		require.Equal(t, informer.Shard{}, i.Status().Shard)
		require.ErrorContains(t, objectcache.Options{Shard: informer.Shard{End: 1}}.Check(nil), "needs a key")
	})
}
