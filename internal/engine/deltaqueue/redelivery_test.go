package deltaqueue_test

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/tools/cache"

	"github.com/rvinformer/informer/api"
	"github.com/rvinformer/informer/internal/engine/deltaqueue"
	"github.com/rvinformer/informer/internal/leaf/keytable"
	"github.com/rvinformer/informer/internal/leaf/rv"
)

// redelivering is a queue that has listed, and observed version 50, and a redelivery of it for a
// consumer that takes so many.
func redelivering(t *testing.T, atOnce int, doubt func(string) (bool, *api.DeadLetter)) (*deltaqueue.Queue, *keytable.Table, *deltaqueue.Redelivery) {
	t.Helper()
	if doubt == nil {
		doubt = func(string) (bool, *api.DeadLetter) { return false, nil }
	}
	q, known := newQueue(deltaqueue.Options{})
	q.BeginGeneration()
	q.Listed("50")
	q.EndGeneration()
	return q, known, q.Redeliver("", 0, atOnce, doubt)
}

func replaced(key, resourceVersion string) deltaqueue.Delta {
	return deltaqueue.Delta{Type: cache.Replaced, Key: key, Version: version(resourceVersion), Object: resourceVersion, Bytes: 1}
}

func updated(key, resourceVersion string) deltaqueue.Delta {
	d := replaced(key, resourceVersion)
	d.Type = cache.Updated
	return d
}

// What a list shows in version 7 is put again only if that is what the consumer has acknowledged.
func TestRedeliveryJudgesWhatAListShows(t *testing.T) {
	for name, c := range map[string]struct {
		known string
		put   []deltaqueue.Delta
		take  bool
		doubt bool
		want  deltaqueue.Standing
	}{
		"the same":                          {known: "7", want: deltaqueue.Repeatable},
		"a newer one":                       {known: "8", want: deltaqueue.Past},
		"an older one":                      {known: "6", want: deltaqueue.Ahead},
		"none":                              {want: deltaqueue.Ahead},
		"the same, and a newer one waits":   {known: "7", put: []deltaqueue.Delta{updated("k", "8")}, want: deltaqueue.Coming},
		"the same, and its end waits":       {known: "7", put: []deltaqueue.Delta{{Type: cache.Deleted, Key: "k", Version: version("8")}}, want: deltaqueue.Coming},
		"a newer one is with the consumer":  {known: "7", put: []deltaqueue.Delta{updated("k", "8")}, take: true, want: deltaqueue.Coming},
		"the same is with the consumer":     {known: "6", put: []deltaqueue.Delta{updated("k", "7")}, take: true, want: deltaqueue.Repeatable},
		"an older one is with the consumer": {known: "5", put: []deltaqueue.Delta{updated("k", "6")}, take: true, want: deltaqueue.Ahead},
		"nobody knows what it has":          {known: "7", doubt: true, want: deltaqueue.Doubtful},
	} {
		t.Run(name, func(t *testing.T) {
			q, known, r := redelivering(t, 1, func(string) (bool, *api.DeadLetter) { return c.doubt, nil })
			if c.known != "" {
				known.Set("k", version(c.known), 0)
			}
			for _, d := range c.put {
				require.NoError(t, q.Put(t.Context(), d))
			}
			if c.take {
				_, err := q.Take(t.Context())
				require.NoError(t, err)
			}
			got, err := r.Judge(t.Context(), "k", version("7"))
			require.NoError(t, err)
			require.Equal(t, c.want, got)
		})
	}
}

// Repeats are taken behind all that a producer has put, the resume point does not wait for them, and
// a change takes the place of one.
func TestRepeatsAreTakenLast(t *testing.T) {
	q, known, r := redelivering(t, 10, nil)
	for _, key := range []string{"a", "b", "c"} {
		known.Set(key, version("7"), 0)
		standing, err := r.Judge(t.Context(), key, version("7"))
		require.NoError(t, err)
		require.Equal(t, deltaqueue.Repeatable, standing)
		standing, err = r.Put(t.Context(), replaced(key, "7"))
		require.NoError(t, err)
		require.Equal(t, deltaqueue.Coming, standing)
	}
	q.Observed(rv.At("60"), 0)
	require.Equal(t, "60", q.ResumePoint())
	require.True(t, q.Drained())
	require.NoError(t, q.Put(t.Context(), updated("z", "61")))
	require.NoError(t, q.Put(t.Context(), updated("b", "62")))
	q.Observed(rv.At("62"), 0)
	require.Equal(t, "60", q.ResumePoint())
	batch, err := q.TakeBatch(t.Context(), nil, 10)
	require.NoError(t, err)
	var keys []string
	for _, e := range batch {
		keys = append(keys, e.Key)
		require.Equal(t, e.Key == "a" || e.Key == "c", e.IsRepeat(), e.Key)
		require.Equal(t, e.Key != "z", e.Again(), e.Key)
	}
	require.Equal(t, []string{"z", "b", "a", "c"}, keys)
	after, done := r.Position()
	require.Empty(t, after)
	require.Zero(t, done)
	q.Done(batch[0])
	require.Equal(t, "60", q.ResumePoint())
	q.Done(batch[1])
	require.Equal(t, "62", q.ResumePoint(), "two repeats are with the consumer")
	q.Done(batch[2])
	after, done = r.Position()
	require.Equal(t, "b", after)
	require.EqualValues(t, 2, done)
	require.NoError(t, q.Put(t.Context(), updated("c", "63")))
	require.Equal(t, "62", q.ResumePoint())
	q.Postpone(batch[3:], 0, false)
	require.Equal(t, "62", q.ResumePoint(), "the repeat has become that change")
	e, err := q.Take(t.Context())
	require.NoError(t, err)
	require.Equal(t, version("63"), e.Version)
	require.False(t, e.IsRepeat())
	q.Done(e)
	require.NoError(t, r.Settled(t.Context()))
	after, done = r.Position()
	require.Equal(t, "c", after)
	require.EqualValues(t, 3, done)
	_, bytes := q.Len()
	require.Zero(t, bytes)
}

// Few keys are owed at a time, and none while a generation is under way.
func TestRedeliveryWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, known, r := redelivering(t, 1, nil)
		ctx, cancel := context.WithCancel(t.Context())
		put := 0
		done := make(chan error, 1)
		go func() {
			for {
				key := string(rune('a'+put/26)) + string(rune('a'+put%26))
				known.Set(key, version("7"), 0)
				if _, err := r.Judge(ctx, key, version("7")); err != nil {
					done <- err
					return
				}
				if _, err := r.Put(ctx, replaced(key, "7")); err != nil {
					done <- err
					return
				}
				put++
			}
		}()
		synctest.Wait()
		require.Equal(t, 64, put)
		q.BeginGeneration()
		e, err := q.Take(t.Context())
		require.NoError(t, err)
		shown(q, e.Key, version("7"))
		q.Done(e)
		synctest.Wait()
		require.Equal(t, 64, put)
		q.EndGeneration()
		synctest.Wait()
		require.Equal(t, 65, put)
		cancel()
		require.ErrorIs(t, <-done, context.Canceled)
	})
}

// What the server has now settles a doubt, unless the consumer has refused something newer, or the
// watch has not come so far. A generation meanwhile needs another answer, and so does a refusal.
func TestRenewSettlesADoubt(t *testing.T) {
	gone := deltaqueue.Delta{Type: cache.Deleted, Key: "k"}
	for name, c := range map[string]struct {
		known, refused string // refused is the newest state that is
		refusedEnd     bool
		certain, named bool
		d              deltaqueue.Delta
		at             string
		listed, buried bool // meanwhile
		want           deltaqueue.Standing
	}{
		"the refused state":            {known: "7", refused: "8", d: replaced("k", "8"), at: "8", want: deltaqueue.Coming},
		"a newer state":                {known: "7", refused: "8", d: replaced("k", "9"), at: "9", want: deltaqueue.Coming},
		"beyond the watch":             {known: "7", refused: "8", d: replaced("k", "51"), at: "51", want: deltaqueue.Ahead},
		"older than what is refused":   {known: "7", refused: "9", d: replaced("k", "8"), at: "8", want: deltaqueue.Past},
		"older than what is known":     {known: "7", d: replaced("k", "6"), at: "6", want: deltaqueue.Past},
		"gone":                         {known: "7", refused: "8", d: gone, at: "50", want: deltaqueue.Coming},
		"gone, and not known":          {refused: "8", d: gone, at: "50", want: deltaqueue.Coming},
		"gone beyond the watch":        {known: "7", refused: "8", d: gone, at: "51", want: deltaqueue.Ahead},
		"gone, as was refused":         {known: "7", refused: "8", refusedEnd: true, d: gone, at: "51", want: deltaqueue.Coming},
		"gone before the refusal":      {refused: "60", d: gone, at: "50", want: deltaqueue.Past},
		"gone before another came":     {known: "7", refused: "60", refusedEnd: true, d: gone, at: "50", want: deltaqueue.Past},
		"between two that are refused": {known: "7", refused: "49", refusedEnd: true, d: replaced("k", "48"), at: "48", want: deltaqueue.Past},
		"came in its place":            {known: "7", refused: "another", refusedEnd: true, d: replaced("k", "another"), at: "another", want: deltaqueue.Coming},
		"gone, and nothing in doubt":   {certain: true, d: gone, at: "50", want: deltaqueue.Past},
		"gone, named":                  {certain: true, named: true, d: gone, at: "50", want: deltaqueue.Coming},
		"gone, named, and still known": {certain: true, named: true, known: "7", d: gone, at: "50", want: deltaqueue.Ahead},
		"after another list":           {known: "7", refused: "8", d: replaced("k", "8"), at: "8", listed: true, want: deltaqueue.Doubtful},
		"after another refusal":        {known: "7", refused: "8", buried: true, d: replaced("k", "8"), at: "8", want: deltaqueue.Doubtful},
	} {
		t.Run(name, func(t *testing.T) {
			letter := &api.DeadLetter{Type: api.Updated, ResourceVersion: c.refused, Newest: c.refused}
			if c.refusedEnd {
				letter.Type, letter.ResourceVersion = api.Deleted, c.known
			}
			q, known, r := redelivering(t, 1, func(string) (bool, *api.DeadLetter) { return !c.certain, letter })
			if c.known != "" {
				known.Set("k", version(c.known), 0)
			}
			require.NoError(t, r.Expect(t.Context(), "k"))
			asked, err := r.Ask(t.Context(), "k")
			require.NoError(t, err)
			if c.listed {
				q.BeginGeneration()
				q.EndGeneration()
			}
			if c.buried {
				letter = &api.DeadLetter{}
			}
			got, err := r.Renew(t.Context(), c.d, c.at, asked, c.named)
			require.NoError(t, err)
			require.Equal(t, c.want, got)
			entries, _ := q.Len()
			require.Equal(t, got == deltaqueue.Coming, entries == 1)
			after, _ := r.Position()
			require.Equal(t, got == deltaqueue.Coming || got == deltaqueue.Doubtful, after == "")
		})
	}
}

// A call that was under way may return between Judge and Put, or between Expect and Renew. The
// position does not pass the key.
func TestPositionDoesNotPassWhatIsYetToBePut(t *testing.T) {
	for _, way := range []string{"list", "key"} {
		t.Run(way, func(t *testing.T) {
			q, known, r := redelivering(t, 1, nil)
			known.Set("k", version("6"), 0)
			require.NoError(t, q.Put(t.Context(), updated("k", "7")))
			e, err := q.Take(t.Context())
			require.NoError(t, err)
			put := r.Put
			if way == "list" {
				standing, err := r.Judge(t.Context(), "k", version("7"))
				require.NoError(t, err)
				require.Equal(t, deltaqueue.Repeatable, standing)
			} else {
				require.NoError(t, r.Expect(t.Context(), "k"))
				asked, err := r.Ask(t.Context(), "k")
				require.NoError(t, err)
				put = func(ctx context.Context, d deltaqueue.Delta) (deltaqueue.Standing, error) {
					return r.Renew(ctx, d, "50", asked, false)
				}
			}
			q.Done(e)
			standing, err := put(t.Context(), replaced("k", "7"))
			require.NoError(t, err)
			require.Equal(t, deltaqueue.Coming, standing)
			after, done := r.Position()
			require.Empty(t, after, "k waits to be delivered again")
			require.Zero(t, done)
		})
	}
}

// A redelivery may judge a key while the consumer has its entry: the race detector watches.
func TestJudgeBesideTheConsumer(t *testing.T) {
	q, _, r := redelivering(t, 1, nil)
	require.NoError(t, q.Put(t.Context(), deltaqueue.Delta{Type: cache.Deleted, Key: "k", Version: version("55")}))
	e, err := q.Take(t.Context())
	require.NoError(t, err)
	judged := make(chan error)
	go func() {
		_, err := r.Judge(t.Context(), "k", version("54"))
		judged <- err
	}()
	require.False(t, e.Again())
	require.NoError(t, <-judged)
	q.Done(e)
	require.NoError(t, r.Settled(t.Context()))
}
