package journal_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rvinformer/informer/api"
	"github.com/rvinformer/informer/internal/engine/journal"
	"github.com/rvinformer/informer/internal/leaf/checkpoint"
	"github.com/rvinformer/informer/internal/leaf/keytable"
)

// store is a journal.Store in memory, behind an empty checkpoint.
type store struct {
	appended []byte
	fails    error
	synced   int
}

func (s *store) Append(_ context.Context, b []byte) error {
	if s.fails != nil {
		return s.fails
	}
	s.appended = append(s.appended, b...)
	return nil
}

func (s *store) Sync(context.Context) error {
	s.synced++
	return nil
}

// records are those that were appended, as "kind key".
func (s *store) records(t *testing.T) (records []string) {
	t.Helper()
	var b bytes.Buffer
	w := checkpoint.NewJournaledWriter(&b)
	require.NoError(t, w.Close())
	b.Write(s.appended)
	r := checkpoint.NewReader(&b)
	_, _, err := r.Next()
	require.Equal(t, io.EOF, err)
	names := map[checkpoint.Record]string{
		checkpoint.Begun: "begun", checkpoint.Acknowledged: "acknowledged", checkpoint.Gone: "gone", checkpoint.Resume: "resume",
	}
	for {
		kind, key, version, err := r.NextRecord()
		if err == io.EOF {
			return records
		}
		require.NoError(t, err)
		records = append(records, strings.TrimSpace(names[kind]+" "+key+" "+version.Version().ResourceVersion))
	}
}

func version(resourceVersion string) keytable.Version {
	return keytable.Version{ResourceVersion: resourceVersion}
}

// usable is a journal that goes on with one that was read.
func usable(s *store, begun ...string) *journal.Journal {
	j := journal.New(s, func(error) {})
	j.Continue(slices.Values(begun), 0, 0)
	return j
}

func TestKeysOfTheJournalBeforeNeedNotBeWrittenAgain(t *testing.T) {
	s := &store{}
	j := usable(s, "a")
	require.True(t, j.Has("a"))
	j.Begin(t.Context(), []string{"a", "b"})
	require.Equal(t, []string{"begun b"}, s.records(t))
	require.True(t, j.Has("b"))
}

func TestKeysAreWrittenBeforeTheyAreDelivered(t *testing.T) {
	s := &store{}
	j := usable(s)
	j.Begin(t.Context(), []string{"a", "b"})
	require.Equal(t, []string{"begun a", "begun b"}, s.records(t))
	require.True(t, j.Has("a"))
	j.Begin(t.Context(), []string{"a"})
	require.Len(t, s.records(t), 2, "it has a already")

	j.Acknowledge("a", version("7"), keytable.Comparison{})
	j.Forget("b", nil)
	require.False(t, j.Has("a"))
	require.Empty(t, j.Begun())
	require.Len(t, s.records(t), 2, "they are written with what comes next")
	require.NoError(t, j.Commit(t.Context(), "8", ""))
	require.Equal(t, []string{"begun a", "begun b", "acknowledged a 7", "gone b", "resume  8"}, s.records(t))
	require.Equal(t, 1, s.synced)
}

func TestAnUnchangedObjectIsNotWrittenUnlessItWasBegun(t *testing.T) {
	same := keytable.Comparison{Known: true, SameVersion: true, SameObject: true, Identified: true}
	s := &store{}
	j := usable(s, "begun")
	j.Acknowledge("listed", version("7"), same)
	j.Acknowledge("begun", version("7"), same)
	require.NoError(t, j.Commit(t.Context(), "", ""))
	require.Equal(t, []string{"acknowledged begun 7", "resume"}, s.records(t))
}

// The checkpoint may have the version of an object without its UID. The UID is then written as soon as
// it is known.
func TestAnObjectThatIsIdentifiedIsWritten(t *testing.T) {
	s := &store{}
	j := usable(s)
	j.Acknowledge("a", keytable.Version{ResourceVersion: "7", UID: "uid"}, keytable.Comparison{Known: true, SameVersion: true, SameObject: true})
	require.NoError(t, j.Commit(t.Context(), "", ""))
	require.Equal(t, []string{"acknowledged a 7", "resume"}, s.records(t))
}

func TestAKeyWithADeadLetterIsBegun(t *testing.T) {
	s := &store{}
	j := usable(s, "a")
	j.Forget("a", &api.DeadLetter{Key: "a"})
	require.Equal(t, []string{"a"}, j.Begun())
	require.False(t, j.Has("a"), "it is not written yet")
	require.NoError(t, j.Commit(t.Context(), "7", ""))
	require.True(t, j.Has("a"))
}

func TestAJournalTakesNothingBeforeASave(t *testing.T) {
	s := &store{}
	j := journal.New(s, func(error) {})
	j.Begin(t.Context(), []string{"a"})
	j.Acknowledge("b", version("7"), keytable.Comparison{})
	require.ErrorIs(t, j.Commit(t.Context(), "8", ""), journal.ErrUnusable)
	require.True(t, j.Full())
	require.Empty(t, s.appended)
	require.Equal(t, []string{"a"}, j.Begun())
}

// The save writes the keys that are begun itself, and what is recorded meanwhile follows it.
func TestTheFirstSaveWritesTheKeysThatAreBegun(t *testing.T) {
	s := &store{}
	j := journal.New(s, func(error) {})
	j.Begin(t.Context(), []string{"a"})
	r, err := j.Restart(t.Context(), reading("unsettled"))
	require.NoError(t, err)
	require.Empty(t, s.appended)
	s.appended = r.Tail
	require.ElementsMatch(t, []string{"begun a", "begun unsettled"}, s.records(t))
	require.False(t, j.Has("a"), "it is not saved yet")

	j.Acknowledge("a", version("7"), keytable.Comparison{})
	j.Saved(t.Context(), r, 100, nil)
	require.Equal(t, "acknowledged a 7", s.records(t)[2])
	require.True(t, j.Has("unsettled"))
	require.False(t, j.Full())
}

func TestASaveThatFailedLeavesTheJournalAsItWas(t *testing.T) {
	failed := errors.New("failed")
	s := &store{}
	j := journal.New(s, func(error) {})
	r, err := j.Restart(t.Context(), reading())
	require.NoError(t, err)
	j.Saved(t.Context(), r, 100, failed)
	require.ErrorIs(t, j.Commit(t.Context(), "", ""), journal.ErrUnusable)

	j = usable(s)
	r, err = j.Restart(t.Context(), reading())
	require.NoError(t, err)
	j.Saved(t.Context(), r, 100, failed)
	require.NoError(t, j.Commit(t.Context(), "", ""))
}

func TestAnAppendThatFailedEndsTheJournalUntilASave(t *testing.T) {
	s := &store{fails: errors.New("full")}
	var reported []error
	j := journal.New(s, func(err error) { reported = append(reported, err) })
	j.Continue(maps.Keys(map[string]bool{}), 0, 0)
	j.Begin(t.Context(), []string{"a"})
	require.Len(t, reported, 1)
	require.ErrorIs(t, reported[0], s.fails)
	require.False(t, j.Has("a"))
	require.True(t, j.Full())

	s.fails = nil
	r, err := j.Restart(t.Context(), reading())
	require.NoError(t, err)
	j.Saved(t.Context(), r, int64(len(r.Tail)), nil)
	require.True(t, j.Has("a"))
	require.False(t, j.Full())
}

func TestACommitThatFailedEndsTheJournalUntilASave(t *testing.T) {
	full := errors.New("full")
	s := &store{fails: full}
	j := usable(s)
	require.ErrorIs(t, j.Commit(t.Context(), "7", ""), full)
	s.fails = nil
	require.ErrorIs(t, j.Commit(t.Context(), "8", ""), journal.ErrUnusable, "the store may have a part of the records before")
	require.True(t, j.Full())
}

func TestARestartThatFailedLeavesTheKeysThatTheStoreHas(t *testing.T) {
	s := &store{fails: errors.New("full")}
	j := usable(s, "a")
	_, err := j.Restart(t.Context(), reading("a", "b"))
	require.ErrorIs(t, err, s.fails)
	require.True(t, j.Has("a"))
	require.False(t, j.Has("b"))
}

func TestAJournalIsFullWhenItIsLargerThanTheCheckpoint(t *testing.T) {
	const limit = 256 << 10
	j := journal.New(&store{}, func(error) {})
	j.Continue(maps.Keys(map[string]bool{}), limit, 0)
	require.False(t, j.Full())
	j.Begin(t.Context(), []string{"a"})
	require.True(t, j.Full())
	j.Continue(maps.Keys(map[string]bool{}), limit+1, limit+1)
	require.False(t, j.Full())
}

// A save replaces the records that were appended before. Their bytes do not count any more.
func TestASaveEmptiesAFullJournal(t *testing.T) {
	j := journal.New(&store{}, func(error) {})
	j.Continue(slices.Values([]string{}), 1<<20, 0)
	require.True(t, j.Full())
	r, err := j.Restart(t.Context(), reading())
	require.NoError(t, err)
	j.Saved(t.Context(), r, 100, nil)
	require.False(t, j.Full())
}

// The records that a new journal begins with do not make it full. Only the records behind them count.
func TestAJournalMayBeginWithMoreThanTheCheckpoint(t *testing.T) {
	keys := make([]string, 1000)
	for i := range keys {
		keys[i] = fmt.Sprintf("a/%01000d", i)
	}
	j := journal.New(&store{}, func(error) {})
	require.True(t, j.Begin(t.Context(), keys))
	r, err := j.Restart(t.Context(), reading())
	require.NoError(t, err)
	j.Saved(t.Context(), r, 500, nil)
	require.False(t, j.Full())
	require.True(t, j.Begin(t.Context(), []string{fmt.Sprintf("b/%01000d", 0)}))
	require.True(t, j.Full())
}

// reading reads these unsettled keys, and no dead letters.
func reading(unsettled ...string) func(func([]string, []api.DeadLetter)) {
	return func(begin func([]string, []api.DeadLetter)) { begin(unsettled, nil) }
}

// ending is a store that does nothing once the context has ended.
type ending struct{}

func (ending) Append(ctx context.Context, _ []byte) error { return context.Cause(ctx) }
func (ending) Sync(ctx context.Context) error             { return context.Cause(ctx) }

// Once the run has ended, no handler may be called for what is not written, also after an append that
// has failed with that.
func TestNothingBeginsAfterTheEnd(t *testing.T) {
	for range 50 { // whether an append is tried is up to a select
		j := journal.New(ending{}, func(error) {})
		j.Continue(slices.Values([]string{}), 0, 0)
		ctx, cancel := context.WithCancel(t.Context())
		require.True(t, j.Begin(ctx, []string{"a/0"}))
		cancel()
		require.False(t, j.Begin(ctx, []string{"a/1"}))
		require.False(t, j.Begin(ctx, []string{"a/2"}))
		require.True(t, j.Begin(ctx, []string{"a/0"}), "it was written before")
	}
}
