package main

import (
	"context"
	"errors"
	"io"
	"io/fs"

	"github.com/rvinformer/informer"
)

// checkpoint is where the informer of a place keeps its checkpoint: in the database.
//
// It says up to which resource version the rows are complete, and so it must not be newer than they
// are. A transaction of the same connection, after theirs, cannot: whoever deletes the file, or
// restores it from a backup, does so with both, and a power failure takes the newest transactions
// first. With a file beside the database, each of these would leave rows whose deletion would never
// be delivered.
type checkpoint struct {
	place    place
	server   string // its address
	hidden   bool   // there is none to load
	database database
	writer   *writer
	last     *lastCheckpoint
}

var _ informer.CheckpointStore = (*checkpoint)(nil)

// Load returns what was saved, if it goes with the rows.
func (c *checkpoint) Load(ctx context.Context) (io.ReadCloser, error) {
	if c.hidden {
		return nil, fs.ErrNotExist
	}
	ctx, cancel := c.last.limit(ctx)
	saved, err := c.database.LoadCheckpoint(ctx, c.place)
	if err != nil {
		cancel()
		return nil, notCut(err)
	}
	return loading{saved, cancel}, nil
}

// loading is a checkpoint as the database has it.
type loading struct {
	io.ReadCloser
	cancel context.CancelFunc
}

func (l loading) Close() error {
	defer l.cancel()
	return l.ReadCloser.Close()
}

func (l loading) Read(b []byte) (int, error) {
	n, err := l.ReadCloser.Read(b)
	return n, notCut(err)
}

// notCut returns err without io.ErrUnexpectedEOF in it. An informer takes that for a checkpoint
// that was cut, and lists; drivers return it when the connection breaks, and then the checkpoint is
// to be loaded again.
func notCut(err error) error {
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return errors.New(err.Error())
	}
	return err
}

// Save takes its turn among the batches, in the order of their arrival.
func (c *checkpoint) Save(ctx context.Context, write func(io.Writer) error) error {
	ctx, cancel := c.last.limit(ctx)
	defer cancel()
	return c.writer.SaveCheckpoint(ctx, c.place, c.server, write)
}

// checkpointPart is about the size of a part of a checkpoint in bytes: small enough to hold, and
// large enough that there are few.
const checkpointPart = 256 << 10

type writerFunc func(part []byte) error

func (f writerFunc) Write(b []byte) (int, error) {
	if err := f(b); err != nil {
		return 0, err
	}
	return len(b), nil
}
