package harness

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/internal/testkit/savedstate"
)

// MemoryCheckpoint is a CheckpointStore in memory. What is set of its functions is asked first.
type MemoryCheckpoint struct {
	// OnLoad returns what Load does, or ErrPass.
	OnLoad func(ctx context.Context) (io.ReadCloser, error)
	// OnSave may fail the n-th Save, from 1, or wait, before anything is written.
	OnSave func(ctx context.Context, n int) error

	mu sync.Mutex
	// Content is nil where nothing was saved yet.
	Content []byte
	// asked and done count the Saves that began and that succeeded.
	asked, done int
}

var _ informer.CheckpointStore = &MemoryCheckpoint{}

// Load implements CheckpointStore.
func (s *MemoryCheckpoint) Load(ctx context.Context) (io.ReadCloser, error) {
	if s.OnLoad != nil {
		if r, err := s.OnLoad(ctx); !errors.Is(err, ErrPass) {
			return r, err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.Content == nil {
		return nil, fs.ErrNotExist
	}
	return io.NopCloser(bytes.NewReader(s.Content)), nil
}

// Save implements CheckpointStore.
func (s *MemoryCheckpoint) Save(ctx context.Context, write func(io.Writer) error) error {
	s.mu.Lock()
	s.asked++
	n := s.asked
	s.mu.Unlock()
	if s.OnSave != nil {
		if err := s.OnSave(ctx, n); err != nil {
			return err
		}
	}
	var b bytes.Buffer
	if err := write(&b); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.Content = b.Bytes()
	s.done++
	return nil
}

// Attempts is how many Saves began.
func (s *MemoryCheckpoint) Attempts() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.asked
}

// Saves is how many Saves succeeded.
func (s *MemoryCheckpoint) Saves() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.done
}

// RequireListed requires that the first list is saved, and has Saves count from there as if that
// had taken one save. It takes two where the handler acknowledges the rest of the list during the
// first.
func (s *MemoryCheckpoint) RequireListed(t *testing.T) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	require.Contains(t, []int{1, 2}, s.done)
	s.done = 1
}

// Bytes are what is in it now.
func (s *MemoryCheckpoint) Bytes() []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	return bytes.Clone(s.Content)
}

// Put replaces what is in it.
func (s *MemoryCheckpoint) Put(content []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.Content = content
}

// Killed is a MemoryCheckpoint with what is in s now, for a process that goes on after one that
// used s was killed.
func (s *MemoryCheckpoint) Killed() *MemoryCheckpoint { return &MemoryCheckpoint{Content: s.Bytes()} }

// Lockable is a MemoryCheckpoint that only one may use at a time.
type Lockable struct {
	*MemoryCheckpoint
	mu     sync.Mutex
	locked bool
}

var _ informer.CheckpointLocker = &Lockable{}

// Lock implements CheckpointLocker.
func (l *Lockable) Lock() (func() error, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.locked {
		return nil, informer.ErrCheckpointInUse
	}
	l.locked = true
	return func() error {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.locked = false
		return nil
	}, nil
}

// IsLocked reports whether somebody uses it.
func (l *Lockable) IsLocked() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.locked
}

// ReadSaved reads a checkpoint, and its journal to the last whole record.
func ReadSaved(t testing.TB, content []byte) *savedstate.Content {
	t.Helper()
	s, err := savedstate.Read(bytes.NewReader(content))
	require.NoError(t, err)
	return s
}

// RequireSaved checks that a checkpoint has everything that the server has now.
func (w *World) RequireSaved(s *MemoryCheckpoint) {
	w.T.Helper()
	versions := w.Versions()
	now := ReadSaved(w.T, s.Bytes())
	require.Equal(w.T, w.ResourceVersion(), now.Resume)
	require.Equal(w.T, versions, now.State())
}

// RequireAwaited requires that an informer waits for another checkpoint, and says why.
func RequireAwaited(t *testing.T, i informer.ResourceVersionInformer, reason error) {
	t.Helper()
	status := i.Status()
	require.False(t, status.Synced)
	require.Equal(t, informer.PhaseBackoff, status.Phase)
	require.ErrorIs(t, status.LastError, reason)
	require.ErrorIs(t, status.CheckpointError, reason)
	require.Equal(t, informer.ReasonCheckpointFailing, status.Condition.Reason)
	require.Contains(t, status.Condition.Message, "nothing is delivered unless BeginAnew is set")
	var unused *informer.UnusedCheckpointError
	require.ErrorAs(t, status.CheckpointError, &unused)
	require.True(t, unused.NeverSaved)
	require.NotErrorAs(t, status.CheckpointError, new(*informer.StoreError), "the store is not to blame for its content")
}

// Lived follows the pods until the handler has acknowledged all of them, and returns the
// checkpoint that is left when it ends. What the handler was told is forgotten, but not
// the state that it has.
func (w *World) Lived(r *Recorder) *MemoryCheckpoint {
	w.T.Helper()
	s := &MemoryCheckpoint{}
	stop := w.Run(Follow(w, informer.InformerConfig{Handler: r, Checkpoint: s}))
	time.Sleep(10 * time.Second)
	stop()
	w.RequireSaved(s)
	w.ResetRequests()
	r.Forget()
	return s
}
