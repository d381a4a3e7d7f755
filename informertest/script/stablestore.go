package script

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"
	"sync"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/informertest/oracle"
	"github.com/rvinformer/informer/internal/checkpoint"
)

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

func (s checkpointStore) Save(ctx context.Context, write func(io.Writer) error) (err error) {
	defer func() { s.tried(err) }()
	begun := s.stableStore.size()
	var b bytes.Buffer
	if err := write(&b); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	claim, _, err := claimOf(b.Bytes())
	switch {
	case err != nil:
		return err
	case !s.burn():
		return errDead
	case s.dice.one(s.stableStore.oneFails()):
		return errScript
	}
	saved := s.ifAlive(func() {
		s.stableStore.put(b.Bytes(), begun)
		err = s.bury()
		s.oracle.Claimed(oracle.FromCheckpoint, claim)
	})
	if !saved {
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
	claim, claims, err := claimOf(slices.Concat(noEntries, b))
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
		if claims {
			s.oracle.Claimed(oracle.FromCheckpoint, claim)
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
	letters, err := s.stableStore.letters()
	if err == nil {
		s.oracle.Buried(letters)
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

// claimOf is the resource version in a checkpoint, and whether its journal has one.
func claimOf(content []byte) (claim string, journaled bool, err error) {
	return readBack(content, map[string]string{})
}

// readBack is claimOf, and adds the dead letters to letters: their resource versions, by key.
func readBack(content []byte, letters map[string]string) (claim string, journaled bool, err error) {
	r := checkpoint.NewReader(bytes.NewReader(content))
	for err == nil {
		_, _, err = r.Next()
	}
	claim = r.Metadata()["resourceVersion"]
	for errors.Is(err, io.EOF) {
		record, key, version, e := r.NextRecord()
		switch {
		case errors.Is(e, io.EOF) && r.Torn() == nil:
			return claim, journaled, nil
		case errors.Is(e, io.EOF):
			err = r.Torn()
		case e != nil:
			err = e
		case record == checkpoint.Resume:
			claim, journaled = strings.Clone(version.Version().ResourceVersion), true
		case record == checkpoint.Dead:
			letters[strings.Clone(key)] = strings.Clone(version.Version().ResourceVersion)
		case record == checkpoint.Acknowledged, record == checkpoint.Gone:
			delete(letters, key)
		}
	}
	return "", false, fmt.Errorf("reading back the checkpoint: %w", err)
}

// stableStore is where the checkpoint survives.
type stableStore struct {
	mu    sync.Mutex
	bytes []byte // nil: none was saved
	fails int    // one in how many savings; 0: none
}

func (s *stableStore) content() []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.bytes
}

func (s *stableStore) size() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.bytes)
}

// put replaces what there was, but for what was added since it had that size.
func (s *stableStore) put(content []byte, size int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.bytes = append(content, s.bytes[size:]...)
}

// letters are the dead letters that it has, by key.
func (s *stableStore) letters() (letters map[string]string, err error) {
	letters = map[string]string{}
	_, _, err = readBack(s.content(), letters)
	return letters, err
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

func (s *stableStore) oneFails() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.fails
}

func (s *stableStore) full(oneIn int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fails = oneIn
}
