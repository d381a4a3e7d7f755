package deltaqueue_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/rvinformer/informer/internal/engine/deltaqueue"
	"github.com/rvinformer/informer/internal/engine/known"
	"github.com/rvinformer/informer/internal/leaf/budget"
	"github.com/rvinformer/informer/internal/leaf/keytable"
	"github.com/rvinformer/informer/internal/leaf/rv"
)

func version(rv string) keytable.Version { return keytable.Version{ResourceVersion: rv, UID: "u"} }

func delta(change cache.DeltaType, key, rv string) deltaqueue.Delta {
	return deltaqueue.Delta{Type: change, Key: key, Version: version(rv), Object: key + "@" + rv, Bytes: 1}
}

func swept(key string) deltaqueue.Delta { return deltaqueue.Delta{Type: cache.Deleted, Key: key} }

func newQueue(opts deltaqueue.Options) (*deltaqueue.Queue, *keytable.Table) {
	known := keytable.New()
	opts.Known = known
	return deltaqueue.New(opts), known
}

func put(t *testing.T, q *deltaqueue.Queue, deltas ...deltaqueue.Delta) {
	t.Helper()
	for _, d := range deltas {
		require.NoError(t, q.Put(ended(), d))
	}
}

func take(t *testing.T, q *deltaqueue.Queue) *deltaqueue.Entry {
	t.Helper()
	e, err := q.Take(t.Context())
	require.NoError(t, err)
	return e
}

func TestMerge(t *testing.T) {
	added, updated := delta(cache.Added, "k", "1"), delta(cache.Updated, "k", "2")
	deleted, unknown := delta(cache.Deleted, "k", "3"), swept("k")
	again, changed := delta(cache.Added, "k", "4"), delta(cache.Updated, "k", "5")
	replaced, resync := delta(cache.Replaced, "k", "6"), delta(cache.Sync, "k", "2")
	goneAgain := delta(cache.Deleted, "k", "7")
	as := func(change cache.DeltaType, d deltaqueue.Delta) deltaqueue.Delta {
		d.Type = change
		return d
	}
	type deltas = []deltaqueue.Delta
	for name, test := range map[string]struct {
		waiting deltas
		newer   deltaqueue.Delta
		want    deltas
	}{
		"nothing waits":                       {nil, updated, deltas{updated}},
		"update after add":                    {deltas{added}, updated, deltas{as(cache.Added, updated)}},
		"update after update":                 {deltas{updated}, changed, deltas{changed}},
		"update after replace":                {deltas{replaced}, changed, deltas{changed}},
		"update after resync":                 {deltas{resync}, changed, deltas{changed}},
		"replace after add":                   {deltas{added}, replaced, deltas{as(cache.Added, replaced)}},
		"replace after update":                {deltas{updated}, replaced, deltas{replaced}},
		"delete after add":                    {deltas{added}, deleted, deltas{deleted}},
		"delete after update":                 {deltas{updated}, deleted, deltas{deleted}},
		"swept after update":                  {deltas{updated}, unknown, deltas{unknown}},
		"add after delete":                    {deltas{deleted}, again, deltas{deleted, again}},
		"update after delete and add":         {deltas{deleted, again}, changed, deltas{deleted, as(cache.Added, changed)}},
		"delete after delete and add":         {deltas{deleted, again}, goneAgain, deltas{deleted}},
		"swept after delete and add":          {deltas{deleted, again}, unknown, deltas{deleted}},
		"delete after delete":                 {deltas{deleted}, goneAgain, deltas{deleted}},
		"delete after swept":                  {deltas{unknown}, deleted, deltas{deleted}},
		"delete after swept and add":          {deltas{unknown, again}, goneAgain, deltas{unknown}},
		"add after swept":                     {deltas{unknown}, again, deltas{unknown, again}},
		"replace after swept":                 {deltas{unknown}, replaced, deltas{replaced}},
		"replace after delete":                {deltas{deleted}, replaced, deltas{deleted, replaced}},
		"replace after delete and add":        {deltas{deleted, again}, replaced, deltas{deleted, as(cache.Added, replaced)}},
		"resync after update":                 {deltas{updated}, resync, deltas{updated}},
		"resync after delete":                 {deltas{deleted}, resync, deltas{deleted}},
		"resync after delete and another add": {deltas{deleted, again}, resync, deltas{deleted, again}},
	} {
		t.Run(name, func(t *testing.T) {
			got := deltaqueue.Merge(test.waiting, test.newer)
			require.Equal(t, test.want, got)
			for _, beyond := range got[len(got):cap(got)] {
				require.Nil(t, beyond.Object, "the array holds an object that no one needs")
			}
		})
	}
}

// What comes again after the deletion of its object does not bring it back.
func TestStaleAfterADeletion(t *testing.T) {
	of := func(uid types.UID, d deltaqueue.Delta) deltaqueue.Delta {
		d.Version.UID = uid
		return d
	}
	q, known := newQueue(deltaqueue.Options{Tombstones: true})
	put(t, q, of("first", delta(cache.Added, "k", "5")))
	put(t, q, of("first", delta(cache.Deleted, "k", "8")))
	put(t, q, of("opaque", delta(cache.Deleted, "o", "x")))
	put(t, q, of("", delta(cache.Deleted, "none", "6")))
	require.True(t, q.Stale(of("first", delta(cache.Deleted, "k", "8"))), "while it waits")
	for range 3 {
		q.Done(take(t, q))
	}
	require.Zero(t, known.Len())
	for _, d := range []deltaqueue.Delta{
		of("first", delta(cache.Added, "k", "5")), of("first", delta(cache.Updated, "k", "7")), of("first", delta(cache.Deleted, "k", "8")),
		of("opaque", delta(cache.Added, "o", "w")), of("opaque", delta(cache.Deleted, "o", "x")),
	} {
		require.True(t, q.Stale(d), "%v", d)
	}
	for _, d := range []deltaqueue.Delta{
		of("first", delta(cache.Added, "k", "9")), of("second", delta(cache.Added, "k", "1")), of("other", delta(cache.Added, "other", "5")),
		of("", delta(cache.Added, "k", "5")), of("", delta(cache.Added, "none", "5")),
	} {
		require.False(t, q.Stale(d), "%v", d)
	}

	// Only so many are remembered, the newest.
	for i := range 200 {
		put(t, q, of(types.UID(fmt.Sprint("uid", i)), delta(cache.Deleted, "gone", fmt.Sprint(10+i))))
	}
	require.False(t, q.Stale(of("first", delta(cache.Added, "k", "5"))))
	require.False(t, q.Stale(of("uid71", delta(cache.Added, "k", "9"))))
	require.True(t, q.Stale(of("uid72", delta(cache.Added, "k", "9"))))

	// A generation shows what there is.
	q.BeginGeneration()
	require.False(t, q.Stale(of("uid199", delta(cache.Updated, "k", "10"))))

	// Other sources may use UIDs again.
	q, _ = newQueue(deltaqueue.Options{})
	put(t, q, delta(cache.Deleted, "k", "8"))
	q.Done(take(t, q))
	require.False(t, q.Stale(delta(cache.Added, "k", "5")))
}

func TestPutWaitsForRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, _ := newQueue(deltaqueue.Options{Limit: 1})
		put(t, q, delta(cache.Added, "a", "1"), delta(cache.Updated, "a", "2")) // in place, at once
		over := errors.New("over")
		ctx, cancel := context.WithCancelCause(t.Context())
		var wg sync.WaitGroup
		defer wg.Wait()
		wg.Go(func() { require.ErrorIs(t, q.Put(ctx, delta(cache.Added, "b", "3")), over) })
		synctest.Wait()
		cancel(over)
		wg.Wait()
		wg.Go(func() { require.NoError(t, q.Put(t.Context(), delta(cache.Added, "b", "3"))) })
		e := take(t, q)
		synctest.Wait()
		require.False(t, q.Knows("b"), "what is taken takes room")
		q.Done(e)
		synctest.Wait()
		require.True(t, q.Knows("b"))
	})
}

// A producer that waits for a full queue goes on when there is room for several entries, or nothing
// is left that could be taken.
func TestFullQueueIsFilledInOneGo(t *testing.T) {
	const limit, quarter = 8, 2
	for name, giveBack := range map[string]func(t *testing.T, q *deltaqueue.Queue, holds func() int){
		"done": func(t *testing.T, q *deltaqueue.Queue, holds func() int) {
			q.Done(take(t, q))
			require.Equal(t, limit-1, holds())
			q.Done(take(t, q))
			require.Equal(t, limit, holds())
		},
		"retried": func(t *testing.T, q *deltaqueue.Queue, holds func() int) { // what failed keeps its place
			for range limit - quarter + 1 {
				q.Retry(take(t, q), time.Hour)
			}
			q.Done(take(t, q)) // nothing else can be taken
			require.Equal(t, limit, holds())
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q, _ := newQueue(deltaqueue.Options{Limit: limit})
				ctx, cancel := context.WithCancel(t.Context())
				var producer sync.WaitGroup
				defer producer.Wait()
				defer cancel()
				producer.Go(func() {
					for n := 0; q.Put(ctx, delta(cache.Added, strconv.Itoa(n), "1")) == nil; n++ {
					}
				})
				holds := func() (entries int) {
					synctest.Wait()
					entries, _ = q.Len()
					return entries
				}
				require.Equal(t, limit, holds())
				giveBack(t, q, holds)
			})
		})
	}
}

func TestRetry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, _ := newQueue(deltaqueue.Options{})
		put(t, q, delta(cache.Added, "a", "1"), delta(cache.Deleted, "b", "2"), delta(cache.Added, "c", "3"))
		start := time.Now()
		for _, seconds := range []int{3, 2, 1} {
			q.Retry(take(t, q), time.Duration(seconds)*time.Second)
		}
		e := take(t, q)
		require.Equal(t, "c", e.Key, "the one that is due first")
		require.Equal(t, 1, e.Attempts)
		require.Equal(t, time.Second, time.Since(start))
		q.Retry(e, time.Hour)
		put(t, q, delta(cache.Added, "b", "4"))
		e = take(t, q)
		require.Equal(t, "b", e.Key)
		require.Equal(t, []deltaqueue.Delta{delta(cache.Deleted, "b", "2"), delta(cache.Added, "b", "4")}, e.Deltas)
		require.Zero(t, e.Attempts)
		require.Equal(t, time.Second, time.Since(start), "a newer delta makes it ready at once")
		put(t, q, delta(cache.Deleted, "b", "5"))
		q.Retry(e, time.Hour)
		e = take(t, q)
		require.Equal(t, []deltaqueue.Delta{delta(cache.Deleted, "b", "2")}, e.Deltas)
		require.Equal(t, time.Second, time.Since(start))
	})
}

func TestResumePointOfTheOldest(t *testing.T) {
	q, _ := newQueue(deltaqueue.Options{Resume: "1"})
	put(t, q, delta(cache.Added, "a", "2"))
	q.Observed(rv.At("2"), 0)
	put(t, q, delta(cache.Added, "b", "3"))
	q.Observed(rv.At("3"), 0)
	a, b := take(t, q), take(t, q)
	q.Drop(b)
	require.Equal(t, "1", q.ResumePoint(), "a is not acknowledged")
	q.Done(a)
	require.Equal(t, "3", q.ResumePoint(), "b was dropped")
	require.Equal(t, "3", q.SafeResumePoint())
	q.BeginGeneration()
	require.NoError(t, show(t.Context(), q, delta(cache.Replaced, "b", "3")))
	q.EndGeneration()
	q.Observed(rv.At("4"), 0)
	require.Equal(t, "3", q.ResumePoint())
	require.Empty(t, q.SafeResumePoint(), "what a list has shown is not acknowledged: a list it is")
}

// A version may have several deletions. While more may come, a watch has to begin before it.
func TestResumePointInTheMidstOfAVersion(t *testing.T) {
	q, _ := newQueue(deltaqueue.Options{Resume: "1"})
	put(t, q, delta(cache.Deleted, "a", "7"))
	at := rv.At("1").Moved("7", false)
	q.Observed(at, 0)
	a := take(t, q)
	require.Equal(t, "1", q.SafeResumePoint())
	q.Done(a)
	require.Equal(t, "7", q.SafeResumePoint(), "no version has had two events")
	put(t, q, delta(cache.Deleted, "b", "7"))
	require.Equal(t, "1", q.SafeResumePoint(), "a watch from 7 does not tell b")
	at = at.Moved("7", false)
	q.Observed(at, 0)
	q.Done(take(t, q))
	require.Equal(t, "1", q.ResumePoint(), "more may come")
	require.Equal(t, "1", q.SafeResumePoint(), "more may come")
	put(t, q, delta(cache.Deleted, "c", "7"))
	q.Observed(at.Moved("7", false), 0)
	c := take(t, q)
	require.Equal(t, "1", q.SafeResumePoint())
	put(t, q, delta(cache.Added, "d", "8"))
	at = at.Moved("8", false)
	q.Observed(at, 0)
	q.Done(c)
	require.Equal(t, "7", q.SafeResumePoint(), "d shows that no more will come")
	q.Done(take(t, q))
	require.Equal(t, "7", q.SafeResumePoint(), "8 may have more events")
	q.Observed(at.Moved("8", true).Moved("8", true), 0)
	require.Equal(t, "8", q.SafeResumePoint())
}

// What a resync repeats was read from the store some time ago.
func TestResyncDoesNotGoBack(t *testing.T) {
	q, known := newQueue(deltaqueue.Options{})
	require.NoError(t, q.Resync(t.Context(), delta(cache.Sync, "gone", "1")))
	known.Set("newer", version("2"), 0)
	require.NoError(t, q.Resync(t.Context(), delta(cache.Sync, "newer", "1")))
	entries, _ := q.Len()
	require.Zero(t, entries)
	require.NoError(t, q.Resync(t.Context(), deltaqueue.Delta{Type: cache.Sync, Key: "newer"}))
	q.Done(take(t, q))
	stays, _ := known.Get("newer")
	require.Equal(t, version("2"), stays)
}

// A sweep does not delete what the generation showed while it was taken, also
// when what waited behind it was dropped.
func TestShownWhileTaken(t *testing.T) {
	q, known := newQueue(deltaqueue.Options{})
	put(t, q, delta(cache.Added, "k", "1"))
	first := take(t, q)
	put(t, q, delta(cache.Updated, "k", "2"))
	q.BeginGeneration()
	require.NoError(t, show(t.Context(), q, delta(cache.Replaced, "k", "3")))
	q.Done(first)
	q.Drop(take(t, q))
	require.NoError(t, q.Sweep(t.Context(), func(key string, _ keytable.Version) { t.Errorf("%s is swept", key) }))
	require.Equal(t, 1, known.Len())
}

// An object that changed while it waited for another try is one more that the
// first generation has to deliver.
func TestSyncedWaitsForTheNewest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, _ := newQueue(deltaqueue.Options{})
		q.BeginGeneration()
		require.NoError(t, show(t.Context(), q, delta(cache.Replaced, "k", "1")))
		q.Retry(take(t, q), time.Hour)
		q.BeginGeneration()
		require.NoError(t, show(t.Context(), q, delta(cache.Replaced, "k", "2")))
		q.EndGeneration()
		require.False(t, isClosed(q.Synced()))
		q.Done(take(t, q))
		require.True(t, isClosed(q.Synced()))
	})
}

func isClosed(done <-chan struct{}) bool {
	select {
	case <-done:
		return true
	default:
		return false
	}
}

// Three consumers that fail at times keep up with one watch.
func TestConsumersSideBySide(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const changes = 3000
		q, known := newQueue(deltaqueue.Options{Limit: 4})
		ctx, cancel := context.WithCancel(t.Context())
		var consumers sync.WaitGroup
		var busy sync.Map
		for range 3 {
			consumers.Go(func() {
				for n := 0; ; n++ {
					e, err := q.Take(ctx)
					if err != nil {
						return
					}
					if _, twice := busy.LoadOrStore(e.Key, true); twice {
						t.Errorf("%s is taken twice", e.Key)
					}
					busy.Delete(e.Key)
					if n%5 == 0 {
						q.Retry(e, time.Millisecond)
					} else {
						q.Done(e)
					}
				}
			})
		}
		want := map[string]keytable.Version{}
		for n := 1; n <= changes; n++ {
			key, version := strings.Repeat("k", 1+n%7), strconv.Itoa(n)
			d := delta(cache.Updated, key, version)
			d.Version.UID = types.UID(version)
			want[key] = d.Version
			if n%3 == 0 {
				d.Type = cache.Deleted
				delete(want, key)
			}
			require.NoError(t, q.Put(ctx, d))
			q.Observed(rv.At(version), 0)
		}
		time.Sleep(time.Minute) // of the bubble
		cancel()
		consumers.Wait()
		for key, v := range known.All() {
			require.Equal(t, want[key], v)
		}
		require.Equal(t, len(want), known.Len())
		require.Equal(t, strconv.Itoa(changes), q.ResumePoint())
		entries, bytes := q.Len()
		require.Zero(t, entries)
		require.Zero(t, bytes)
	})
}

// The queue is full by bytes too. One object may pass the limit, however large,
// or it could never be delivered.
func TestPutWaitsForRoomInBytes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, _ := newQueue(deltaqueue.Options{Budget: budget.New(10)})
		large := delta(cache.Added, "a", "1")
		large.Bytes = 100
		put(t, q, large)
		done := make(chan error)
		go func() { done <- q.Put(t.Context(), delta(cache.Added, "b", "2")) }()
		synctest.Wait()
		select {
		case <-done:
			t.Fatal("Put did not wait")
		default:
		}
		put(t, q, delta(cache.Updated, "a", "3")) // in its place, and small
		require.NoError(t, <-done)
		entries, bytes := q.Len()
		require.Equal(t, 2, entries)
		require.EqualValues(t, 2, bytes)
	})
}

// show tells a queue of an object in a list, as its producer does.
func show(ctx context.Context, q *deltaqueue.Queue, d deltaqueue.Delta) error {
	if shown(q, d.Key, d.Version) {
		return nil
	}
	d.Type = cache.Replaced
	return q.Put(ctx, d)
}

// An object that comes behind a deletion is one more that waits: it waits for room, as long as
// something else is there.
func TestAnObjectBehindADeletionWaitsForRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for name, deletion := range map[string]deltaqueue.Delta{"found by a list": swept("a"), "told by a watch": delta(cache.Deleted, "a", "1")} {
			q, _ := newQueue(deltaqueue.Options{Budget: budget.New(10)})
			put(t, q, deletion)
			large := delta(cache.Added, "b", "2")
			large.Bytes = 9
			put(t, q, large)
			done := make(chan error)
			large = delta(cache.Added, "a", "3")
			large.Bytes = 9
			go func() { done <- q.Put(t.Context(), large) }()
			synctest.Wait()
			select {
			case <-done:
				t.Fatal("Put did not wait", name)
			default:
			}
			e := take(t, q)
			require.Equal(t, "a", e.Key)
			q.Done(e)
			e = take(t, q)
			require.Equal(t, "b", e.Key)
			q.Done(e)
			require.NoError(t, <-done)
			entries, bytes := q.Len()
			require.Equal(t, 1, entries)
			require.EqualValues(t, 9, bytes)
			put(t, q, delta(cache.Deleted, "a", "4"))
			put(t, q, large) // nothing else waits
			_, bytes = q.Len()
			require.EqualValues(t, 10, bytes)
		}
	})
}

// A queue is drained when all that was put is acknowledged, and observed.
func TestDrained(t *testing.T) {
	q, _ := newQueue(deltaqueue.Options{Resume: "1"})
	require.True(t, q.Drained())
	put(t, q, delta(cache.Added, "a", "2"))
	require.False(t, q.Drained())
	e := take(t, q)
	require.False(t, q.Drained())
	q.Done(e)
	require.False(t, q.Drained(), "the version of the delta that was put is not observed")
	q.Observed(rv.At("2"), 0)
	require.True(t, q.Drained())

	put(t, q, delta(cache.Added, "b", "3"))
	q.Observed(rv.At("3"), 0)
	require.False(t, q.Drained())
	q.Drop(take(t, q))
	require.True(t, q.Drained(), "b is dropped")
	q.BeginGeneration()
	require.NoError(t, show(t.Context(), q, delta(cache.Replaced, "b", "3")))
	q.EndGeneration()
	require.False(t, q.Drained())
	q.Done(take(t, q))
	q.Observed(rv.At("3"), 0)
	require.True(t, q.Drained())
}

// What is in the queue when it is asked is waited for, and nothing that comes later.
func TestWhenGivenBack(t *testing.T) {
	q, _ := newQueue(deltaqueue.Options{})
	calls := 0
	q.WhenGivenBack(func() { calls++ })
	require.Equal(t, 1, calls, "nothing is in it")
	put(t, q, delta(cache.Added, "a", "1"), delta(cache.Added, "b", "2"))
	calls = 0
	q.WhenGivenBack(func() { calls++ })
	put(t, q, delta(cache.Added, "later", "3"))
	taken := takeBatch(t, q, 3)
	q.Done(taken[1])
	require.Zero(t, calls)
	q.Drop(taken[0])
	require.Equal(t, 1, calls)
	q.Done(taken[2])
	require.Equal(t, 1, calls)
}

// Only a deletion leaves a tombstone: the deletion of an object that was put may carry
// its version.
func TestOnlyDeletionsLeaveTombstones(t *testing.T) {
	for name, v := range map[string]string{"ordered": "5", "opaque": "v-5"} {
		t.Run(name, func(t *testing.T) {
			q, _ := newQueue(deltaqueue.Options{Tombstones: true})
			of := func(change cache.DeltaType) deltaqueue.Delta {
				d := delta(change, "a", v)
				d.Version.UID = "uid"
				return d
			}
			put(t, q, of(cache.Added))
			require.False(t, q.Stale(of(cache.Deleted)))
			put(t, q, of(cache.Deleted))
			q.Done(take(t, q))
			require.True(t, q.Stale(of(cache.Added)))
		})
	}
}

// What a Put has waited for in the budget is taken once, and given back.
func TestBudgetOfAPutThatWaited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared := budget.New(10)
		q, _ := newQueue(deltaqueue.Options{Budget: shared})
		other, _ := newQueue(deltaqueue.Options{Budget: shared})
		sized := func(key string, bytes int64) deltaqueue.Delta {
			d := delta(cache.Added, key, "1")
			d.Bytes = bytes
			return d
		}
		put(t, other, sized("large", 9))
		put(t, q, sized("a", 1))
		done := make(chan error, 1)
		go func() { done <- q.Put(t.Context(), sized("b", 5)) }()
		synctest.Wait()
		require.Empty(t, done)
		other.Done(take(t, other))
		synctest.Wait()
		require.Len(t, done, 1)
		require.EqualValues(t, 6, shared.InUse())
		for _, e := range takeBatch(t, q, 2) {
			q.Done(e)
		}
		require.Zero(t, shared.InUse())
	})
}

// A sweep that its context ends goes no further, and says so, however many keys there are.
func TestSweepEndsWithItsContext(t *testing.T) {
	q, known := newQueue(deltaqueue.Options{Limit: 10})
	for n := range 5000 { // more than are looked at under one lock
		known.Set(strconv.Itoa(n), version("1"), 0)
	}
	q.BeginGeneration()
	deletions := 0
	err := q.Sweep(ended(), func(string, keytable.Version) { deletions++ })
	require.ErrorIs(t, err, context.Canceled)
	require.Equal(t, 11, deletions)
}

// The entry of a deletion that a sweep found has the version that was known, and that of
// an object without a version has none.
func TestVersionOfAnEntry(t *testing.T) {
	q, known := newQueue(deltaqueue.Options{})
	known.Set("gone", version("1"), 0)
	q.BeginGeneration()
	require.NoError(t, q.Sweep(t.Context(), func(string, keytable.Version) {}))
	q.EndGeneration()
	require.Equal(t, version("1"), take(t, q).Version)

	put(t, q, delta(cache.Added, "a", "2"))
	unversioned := delta(cache.Updated, "a", "")
	unversioned.Version = keytable.Version{}
	put(t, q, unversioned)
	require.Zero(t, take(t, q).Version)
}

// shown is Queue.Shown for objects of one UID.
func shown(q *deltaqueue.Queue, key string, v keytable.Version) bool {
	done, _ := q.Shown(key, v)
	return done
}

// A generation that shows two objects of one key keeps the first.
func TestGenerationKeepsTheFirstOfTwoObjectsOfAKey(t *testing.T) {
	one, two := keytable.Version{ResourceVersion: "7", UID: "u1"}, keytable.Version{ResourceVersion: "8", UID: "u2"}
	q := deltaqueue.New(deltaqueue.Options{Known: &known.Versions{}, SkipUnchanged: true})
	show := func(v keytable.Version) (done bool, other types.UID) { return q.Shown("k", v) }
	q.BeginGeneration()
	done, other := show(one)
	require.False(t, done)
	require.Empty(t, other)
	require.NoError(t, q.Put(t.Context(), deltaqueue.Delta{Type: cache.Replaced, Key: "k", Version: one, Object: "one"}))
	done, other = show(two)
	require.True(t, done)
	require.EqualValues(t, "u1", other, "it waits")
	e, err := q.Take(t.Context())
	require.NoError(t, err)
	_, other = show(two)
	require.EqualValues(t, "u1", other, "it is taken")
	q.Done(e)
	_, other = show(two)
	require.EqualValues(t, "u1", other, "it is acknowledged")
	done, other = show(one)
	require.True(t, done)
	require.Empty(t, other)

	require.NoError(t, q.Put(t.Context(), deltaqueue.Delta{Type: cache.Deleted, Key: "k", Version: one, Object: "one"}))
	done, other = show(two)
	require.False(t, done, "the first was deleted while the list was read")
	require.Empty(t, other)

	q.BeginGeneration()
	done, other = show(two)
	require.False(t, done)
	require.Empty(t, other, "another generation")
}
