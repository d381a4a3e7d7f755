package script

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"sync"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/informertest/oracle"
	"github.com/rvinformer/informer/internal/checkpoint"
)

// checkpointStore is the checkpoint as the informers of a script share it, in memory, seen from one process.
type checkpointStore struct{ *process }

var _ informer.CheckpointStore = checkpointStore{}

func (s checkpointStore) Load(context.Context) (io.ReadCloser, error) {
	content := s.shelf.content()
	if content == nil {
		return nil, fs.ErrNotExist
	}
	return io.NopCloser(bytes.NewReader(content)), nil
}

func (s checkpointStore) Save(ctx context.Context, write func(io.Writer) error) (err error) {
	defer func() { s.tried(err) }()
	var b bytes.Buffer
	if err := write(&b); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	claim, err := claimOf(b.Bytes())
	switch {
	case err != nil:
		return err
	case !s.burn():
		return errDead
	case s.dice.one(s.shelf.oneFails()):
		return errScript
	}
	saved := s.ifAlive(func() {
		s.oracle.Claimed(oracle.FromCheckpoint, claim)
		s.shelf.put(b.Bytes())
	})
	if !saved {
		return errDead
	}
	s.burn()
	return nil
}

// claimOf is the resource version in a checkpoint.
func claimOf(content []byte) (string, error) {
	r := checkpoint.NewReader(bytes.NewReader(content))
	for {
		if _, _, err := r.Next(); errors.Is(err, io.EOF) {
			return r.Metadata()["resourceVersion"], nil
		} else if err != nil {
			return "", fmt.Errorf("reading back the checkpoint: %w", err)
		}
	}
}

// shelf is where the checkpoint survives.
type shelf struct {
	mu    sync.Mutex
	bytes []byte // nil: none was saved
	fails int    // one in how many savings; 0: none
}

func (s *shelf) content() []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.bytes
}

func (s *shelf) put(content []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.bytes = content
}

func (s *shelf) oneFails() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.fails
}

func (s *shelf) full(oneIn int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fails = oneIn
}
