package deltaqueue_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/tools/cache"

	"github.com/rvinformer/informer/internal/engine/deltaqueue"
)

func TestLookTellsWhatIsKnownAndWhatWaits(t *testing.T) {
	for _, everyChange := range []bool{false, true} {
		q, _ := newQueue(deltaqueue.Options{EveryChange: everyChange})
		require.Zero(t, q.Look("k"))
		put(t, q, delta(cache.Added, "other", "1"), delta(cache.Added, "k", "2"))
		require.Equal(t, deltaqueue.Look{Waits: true, Newest: version("2")}, q.Look("k"))
		q.Done(take(t, q))
		e := take(t, q)
		put(t, q, delta(cache.Updated, "k", "3"), delta(cache.Deleted, "k", "4"))
		require.Equal(t, deltaqueue.Look{Waits: true, Newest: version("4"), Deleted: true, Taken: true}, q.Look("k"))
		q.Done(e)
		l := q.Look("k")
		require.Equal(t, deltaqueue.Look{Known: version("2"), Exists: true, Waits: true, Newest: version("4"), Deleted: true}, l)
		e = take(t, q)
		q.Retry(e, 0)
		require.Equal(t, !everyChange, q.Look("k").Attempts == 1, "the next change of the key is tried together with it")
		for q.Look("k").Waits {
			q.Done(take(t, q))
		}
		require.Zero(t, q.Look("k"))
		put(t, q, delta(cache.Added, "k", "5"))
		q.Close()
		require.True(t, q.Look("k").Waits, "it has not been acknowledged")
	}
}

func TestLookTellsHowOftenTheOldestChangeHasFailed(t *testing.T) {
	q, _ := newQueue(deltaqueue.Options{EveryChange: true})
	put(t, q, delta(cache.Added, "k", "1"), delta(cache.Added, "l", "2"), delta(cache.Updated, "l", "3"))
	e := take(t, q)
	q.Retry(e, 0)
	require.Equal(t, 1, q.Look("k").Attempts)
	require.Equal(t, deltaqueue.Look{Waits: true, Newest: version("3")}, q.Look("l"))
}
