package deltaqueue_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/rvinformer/informer/internal/engine/deltaqueue"
	"github.com/rvinformer/informer/internal/leaf/keytable"
	"github.com/rvinformer/informer/internal/leaf/rv"
)

func takeBatch(t *testing.T, q *deltaqueue.Queue, most int) []*deltaqueue.Entry {
	t.Helper()
	batch, err := q.TakeBatch(t.Context(), nil, most)
	require.NoError(t, err)
	return batch
}

func keysOf(batch []*deltaqueue.Entry) (keys []string) {
	for _, e := range batch {
		keys = append(keys, e.Key)
	}
	return keys
}

func TestTakeBatch(t *testing.T) {
	q, _ := newQueue(deltaqueue.Options{})
	put(t, q, delta(cache.Added, "a", "1"), delta(cache.Added, "b", "2"), delta(cache.Added, "c", "3"), delta(cache.Updated, "a", "4"))
	first := takeBatch(t, q, 2)
	require.Equal(t, []string{"a", "b"}, keysOf(first))
	put(t, q, delta(cache.Updated, "b", "5"))
	require.Equal(t, []string{"c"}, keysOf(takeBatch(t, q, 9)), "b is with the consumer")
	q.Done(first[1])
	into := make([]*deltaqueue.Entry, 0, 4)
	batch, err := q.TakeBatch(t.Context(), into, 9)
	require.NoError(t, err)
	require.Equal(t, []string{"b"}, keysOf(batch))
	require.Same(t, &into[:1][0], &batch[0], "into is used")
}

func TestPostponeAfterAPanic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, _ := newQueue(deltaqueue.Options{})
		q.BeginGeneration()
		for _, key := range []string{"a", "b", "c"} {
			require.NoError(t, show(t.Context(), q, delta(cache.Replaced, key, "1")))
		}
		q.EndGeneration()
		q.Postpone(takeBatch(t, q, 3), time.Second, true)
		for _, key := range []string{"a", "b", "c"} {
			require.False(t, isClosed(q.Synced()))
			alone := takeBatch(t, q, 9)
			require.Equal(t, []string{key}, keysOf(alone))
			require.Equal(t, 1, alone[0].Panics)
			if key == "b" {
				q.Drop(alone[0])
			} else {
				q.Done(alone[0])
			}
		}
		require.True(t, isClosed(q.Synced()), "what is given up is not waited for")
	})
}

// An initial entry that failed holds up what waits for the first generation, however
// new it is, until it is acknowledged.
func TestSyncedWaitsForWhatIsPostponed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, _ := newQueue(deltaqueue.Options{})
		q.BeginGeneration()
		require.NoError(t, show(t.Context(), q, delta(cache.Replaced, "k", "1")))
		e := take(t, q)
		require.NoError(t, show(t.Context(), q, delta(cache.Replaced, "k", "2")))
		q.Postpone([]*deltaqueue.Entry{e}, time.Second, false)
		q.EndGeneration()
		put(t, q, delta(cache.Updated, "k", "3"))
		e = take(t, q)
		require.True(t, e.Initial)
		require.False(t, isClosed(q.Synced()))
		q.Done(e)
		require.True(t, isClosed(q.Synced()))
	})
}

// The end of an object is acknowledged before what came after it.
func TestAdvance(t *testing.T) {
	of := func(d deltaqueue.Delta, uid string) deltaqueue.Delta {
		d.Version.UID = types.UID(uid)
		return d
	}
	gone, next := delta(cache.Deleted, "k", "2"), of(delta(cache.Added, "k", "3"), "other")
	for name, test := range map[string]struct {
		came, done, left []deltaqueue.Delta
		meanwhile        []deltaqueue.Delta
	}{
		"a deletion and an object": {
			came: []deltaqueue.Delta{gone, next}, done: []deltaqueue.Delta{gone}, left: []deltaqueue.Delta{next},
		},
		"another object": {
			came: []deltaqueue.Delta{next}, left: []deltaqueue.Delta{next},
		},
		"another object that is gone again": {
			came: []deltaqueue.Delta{gone, next}, done: []deltaqueue.Delta{gone},
			meanwhile: []deltaqueue.Delta{of(delta(cache.Deleted, "k", "4"), "other")}, left: []deltaqueue.Delta{of(delta(cache.Deleted, "k", "4"), "other")},
		},
	} {
		t.Run(name, func(t *testing.T) {
			q, known := newQueue(deltaqueue.Options{Resume: "1"})
			known.Set("k", version("1"), 0)
			put(t, q, test.came...)
			q.Observed(rv.At("3"), 0)
			e := take(t, q)
			put(t, q, test.meanwhile...)
			require.Equal(t, test.done, q.Advance(e))
			_, exists := known.Get("k")
			require.False(t, exists)
			require.Equal(t, "1", q.ResumePoint(), "not all of it is acknowledged")
			entries, bytes := q.Len()
			require.Equal(t, 1, entries)
			require.EqualValues(t, 1, bytes)
			e = take(t, q)
			require.Equal(t, test.left, e.Deltas)
			for _, beyond := range e.Deltas[len(e.Deltas):cap(e.Deltas)] {
				require.Nil(t, beyond.Object, "the array holds an object that no one needs")
			}
			q.Done(e)
			require.Equal(t, "3", q.ResumePoint())
			entries, bytes = q.Len()
			require.Zero(t, entries)
			require.Zero(t, bytes)
		})
	}
}

// What has failed is no longer counted once the end of it is acknowledged.
func TestAdvanceBeginsAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, _ := newQueue(deltaqueue.Options{})
		put(t, q, delta(cache.Deleted, "k", "2"), delta(cache.Added, "k", "3"))
		q.Postpone(takeBatch(t, q, 1), time.Second, true)
		q.Advance(take(t, q))
		put(t, q, delta(cache.Added, "other", "4"))
		batch := takeBatch(t, q, 9)
		require.Equal(t, []string{"k", "other"}, keysOf(batch), "with others")
		require.Zero(t, batch[0].Attempts)
		require.Zero(t, batch[0].Panics)
	})
}

// Two entries of a key that become one make room.
func TestPostponeMakesRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, _ := newQueue(deltaqueue.Options{Limit: 2})
		put(t, q, delta(cache.Added, "a", "1"))
		batch := takeBatch(t, q, 1)
		put(t, q, delta(cache.Updated, "a", "2"))
		done := make(chan error, 1)
		go func() { done <- q.Put(t.Context(), delta(cache.Added, "b", "3")) }()
		synctest.Wait()
		require.Empty(t, done)
		q.Postpone(batch, time.Hour, false)
		synctest.Wait()
		require.Len(t, done, 1)
	})
}

// What came before an object that cannot be read is acknowledged, and nothing waits
// for that object.
func TestSkip(t *testing.T) {
	q, known := newQueue(deltaqueue.Options{Resume: "1"})
	known.Set("replaced", version("1"), 0)
	known.Set("updated", version("1"), 0)
	put(t, q, delta(cache.Deleted, "replaced", "2"), delta(cache.Added, "replaced", "3"), delta(cache.Updated, "updated", "4"))
	q.Observed(rv.At("4"), 0)
	var lost []string
	for _, e := range takeBatch(t, q, 2) {
		q.Skip(e, func() { lost = append(lost, e.Key) })
	}
	require.Equal(t, []string{"replaced", "updated"}, lost)
	_, exists := known.Get("replaced")
	require.False(t, exists)
	stays, _ := known.Get("updated")
	require.Equal(t, version("1"), stays)
	require.Equal(t, "4", q.ResumePoint())
}

// A change that a watch tells during a generation keeps the key from its sweep, also
// where it is merged into what was taken before.
func TestWhatIsGivenBackDuringAGeneration(t *testing.T) {
	for name, giveBack := range map[string]func(q *deltaqueue.Queue, e *deltaqueue.Entry){
		"retried":   func(q *deltaqueue.Queue, e *deltaqueue.Entry) { q.Retry(e, time.Hour) },
		"postponed": func(q *deltaqueue.Queue, e *deltaqueue.Entry) { q.Postpone([]*deltaqueue.Entry{e}, time.Hour, false) },
		"advanced":  func(q *deltaqueue.Queue, e *deltaqueue.Entry) { q.Advance(e) },
	} {
		t.Run(name, func(t *testing.T) {
			q, _ := newQueue(deltaqueue.Options{})
			put(t, q, delta(cache.Deleted, "k", "1"), delta(cache.Added, "k", "2"))
			e := take(t, q)
			q.BeginGeneration()
			put(t, q, delta(cache.Updated, "k", "3"))
			giveBack(q, e)
			require.NoError(t, q.Sweep(t.Context(), func(key string, _ keytable.Version) { t.Errorf("%s is swept", key) }))
		})
	}
}

// What comes for a key of the first generation while it is taken is waited for, also
// where the entry itself counts as returned.
func TestSyncedWaitsForWhatCameMeanwhile(t *testing.T) {
	q, _ := newQueue(deltaqueue.Options{})
	q.BeginGeneration()
	require.NoError(t, show(t.Context(), q, delta(cache.Replaced, "k", "1")))
	e := take(t, q)
	require.NoError(t, show(t.Context(), q, delta(cache.Replaced, "k", "2")))
	q.Retry(e, time.Hour)
	q.EndGeneration()
	require.False(t, isClosed(q.Synced()))
	q.Done(take(t, q))
	require.True(t, isClosed(q.Synced()))
}

// A consumer waits for parked entries, also where the last one ended its goroutine.
func TestLeaveWhileSomethingIsParked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		hired := 0
		q, _ := newQueue(deltaqueue.Options{Hire: func() { hired++ }})
		put(t, q, delta(cache.Added, "k", "1"))
		require.Equal(t, 1, hired)
		e, err := q.Take(ctx)
		require.NoError(t, err)
		q.Postpone([]*deltaqueue.Entry{e}, time.Second, false)
		q.Leave()
		require.Equal(t, 2, hired)
		_, err = q.Take(ctx)
		require.NoError(t, err)
	})
}

// Entries that were delayed at different moments are taken together when they are due, and with no
// others.
func TestDelayedEntriesComeTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, _ := newQueue(deltaqueue.Options{})
		put(t, q, delta(cache.Added, "a", "1"), delta(cache.Added, "b", "2"), delta(cache.Added, "c", "3"))
		q.Delay(takeBatch(t, q, 2), 2*time.Second)
		time.Sleep(time.Second)
		q.Delay(takeBatch(t, q, 1), time.Second)
		put(t, q, delta(cache.Updated, "a", "4"), delta(cache.Added, "d", "5"))
		require.Equal(t, []string{"d"}, keysOf(takeBatch(t, q, 9)), "the others wait, whatever comes")
		time.Sleep(time.Minute)
		delayed := takeBatch(t, q, 9)
		require.Equal(t, []string{"a", "b", "c"}, keysOf(delayed))
		require.Equal(t, "4", delayed[0].Version.ResourceVersion)
		require.Equal(t, 1, delayed[0].Attempts)
	})
}
