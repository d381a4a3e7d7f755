package main

import (
	"context"
	"errors"
	"io"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// memoryStore keeps the names of the rows that were written, by transaction.
type memoryStore struct {
	batches [][]string
	fail    func(name string) error // asked for each change, if set
	takes   time.Duration           // for a transaction
	busy    bool
}

func (s *memoryStore) Apply(ctx context.Context, changes []change) error {
	if s.busy {
		return errors.New("two transactions at a time")
	}
	s.busy = true
	defer func() { s.busy = false }()
	select {
	case <-time.After(s.takes):
	case <-ctx.Done():
		return errors.New("interrupted")
	}
	var names []string
	for _, c := range changes {
		if s.fail != nil {
			if err := s.fail(c.name); err != nil {
				return err
			}
		}
		names = append(names, c.name)
	}
	s.batches = append(s.batches, names)
	return nil
}

func (s *memoryStore) SaveCheckpoint(ctx context.Context, _ place, _ string, _ func(io.Writer) error) error {
	return s.Apply(ctx, named("checkpoint"))
}

// said is what a writer said.
type said struct{ lines []string }

func (s *said) say(line string) { s.lines = append(s.lines, line) }

func named(names ...string) (changes []change) {
	for _, name := range names {
		changes = append(changes, change{name: name})
	}
	return changes
}

// Feeds that write side by side get their turn in the order of their arrival, and all of them.
func TestWriterKeepsTheOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		to := &memoryStore{takes: time.Second}
		w := newWriter("store", to, 1, nil)
		var writing sync.WaitGroup
		var want [][]string
		for i := range 100 {
			name := strings.Repeat("x", i)
			want = append(want, []string{name, "y"})
			writing.Go(func() { require.NoError(t, w.Write(t.Context(), named(name, "y")...)) })
			synctest.Wait()
		}
		writing.Wait()
		require.Equal(t, want, to.batches)
		require.NoError(t, w.Unwritten())
	})
}

// It is told once that writing fails, once for each other reason, and once that all is written that
// had failed, however many write side by side, and although some of them succeed meanwhile.
func TestWriterTellsAnOutageOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		full, broken := errors.New("disk full"), errors.New("disk broken")
		why := full
		to := &memoryStore{fail: func(name string) error {
			if strings.HasPrefix(name, "small") {
				return nil
			}
			return why
		}}
		var told said
		w := newWriter("store", to, 1, told.say)
		write := func(names ...string) error { return w.Write(t.Context(), named(names...)...) }

		require.NoError(t, write("small"))
		require.ErrorIs(t, write("a", "b"), full)
		require.EqualError(t, write("c"), "store: disk full")
		require.NoError(t, write("small"))
		why = broken
		require.ErrorIs(t, write("c"), broken)
		why = full
		require.ErrorIs(t, write("a", "b"), full)
		require.EqualError(t, w.Unwritten(), "store: 3 changes are not written, the next start fetches them again: disk full")

		time.Sleep(time.Minute)
		why = nil
		require.NoError(t, write("d"))
		require.NoError(t, write("b", "a"))
		require.Len(t, told.lines, 2, "c is missing yet")
		require.NoError(t, write("c", "d"))
		require.Equal(t, []string{
			"store: cannot write: disk full; the informers wait while it is tried again",
			"store: still cannot write: disk broken",
			"store: writing again, after 1m0s",
		}, told.lines)
		require.NoError(t, w.Unwritten())

		why = full
		require.Error(t, write("e"))
		require.Len(t, told.lines, 4, "a new outage is told again")
	})
}

// Rows of one name in two resources, or two clusters, are not one.
func TestWriterTellsRowsApart(t *testing.T) {
	why := errors.New("disk full")
	w := newWriter("store", &memoryStore{fail: func(string) error { return why }}, 1, func(string) {})
	here, there := put(place{cluster: "here", resource: pods}, "ns", "a", "1", "1"), put(place{cluster: "there", resource: pods}, "ns", "a", "1", "1")
	require.Error(t, w.Write(t.Context(), here))
	why = nil
	require.NoError(t, w.Write(t.Context(), there))
	require.ErrorContains(t, w.Unwritten(), "1 changes")
	require.NoError(t, w.Write(t.Context(), here))
	require.NoError(t, w.Unwritten())
}

// What is under way when the run ends is written, and what waits for its turn, but not for ever.
func TestWriterAtTheEnd(t *testing.T) {
	for _, tt := range []struct {
		name    string
		takes   time.Duration // a transaction
		ends    time.Duration // the last of three writes
		written int
		want    string
	}{
		{"quick", time.Second, 3 * time.Second, 3, ""},
		{"slow", 7 * time.Second, lastWrite + time.Second, 1,
			"changes are not written, the next start fetches them again: not done within 10s of the stop"},
		{"stuck", time.Hour, lastWrite + time.Second, 0,
			"changes are not written, the next start fetches them again: not done within 10s of the stop"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				to := &memoryStore{takes: tt.takes}
				var told said
				w := newWriter("store", to, 1, told.say)
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				began := time.Now()
				var writing sync.WaitGroup
				for _, name := range []string{"a", "b", "c"} {
					writing.Go(func() { _ = w.Write(ctx, named(name)...) })
				}
				writing.Wait()
				require.Equal(t, tt.ends, time.Since(began))
				require.Len(t, to.batches, tt.written)
				require.Empty(t, told.lines)
				if tt.want == "" {
					require.NoError(t, w.Unwritten())
				} else {
					require.ErrorContains(t, w.Unwritten(), tt.want)
				}
			})
		})
	}
}

// A store that does not answer holds up the end of a run for no longer than a last write and a last
// checkpoint.
func TestLastCheckpointIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var told said
		w := newWriter("store", &memoryStore{takes: time.Hour}, 1, told.say)
		run, cancel := context.WithCancel(t.Context())
		c := &checkpoint{writer: w, last: newLastCheckpoint(run)}
		cancel()
		synctest.Wait()
		began := time.Now()
		keeper, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		err := c.Save(keeper, func(io.Writer) error { return nil })
		require.ErrorContains(t, err, "not done within 10s of the stop")
		require.Equal(t, 2*lastWrite, time.Since(began))
		require.Empty(t, told.lines)
	})
}

// Insist tries until it succeeds, or says why it did not.
func TestWriterInsists(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		to := &memoryStore{fail: func(string) error { return errors.New("disk full") }}
		w := newWriter("store", to, 1, func(string) {})
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Minute, errors.New("no patience"))
		defer cancel()
		require.EqualError(t, w.Insist(ctx, named("a")...), "no patience: store: disk full")

		began := time.Now()
		to.fail = func(string) error {
			if time.Since(began) < time.Minute {
				return errors.New("disk full")
			}
			return nil
		}
		require.NoError(t, w.Insist(t.Context(), named("a")...))
		require.Equal(t, [][]string{{"a"}}, to.batches)
	})
}
