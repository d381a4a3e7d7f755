package deltaqueue_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/tools/cache"

	"github.com/rvinformer/informer/api"
	"github.com/rvinformer/informer/internal/engine/deltaqueue"
	"github.com/rvinformer/informer/internal/engine/known"
	"github.com/rvinformer/informer/internal/leaf/keytable"
	"github.com/rvinformer/informer/internal/leaf/rv"
)

// newRefusingQueue returns a queue that goes on from a version, and what its consumer has.
func newRefusingQueue(resume string) (*deltaqueue.Queue, *known.Versions) {
	v := &known.Versions{}
	return deltaqueue.New(deltaqueue.Options{Known: v, Resume: resume}), v
}

// bury has the consumer refuse the next entry for good.
func bury(t *testing.T, q *deltaqueue.Queue, v *known.Versions) {
	t.Helper()
	e := take(t, q)
	v.Settle(e.Key, false)
	_, ok := v.Bury(api.DeadLetter{Key: e.Key, ResourceVersion: e.Version.ResourceVersion}, 10)
	require.True(t, ok)
	q.Drop(e)
}

// An event that is older than what the consumer has refused is stale, and one that is newer is not.
// Neither is one in just the version that was refused.
func TestOlderThanRefusedIsStale(t *testing.T) {
	q, v := newRefusingQueue("5")
	v.Set("k", version("5"), 0)
	put(t, q, delta(cache.Updated, "k", "7"), delta(cache.Updated, "k", "8"))
	q.Observed(rv.At("8"), 0)
	bury(t, q, v)
	stale := func(change cache.DeltaType, rv string) bool { return q.Stale(delta(change, "k", rv)) }
	require.True(t, stale(cache.Updated, "7"))
	require.True(t, stale(cache.Deleted, "7"))
	require.False(t, stale(cache.Updated, "8"))
	require.False(t, stale(cache.Updated, "9"))
	require.False(t, stale(cache.Updated, "opaque"))
	require.True(t, stale(cache.Updated, "5"), "known")

	put(t, q, delta(cache.Deleted, "k", "9"))
	q.Observed(rv.At("9"), 0)
	bury(t, q, v)
	require.True(t, stale(cache.Updated, "8"))
	another := deltaqueue.Delta{Type: cache.Added, Key: "k", Version: keytable.Version{ResourceVersion: "10", UID: "another"}}
	require.False(t, q.Stale(another))

	put(t, q, another)
	q.Observed(rv.At("10"), 0)
	e := take(t, q)
	v.Settle("k", true)
	q.Done(e)
	require.True(t, stale(cache.Updated, "9"), "known")
	require.False(t, stale(cache.Updated, "11"))
}

// A state that cannot be read takes the place of one that the consumer has failed for: what is older
// is stale.
func TestOlderThanSkippedIsStale(t *testing.T) {
	q, v := newRefusingQueue("5")
	put(t, q, delta(cache.Added, "k", "8"))
	e := take(t, q)
	v.Settle("k", false)
	q.Postpone([]*deltaqueue.Entry{e}, 0, false)
	put(t, q, delta(cache.Updated, "k", "9"))
	q.Observed(rv.At("9"), 0)
	q.Skip(take(t, q), func() {})
	require.True(t, q.Stale(delta(cache.Added, "k", "7")))
	require.False(t, q.Stale(delta(cache.Updated, "k", "10")))

	put(t, q, delta(cache.Added, "other", "10"))
	q.Observed(rv.At("10"), 0)
	q.Skip(take(t, q), func() {})
	require.False(t, q.Stale(delta(cache.Added, "other", "8")), "the consumer was given nothing")
}

// After the server went back, what was refused before is not compared with what it tells.
func TestRefusedBeforeTheServerWentBack(t *testing.T) {
	q, v := newRefusingQueue("5")
	put(t, q, delta(cache.Added, "k", "8"))
	q.Observed(rv.At("8"), 0)
	bury(t, q, v)
	q.BeginGeneration()
	require.False(t, shown(q, "k", version("6")))
	q.Listed("6") // what was shown could not be read, so that nothing was put
	q.EndGeneration()
	require.False(t, q.Stale(delta(cache.Updated, "k", "7")))
	q.Observed(rv.At("9"), 0)
	require.True(t, q.Stale(delta(cache.Updated, "k", "7")))
}

// A proxy repeats the events of a watch-list. An event that is older than a state which the consumer
// refused in the same generation is stale. A state that was refused in another generation does not
// count.
func TestOlderThanRefusedOfAGeneration(t *testing.T) {
	q, v := newRefusingQueue("")
	q.BeginGeneration()
	require.NoError(t, show(t.Context(), q, delta(cache.Replaced, "k", "7")))
	require.NoError(t, show(t.Context(), q, delta(cache.Replaced, "k", "8")))
	bury(t, q, v)
	require.True(t, shown(q, "k", version("7")))
	require.False(t, shown(q, "k", version("8")))
	require.False(t, shown(q, "k", version("9")))
	require.True(t, q.Stale(delta(cache.Updated, "k", "7")))
	q.BeginGeneration()
	require.False(t, shown(q, "k", version("7")))
}

// A generation that shows an object again, which the consumer has refused, shows no other object of its
// key, although what is known is the one before it.
func TestRefusedObjectThatIsShownAgainIsNoOther(t *testing.T) {
	q, v := newRefusingQueue("")
	v.Set("k", keytable.Version{ResourceVersion: "5", UID: "before"}, 0)
	q.BeginGeneration()
	now := keytable.Version{ResourceVersion: "8", UID: "now"}
	done, other := q.Shown("k", now)
	require.False(t, done)
	require.Empty(t, other)
	put(t, q, deltaqueue.Delta{Type: cache.Replaced, Key: "k", Version: now})
	bury(t, q, v)
	for _, version := range []keytable.Version{now, {ResourceVersion: "9", UID: "now"}} {
		_, other = q.Shown("k", version)
		require.Empty(t, other)
	}
}
