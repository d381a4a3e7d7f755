package deltaqueue_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/tools/cache"

	"github.com/rvinformer/informer/internal/engine/deltaqueue"
	"github.com/rvinformer/informer/internal/leaf/keytable"
	"github.com/rvinformer/informer/internal/leaf/rv"
)

// situation is what has happened to a queue that knows the version 7 of the key k.
type situation struct {
	opts deltaqueue.Options
	then func(t *testing.T, q *deltaqueue.Queue)
	want bool
}

func (s situation) queue(t *testing.T) *deltaqueue.Queue {
	q, known := newQueue(s.opts)
	known.Set("k", version("7"), 0)
	if s.then != nil {
		s.then(t, q)
	}
	return q
}

func TestStaleInEachState(t *testing.T) {
	wentBack := func(_ *testing.T, q *deltaqueue.Queue) { q.Observed(rv.At("6"), 0) }
	for name, s := range map[string]situation{
		"a newer version was observed": {then: func(_ *testing.T, q *deltaqueue.Queue) { q.Observed(rv.At("9"), 0) }, want: true},
		"nothing was observed":         {want: true},
		"the server went back":         {then: wentBack},
		"acknowledged beyond a checkpoint": {
			opts: deltaqueue.Options{Resume: "6", Resumed: true}, want: true,
		},
		"acknowledged beyond a checkpoint that is followed": {
			opts: deltaqueue.Options{Resume: "6", Resumed: true}, want: true,
			then: func(_ *testing.T, q *deltaqueue.Queue) { q.Follow() },
		},
		"a list has replaced the checkpoint": {
			opts: deltaqueue.Options{Resume: "6", Resumed: true},
			then: func(_ *testing.T, q *deltaqueue.Queue) { q.BeginGeneration(); q.EndGeneration() },
		},
		"the server went back, and lists the key": {want: true, then: func(t *testing.T, q *deltaqueue.Queue) {
			wentBack(t, q)
			q.BeginGeneration()
			shown(q, "k", version("7"))
		}},
		"the server went back, and lists other keys": {then: func(t *testing.T, q *deltaqueue.Queue) {
			wentBack(t, q)
			q.BeginGeneration()
			shown(q, "other", version("7"))
		}},
		"the server went back, and has listed the key": {then: func(t *testing.T, q *deltaqueue.Queue) {
			wentBack(t, q)
			q.BeginGeneration()
			shown(q, "k", version("7"))
			q.EndGeneration()
		}},
		"the server went back, and lists a key that waits": {want: true, then: func(t *testing.T, q *deltaqueue.Queue) {
			wentBack(t, q)
			q.BeginGeneration()
			put(t, q, delta(cache.Replaced, "k", "8"))
		}},
		"the server went back, and the key waits": {then: func(t *testing.T, q *deltaqueue.Queue) {
			wentBack(t, q)
			put(t, q, delta(cache.Updated, "k", "8"))
			q.BeginGeneration()
		}},
		"a sweep has deleted the key": {then: func(t *testing.T, q *deltaqueue.Queue) {
			q.BeginGeneration()
			require.NoError(t, q.Sweep(t.Context(), func(string, keytable.Version) {}))
		}},
		"the object was deleted": {opts: deltaqueue.Options{Tombstones: true}, want: true, then: deleteObject},
		"it was deleted before the newest list": {opts: deltaqueue.Options{Tombstones: true}, then: func(t *testing.T, q *deltaqueue.Queue) {
			deleteObject(t, q)
			q.BeginGeneration()
		}},
		"it was deleted, and UIDs may come again": {then: deleteObject},
	} {
		require.Equal(t, s.want, s.queue(t).Stale(delta(cache.Updated, "k", "5")), name)
	}
}

// deleteObject deletes the object of the key, and has the deletion acknowledged.
func deleteObject(t *testing.T, q *deltaqueue.Queue) {
	put(t, q, delta(cache.Deleted, "k", "8"))
	q.Done(take(t, q))
}

func TestShownInEachState(t *testing.T) {
	skip := deltaqueue.Options{SkipUnchanged: true}
	shows := func(rv string) func(*testing.T, *deltaqueue.Queue) {
		return func(_ *testing.T, q *deltaqueue.Queue) { shown(q, "k", version(rv)) }
	}
	waits := func(rv string) func(*testing.T, *deltaqueue.Queue) {
		return func(t *testing.T, q *deltaqueue.Queue) { put(t, q, delta(cache.Replaced, "k", rv)) }
	}
	for name, c := range map[string]struct {
		situation
		key   string
		shown keytable.Version
	}{
		"unknown":                  {situation{}, "other", version("7")},
		"known":                    {situation{}, "k", version("7")},
		"known, and skipped":       {situation{opts: skip, want: true}, "k", version("7")},
		"known in another version": {situation{opts: skip}, "k", version("8")},
		"another object":           {situation{opts: skip}, "k", keytable.Version{ResourceVersion: "7", UID: "w"}},
		"without a version":        {situation{opts: skip}, "k", keytable.Version{UID: "u"}},
		"known without a version": {
			situation{opts: skip, then: func(t *testing.T, q *deltaqueue.Queue) {
				put(t, q, delta(cache.Added, "other", ""))
				q.Done(take(t, q))
			}}, "other", version(""),
		},
		"shown again": {situation{then: shows("7"), want: true}, "k", version("7")},
		"an older version was shown": {
			situation{then: shows("6")}, "k", version("8"),
		},
		"older than what was shown": {situation{then: shows("7"), want: true}, "k", version("6")},
		"older, and not shown":      {situation{}, "k", version("6")},
		"shown again by the next list, as this one was cut": {
			situation{want: true, then: func(t *testing.T, q *deltaqueue.Queue) {
				shown(q, "k", version("7"))
				q.BeginGeneration()
			}}, "k", version("7"),
		},
		"shown again by the next list": {
			situation{then: func(t *testing.T, q *deltaqueue.Queue) {
				shown(q, "k", version("7"))
				q.EndGeneration()
				q.BeginGeneration()
			}}, "k", version("7"),
		},
		"it waits":                     {situation{then: waits("9"), want: true}, "k", version("9")},
		"it waits in an older version": {situation{then: waits("9")}, "k", version("10")},
		"it waits in a newer version":  {situation{then: waits("9"), want: true}, "k", version("8")},
		"it waits since another list": {
			situation{then: func(t *testing.T, q *deltaqueue.Queue) {
				waits("9")(t, q)
				q.BeginGeneration()
			}}, "k", version("8"),
		},
		"its deletion waits": {
			situation{then: func(t *testing.T, q *deltaqueue.Queue) { put(t, q, delta(cache.Deleted, "k", "9")) }}, "k", version("9"),
		},
		"it was deleted since the list began": {
			situation{opts: deltaqueue.Options{Tombstones: true}, then: deleteObject, want: true}, "k", version("7"),
		},
	} {
		begin := c.then
		c.then = func(t *testing.T, q *deltaqueue.Queue) {
			q.BeginGeneration()
			if begin != nil {
				begin(t, q)
			}
		}
		require.Equal(t, c.want, shown(c.queue(t), c.key, c.shown), name)
	}
}

// An object that was stored without its UID gets that of the object that is shown.
func TestShownAdoptsTheUID(t *testing.T) {
	q, known := newQueue(deltaqueue.Options{SkipUnchanged: true})
	known.Set("k", keytable.Version{ResourceVersion: "7"}, 0)
	q.BeginGeneration()
	require.True(t, shown(q, "k", version("7")))
	v, _ := known.Get("k")
	require.Equal(t, version("7"), v)
}
