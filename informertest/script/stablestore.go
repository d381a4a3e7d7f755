package script

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/informertest/oracle"
	"github.com/rvinformer/informer/internal/leaf/backoff"
	"github.com/rvinformer/informer/internal/leaf/checkpoint"
	"github.com/rvinformer/informer/internal/testkit/savedstate"
)

// readCheckpoint reads a checkpoint. A torn end of its journal is an error.
func readCheckpoint(r io.Reader) (*savedstate.Content, error) {
	content, err := savedstate.Read(r)
	if err == nil {
		err = content.Torn
	}
	if err != nil {
		return nil, fmt.Errorf("reading the checkpoint: %w", err)
	}
	return content, nil
}

// checkpointStore is the checkpoint as the informers of a script share it, in memory, seen from one
// process.
type checkpointStore struct{ *process }

var _ informer.CheckpointStore = checkpointStore{}

func (s checkpointStore) Load(context.Context) (io.ReadCloser, error) {
	content := s.stableStore.content()
	if content == nil {
		return nil, fs.ErrNotExist
	}
	return io.NopCloser(bytes.NewReader(content)), nil
}

// longestSave is how long a checkpoint may take to be saved.
const longestSave = 200 * time.Millisecond

func (s checkpointStore) Save(ctx context.Context, write func(io.Writer) error) (err error) {
	defer func() { s.tried(err) }()
	begun := len(s.stableStore.content())
	var b bytes.Buffer
	if err := write(&b); err != nil {
		return err
	}
	if err := backoff.Sleep(ctx, s.dice.duration(longestSave)); err != nil { // events are acknowledged meanwhile
		return err
	}
	content, err := readCheckpoint(bytes.NewReader(b.Bytes()))
	switch {
	case err != nil:
		return err
	case !s.burn():
		return errDead
	case s.dice.one(int(s.stableStore.oneFails.Load())):
		return errScript
	}
	kept := s.ifAlive(func() {
		s.stableStore.put(b.Bytes(), begun)
		err = s.bury()
		s.oracle.Claimed(oracle.FromCheckpoint, content.Resume)
	})
	if !kept {
		return errDead
	}
	if err != nil {
		return err
	}
	s.burn()
	return nil
}

// journaledStore is a checkpointStore with a journal, which does not fail.
type journaledStore struct{ checkpointStore }

var _ informer.CheckpointAppender = journaledStore{}

func (s journaledStore) Append(ctx context.Context, b []byte) error {
	added, err := readCheckpoint(bytes.NewReader(slices.Concat(noEntries, b)))
	switch {
	case err != nil:
		return err
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case !s.burn():
		return errDead
	}
	kept := s.ifAlive(func() {
		s.stableStore.add(b)
		err = s.bury()
		if added.Journaled {
			s.oracle.Claimed(oracle.FromCheckpoint, added.Resume)
			s.unsaved = false
		}
	})
	if !kept {
		return errDead
	}
	s.burn()
	return err
}

// bury tells the oracle of the dead letters that are in the store now.
func (s checkpointStore) bury() error {
	content, err := readCheckpoint(bytes.NewReader(s.stableStore.content()))
	if err == nil {
		s.oracle.Buried(content.Dead)
	}
	return err
}

func (s journaledStore) Sync(context.Context) error { return nil }

// noEntries is a checkpoint with nothing but room for a journal.
var noEntries = func() []byte {
	var b bytes.Buffer
	if err := checkpoint.NewJournaledWriter(&b).Close(); err != nil {
		panic(err)
	}
	return b.Bytes()
}()

// stableStore is where the checkpoint survives.
type stableStore struct {
	oneFails atomic.Int64 // in how many savings; 0: none

	mu    sync.Mutex
	bytes []byte // nil: none was saved
}

func (s *stableStore) content() []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.bytes
}

// put replaces what there was, but for what was added since it had that size.
func (s *stableStore) put(content []byte, size int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.bytes = append(content, s.bytes[size:]...)
}

func (s *stableStore) clear() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.bytes = nil
}

func (s *stableStore) add(b []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.bytes = slices.Concat(s.bytes, b)
}
