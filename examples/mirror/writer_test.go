package main

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// memoryStore keeps the names of what was written, by batch.
type memoryStore struct {
	mu      sync.Mutex
	batches [][]string
	err     error
	entered chan struct{} // if set: Apply tells that it was called, and waits for leave
	leave   chan struct{}
}

func (s *memoryStore) Apply(_ context.Context, changes []change) error {
	if s.entered != nil {
		s.entered <- struct{}{}
		<-s.leave
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return s.err
	}
	var names []string
	for _, c := range changes {
		names = append(names, c.name)
	}
	s.batches = append(s.batches, names)
	return nil
}

func (s *memoryStore) setError(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.err = err
}

func (s *memoryStore) names() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var names []string
	for _, batch := range s.batches {
		names = append(names, batch...)
	}
	return names
}

// runWriter runs a writer until stop, which returns its error and what it said.
func runWriter(to store) (w *writer, cancel func(), stop func() (string, error)) {
	var said []string
	w = newWriter("store", to, func(line string) { said = append(said, line) })
	ctx, cancel := context.WithCancel(context.Background())
	var going sync.WaitGroup
	var err error
	going.Go(func() { err = w.Run(ctx) })
	return w, cancel, func() (string, error) {
		w.Close()
		going.Wait()
		cancel()
		return strings.Join(said, "\n"), err
	}
}

func TestWriterKeepsTheOrder(t *testing.T) {
	to := &memoryStore{}
	w, _, stop := runWriter(to)
	var want []string
	for i := range 3 * maxBatch {
		name := strings.Repeat("x", i%7+1)
		want = append(want, name)
		require.NoError(t, w.Put(t.Context(), change{name: name}))
	}
	said, err := stop()
	require.NoError(t, err)
	require.Empty(t, said)
	require.Equal(t, want, to.names())
	for _, batch := range to.batches {
		require.LessOrEqual(t, len(batch), maxBatch)
	}
}

// A batch that fails is repeated as it is; what comes behind it waits. It is told once that it fails, and once that it does
// not any more.
func TestWriterRepeatsAFailedBatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		to := &memoryStore{err: errors.New("disk full")}
		w, _, stop := runWriter(to)
		committed := 0
		for _, name := range []string{"a", "b", "c"} {
			require.NoError(t, w.Put(t.Context(), change{name: name, committed: func() { committed++ }}))
		}
		time.Sleep(time.Minute)
		require.Empty(t, to.names())
		require.Zero(t, committed)

		to.setError(errors.New("disk broken"))
		time.Sleep(time.Minute)
		to.setError(nil)
		require.NoError(t, w.Flush(t.Context()))
		require.Equal(t, 3, committed)

		said, err := stop()
		require.NoError(t, err)
		require.Equal(t, []string{"a", "b", "c", ""}, to.names()) // the last one is the barrier of Flush
		lines := strings.Split(said, "\n")
		require.Len(t, lines, 3)
		require.Equal(t, "store: cannot write: disk full; the informers wait while it is tried again", lines[0])
		require.Equal(t, "store: still cannot write: disk broken", lines[1])
		require.Contains(t, lines[2], "store: writing again, after 2m")
	})
}

// After the context has ended, each batch is tried once, and the error counts what is lost.
func TestWriterGivesUpAtTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		to := &memoryStore{err: errors.New("disk full")}
		w, cancel, stop := runWriter(to)
		require.NoError(t, w.Put(t.Context(), change{name: "a"}))
		synctest.Wait()
		require.NoError(t, w.Put(t.Context(), change{name: "b"}))
		cancel()
		_, err := stop()
		require.EqualError(t, err, "store: 2 changes are not written, the next start fetches them again: disk full")
	})
}

// What was put is written, even if the context has ended before its turn came.
func TestWriterFlushesAtTheEnd(t *testing.T) {
	to := &memoryStore{entered: make(chan struct{}), leave: make(chan struct{})}
	w, cancel, stop := runWriter(to)
	require.NoError(t, w.Put(t.Context(), change{name: "a"}))
	<-to.entered
	require.NoError(t, w.Put(t.Context(), change{name: "b"}))
	cancel()
	to.leave <- struct{}{}
	<-to.entered
	to.leave <- struct{}{}
	_, err := stop()
	require.NoError(t, err)
	require.Equal(t, []string{"a", "b"}, to.names())
}

// The bytes that wait are bounded; a handler that finds no room waits, but not longer than its context.
func TestWriterBoundsWhatWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		to := &memoryStore{entered: make(chan struct{}), leave: make(chan struct{})}
		w, _, stop := runWriter(to)
		huge := change{name: "huge", object: strings.Repeat("x", 2*maxWaiting)} // larger than all the room: it goes alone
		require.NoError(t, w.Put(t.Context(), huge))
		<-to.entered

		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Minute, errors.New("no patience"))
		defer cancel()
		require.EqualError(t, w.Put(ctx, change{name: "small"}), "no patience")

		going := make(chan error)
		go func() { going <- w.Put(t.Context(), change{name: "next"}) }()
		synctest.Wait()
		to.leave <- struct{}{}
		require.NoError(t, <-going)
		<-to.entered
		to.leave <- struct{}{}
		_, err := stop()
		require.NoError(t, err)
		require.Equal(t, []string{"huge", "next"}, to.names())
	})
}
