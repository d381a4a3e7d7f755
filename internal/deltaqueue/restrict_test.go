package deltaqueue_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/rvinformer/informer/internal/deltaqueue"
	"github.com/rvinformer/informer/internal/keytable"
	"github.com/rvinformer/informer/internal/known"
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
						beginList(t, &extent)
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

func beginList(t *testing.T, x *shard.Extent) {
	_, number := x.Shard()
	require.True(t, x.Begin(number))
}

// A list does not show what comes to the shard while it is read, such as an object of which the consumer is just told.
func TestListSweepsNothingThatCameMeanwhile(t *testing.T) {
	halves := (shard.Shard{Key: shard.ByUID}).Split(2)
	for _, to := range []shard.Shard{{}, halves[1], {Key: shard.ByUID, Start: 1}} {
		var extent shard.Extent
		q, _ := newQueue(deltaqueue.Options{Extent: &extent})
		put(t, q, deltaqueue.Delta{Type: cache.Added, Key: "a/b", Version: keytable.Version{ResourceVersion: "1", UID: uidIn(halves[1])}})
		e := take(t, q)
		extent.Change(halves[0])
		q.Restrict(false)
		beginList(t, &extent)
		q.BeginGeneration()
		extent.Change(to)
		q.Restrict(to.Contains(halves[0]))
		q.Done(e)
		require.NoError(t, q.Sweep(t.Context(), func(string, keytable.Version) {}))
		q.EndGeneration()
		entries, _ := q.Len()
		require.Zero(t, entries, "%v", to)
	}
}

// The watch of the whole repeats what has happened to the parts before they were listed, also to objects that were gone then.
func TestRepeatedStatesOfListedPartsAreStale(t *testing.T) {
	quarters := (shard.Shard{Key: shard.ByUID}).Split(4)
	var extent shard.Extent
	extent.Change(quarters[0])
	q, _ := newQueue(deltaqueue.Options{Extent: &extent, Resume: "10"})
	q.Observed("10", 0)
	for n, listed := range []string{"20", "30"} {
		extent.Change(shard.Shard{Key: shard.ByUID, End: quarters[n+1].End})
		q.Restrict(true)
		beginList(t, &extent)
		q.BeginParts(shard.Parts{quarters[n+1]})
		q.EndParts(listed)
		extent.End()
	}
	told := func(of shard.Shard, event cache.DeltaType, resourceVersion string) deltaqueue.Delta {
		return deltaqueue.Delta{Type: event, Key: "a/b", Version: keytable.Version{ResourceVersion: resourceVersion, UID: uidIn(of)}}
	}
	require.False(t, q.Stale(told(quarters[0], cache.Added, "15")), "it was not listed")
	require.True(t, q.Stale(told(quarters[1], cache.Added, "15")))
	require.True(t, q.Stale(told(quarters[1], cache.Updated, "20")))
	require.False(t, q.Stale(told(quarters[1], cache.Added, "21")), "it was listed before")
	require.True(t, q.Stale(told(quarters[2], cache.Added, "30")))
	require.False(t, q.Stale(told(quarters[2], cache.Added, "31")))
	require.False(t, q.Stale(told(quarters[1], cache.Deleted, "15")), "it may have the version of the state that it ended")
	q.Observed("30", 0)
	require.False(t, q.Stale(told(quarters[1], cache.Added, "15")), "the server has gone back: nothing is repeated any more")
}

// A generation of parts has found an object gone, and another one had its name before. The watch of the whole tells of that one later.
func TestWhatWasBeforeASweptObjectIsStale(t *testing.T) {
	halves := (shard.Shard{Key: shard.ByUID}).Split(2)
	told := func(of shard.Shard, event cache.DeltaType, resourceVersion string) deltaqueue.Delta {
		return deltaqueue.Delta{Type: event, Key: "a/b", Version: keytable.Version{ResourceVersion: resourceVersion, UID: uidIn(of)}}
	}
	for _, taken := range []bool{false, true} {
		var extent shard.Extent
		extent.Change(halves[0])
		q, table := newQueue(deltaqueue.Options{Extent: &extent, Resume: "10"})
		table.Set("a/b", keytable.Version{ResourceVersion: "15", UID: uidIn(halves[1])}, table.Begin()) // by a generation that did not end
		extent.Change(shard.Shard{})
		q.Restrict(true)
		beginList(t, &extent)
		q.BeginParts(shard.Parts{halves[1]})
		require.NoError(t, q.Sweep(t.Context(), func(string, keytable.Version) {}))
		q.EndParts("20")
		extent.End()
		if taken {
			q.Done(take(t, q))
		}
		require.True(t, q.Stale(told(halves[0], cache.Added, "14")))
		require.True(t, q.Stale(told(halves[0], cache.Deleted, "14")))
		require.True(t, q.Stale(told(halves[1], cache.Deleted, "16")), "it was told")
		require.False(t, q.Stale(told(halves[0], cache.Added, "17")))
		require.False(t, q.Stale(told(halves[1], cache.Deleted, "21")))
		q.Observed("20", 0)
		require.False(t, q.Stale(told(halves[0], cache.Added, "14")), "the server has gone back")
	}
}

// begun returns a queue of a shard, and a deletion that was taken of it: of a key that the consumer has only begun to take in.
func begun(t *testing.T, extent *shard.Extent) (*deltaqueue.Queue, *deltaqueue.Entry) {
	var versions known.Versions
	versions.Doubt("a/b")
	q := deltaqueue.New(deltaqueue.Options{Extent: extent, Known: &versions})
	beginList(t, extent)
	q.BeginGeneration()
	require.NoError(t, q.Sweep(t.Context(), func(string, keytable.Version) {}))
	current, _ := extent.Shard()
	extent.Resume(current)
	q.Listed("5")
	q.EndGeneration()
	return q, take(t, q)
}

// A process that was killed may have begun to take in an object. Its end is told, also after a failure, unless the shard was changed meanwhile to one
// that may not have it.
func TestDeletionOfWhatWasBegunIsTriedAgain(t *testing.T) {
	all, halves := shard.Shard{}, (shard.Shard{Key: shard.ByUID}).Split(2)
	for _, test := range []struct {
		name     string
		of       shard.Shard
		to       shard.Shard
		forgets  bool
		withNews bool
	}{
		{"same shard", halves[0], halves[0], false, false},
		{"same other shard", halves[1], halves[1], false, false},
		{"wider", halves[0], all, false, false},
		{"wider range", halves[0].Split(2)[0], halves[0], false, false},
		{"narrower", all, halves[0], true, false},
		{"narrower, other half", all, halves[1], true, false},
		{"narrower by namespace", all, shard.Shard{Key: shard.ByNamespace}.Split(2)[1], false, false},
		{"an object came instead", halves[0], halves[0], false, true},
	} {
		for how, fail := range map[string]func(*deltaqueue.Queue, *deltaqueue.Entry){
			"taken": func(q *deltaqueue.Queue, e *deltaqueue.Entry) { q.Retry(e, time.Second) },
			"taken in a batch": func(q *deltaqueue.Queue, e *deltaqueue.Entry) {
				q.Postpone([]*deltaqueue.Entry{e}, time.Second, false)
			},
			"waiting": nil,
		} {
			t.Run(test.name+" while "+how, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					var extent shard.Extent
					extent.Change(test.of)
					q, e := begun(t, &extent)
					if fail == nil {
						q.Retry(e, time.Second)
					}
					if test.withNews {
						put(t, q, deltaqueue.Delta{Type: cache.Added, Key: e.Key, Version: keytable.Version{ResourceVersion: "6", UID: uidIn(test.of)}})
					}
					if extent.Change(test.to) {
						q.Restrict(test.to.Contains(test.of))
					}
					if fail != nil {
						fail(q, e)
					}
					entries, _ := q.Len()
					if test.forgets {
						require.Zero(t, entries)
						return
					}
					require.Equal(t, 1, entries)
					require.Equal(t, cache.Deleted, take(t, q).Deltas[0].Type)
				})
			})
		}
	}
}

func uidIn(s shard.Shard) types.UID {
	for n := 0; ; n++ {
		if uid := fmt.Sprint("u", n); s.Includes("", uid) {
			return types.UID(uid)
		}
	}
}

// A list of what has come to a shard says nothing of an object whose UID is not known.
func TestListOfPartsSweepsNothingWithoutUID(t *testing.T) {
	for _, s := range (shard.Shard{Key: shard.ByUID}).Split(2) {
		var extent shard.Extent
		extent.Change(s)
		q, table := newQueue(deltaqueue.Options{Extent: &extent})
		table.Set("a/b", keytable.Version{}, table.Begin())
		extent.Change(shard.Shard{})
		q.Restrict(true)
		beginList(t, &extent)
		q.BeginParts(shard.Shard{}.Without(s))
		require.NoError(t, q.Sweep(t.Context(), func(string, keytable.Version) {}))
		q.EndParts("5")
		entries, _ := q.Len()
		require.Zero(t, entries)
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
			beginList(t, &extent)
			q.BeginGeneration()
			require.NoError(t, q.Sweep(t.Context(), func(string, keytable.Version) {}))
			q.EndGeneration()
			q.Drop(take(t, q))
			require.Equal(t, 1, table.Len())
		}
	}
}

// The consumer fails for an object that leaves the shard. Another object of that name was never told, and its end is not told either.
func TestEndOfAnotherObjectIsNotToldAfterAFailure(t *testing.T) {
	halves := (shard.Shard{Key: shard.ByUID}).Split(2)
	told := func(of shard.Shard, event cache.DeltaType, resourceVersion string) deltaqueue.Delta {
		return deltaqueue.Delta{Type: event, Key: "a/b", Object: "x", Version: keytable.Version{ResourceVersion: resourceVersion, UID: uidIn(of)}}
	}
	fail := func(q *deltaqueue.Queue, versions *known.Versions, e *deltaqueue.Entry) {
		versions.Doubt(e.Key)
		q.Postpone([]*deltaqueue.Entry{e}, time.Second, false)
	}
	leave := func(q *deltaqueue.Queue, x *shard.Extent) {
		x.Change(halves[1])
		q.Restrict(false)
	}
	first, second := halves[0], halves[1]
	for name, play := range map[string]func(q *deltaqueue.Queue, x *shard.Extent, versions *known.Versions){
		"left during the call": func(q *deltaqueue.Queue, x *shard.Extent, versions *known.Versions) {
			put(t, q, told(first, cache.Added, "1"))
			e := take(t, q)
			put(t, q, told(first, cache.Deleted, "2"), told(second, cache.Added, "3"))
			leave(q, x)
			put(t, q, told(second, cache.Deleted, "4"))
			fail(q, versions, e)
		},
		"left after the call": func(q *deltaqueue.Queue, x *shard.Extent, versions *known.Versions) {
			put(t, q, told(first, cache.Added, "1"))
			fail(q, versions, take(t, q))
			put(t, q, told(first, cache.Deleted, "2"), told(second, cache.Added, "3"))
			leave(q, x)
			put(t, q, told(second, cache.Deleted, "4"))
		},
		"came before": func(q *deltaqueue.Queue, x *shard.Extent, versions *known.Versions) {
			put(t, q, told(second, cache.Added, "1"), told(second, cache.Deleted, "2"), told(first, cache.Added, "3"))
			e := take(t, q)
			e.Unseen()
			leave(q, x)
			fail(q, versions, e)
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var extent shard.Extent
				var versions known.Versions
				q := deltaqueue.New(deltaqueue.Options{Extent: &extent, Known: &versions})
				play(q, &extent, &versions)
				_, _, unsettled := versions.Delivered("a/b")
				require.False(t, unsettled, "or its end is told")
			})
		})
	}
}

// The consumer was not told of the end of an object that it never saw. After a failure, it is only told of what came then.
func TestUnseenEndIsDroppedAfterAFailure(t *testing.T) {
	for how, fail := range map[string]func(*deltaqueue.Queue, *deltaqueue.Entry){
		"retry":    func(q *deltaqueue.Queue, e *deltaqueue.Entry) { q.Retry(e, time.Second) },
		"postpone": func(q *deltaqueue.Queue, e *deltaqueue.Entry) { q.Postpone([]*deltaqueue.Entry{e}, time.Second, true) },
	} {
		t.Run(how, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q, _ := newQueue(deltaqueue.Options{})
				put(t, q, delta(cache.Added, "a", "1"), delta(cache.Deleted, "a", "2"), delta(cache.Added, "a", "3"))
				e := take(t, q)
				require.Len(t, e.Deltas, 2)
				e.Unseen()
				fail(q, e)
				e = take(t, q)
				require.Len(t, e.Deltas, 1)
				require.Equal(t, "3", e.Deltas[0].Version.ResourceVersion)
				q.Done(e)
			})
		})
	}
}
