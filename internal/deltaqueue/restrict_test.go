package deltaqueue_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/tools/cache"

	"github.com/rvinformer/informer/internal/deltaqueue"
	"github.com/rvinformer/informer/internal/keytable"
	"github.com/rvinformer/informer/internal/shard"
)

// A consumer may have what is known without a UID, so its end is told, also after a failure. Which shard it is of is not known.
func TestDeletionWithoutUIDIsTriedAgain(t *testing.T) {
	giveBack := map[string]func(*deltaqueue.Queue, *deltaqueue.Entry){
		"retry":    func(q *deltaqueue.Queue, e *deltaqueue.Entry) { q.Retry(e, time.Second) },
		"postpone": func(q *deltaqueue.Queue, e *deltaqueue.Entry) { q.Postpone([]*deltaqueue.Entry{e}, time.Second, false) },
	}
	for name, fail := range giveBack {
		for _, known := range []keytable.Version{{}, {ResourceVersion: "1"}} {
			for n, s := range (shard.Shard{Key: shard.ByUID}).Split(2) { // the hash of no UID is in one of them
				t.Run(name, func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						var extent shard.Extent
						extent.Change(s)
						q, table := newQueue(deltaqueue.Options{Extent: &extent})
						table.Set("a/b", known, table.Begin())
						q.BeginGeneration()
						require.NoError(t, q.Sweep(t.Context(), func(string, keytable.Version) {}))
						extent.Resume(s)
						q.Listed("5")
						q.EndGeneration()
						fail(q, take(t, q))
						entries, _ := q.Len()
						require.Equal(t, 1, entries, "shard %d", n)
						e := take(t, q)
						require.Equal(t, cache.Deleted, e.Deltas[0].Type)
						q.Done(e)
						require.Zero(t, table.Len())
					})
				})
			}
		}
	}
}

// Dropped, it is told again by the next generation.
func TestDeletionWithoutUIDIsDropped(t *testing.T) {
	for _, s := range (shard.Shard{Key: shard.ByUID}).Split(2) {
		var extent shard.Extent
		extent.Change(s)
		q, table := newQueue(deltaqueue.Options{Extent: &extent})
		table.Set("a/b", keytable.Version{}, table.Begin())
		for range 2 {
			q.BeginGeneration()
			require.NoError(t, q.Sweep(t.Context(), func(string, keytable.Version) {}))
			q.EndGeneration()
			q.Drop(take(t, q))
			require.Equal(t, 1, table.Len())
		}
	}
}
