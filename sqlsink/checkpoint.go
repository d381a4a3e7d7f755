package sqlsink

import (
	"bufio"
	"context"
	"errors"
	"io"
	"io/fs"

	"github.com/rvinformer/informer"
)

// checkpoint is where the informer of a place keeps its checkpoint: in the database.
//
// It says up to which resource version the rows are complete, and so it must not be newer than they
// are. A transaction that comes after theirs cannot be: a database that is deleted or restored from a
// backup loses both, and a power failure takes the newest transactions first. With a file beside the
// database, each of these would leave rows whose deletion would never be delivered.
type checkpoint struct{ Place }

var _ informer.CheckpointStore = checkpoint{}

// String names the checkpoint in messages.
func (c checkpoint) String() string { return c.at.String() + " in " + c.sink.String() }

// Load claims the unit of the place, and returns what was saved, if it goes with the rows.
func (c checkpoint) Load(ctx context.Context) (io.ReadCloser, error) {
	err := c.sink.db.Claim(ctx, c.at)
	var saved io.ReadCloser
	if err == nil {
		saved, err = c.sink.db.LoadCheckpoint(ctx, c.at)
	}
	if err != nil {
		return nil, notCut(c.sink.unread("checkpoint", c.at, err))
	}
	return loading{saved}, nil
}

// Save takes its turn among the batches, in the order of their arrival.
func (c checkpoint) Save(ctx context.Context, write func(io.Writer) error) error {
	return c.sink.write(ctx, c.at, func(ctx context.Context) error { return c.sink.db.SaveCheckpoint(ctx, c.at, write) })
}

// loading is a checkpoint as the database has it.
type loading struct{ io.ReadCloser }

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

// checkpointPart is about the size of a part of a checkpoint in bytes: small enough to hold, and
// large enough that there are few.
const checkpointPart = 256 << 10

// writeParts hands what write writes to keep, part by part.
func writeParts(write func(io.Writer) error, keep func(part int, data []byte) error) error {
	part := 0
	parts := bufio.NewWriterSize(writerFunc(func(data []byte) error {
		defer func() { part++ }()
		return keep(part, data)
	}), checkpointPart)
	if err := write(parts); err != nil {
		return err
	}
	return parts.Flush()
}

type writerFunc func(part []byte) error

func (f writerFunc) Write(b []byte) (int, error) {
	if err := f(b); err != nil {
		return 0, err
	}
	return len(b), nil
}

// parts reads a checkpoint from rows that have a part of it each, one after the other.
type parts struct {
	rows  partRows
	close func() error
	part  []byte
}

// partRows are rows of a database that have one column.
type partRows interface {
	Next() bool
	Scan(into ...any) error
	Err() error
}

// newParts reads the first part. The error is fs.ErrNotExist where there is none. After an error,
// the rows are closed.
func newParts(rows partRows, end func() error) (*parts, error) {
	r := &parts{rows: rows, close: end}
	if err := r.next(); err != nil {
		if err == io.EOF {
			err = fs.ErrNotExist
		}
		return nil, errors.Join(err, end())
	}
	return r, nil
}

func (r *parts) Read(b []byte) (int, error) {
	for len(r.part) == 0 {
		if err := r.next(); err != nil {
			return 0, err
		}
	}
	n := copy(b, r.part)
	r.part = r.part[n:]
	return n, nil
}

func (r *parts) next() error {
	if !r.rows.Next() {
		if err := r.rows.Err(); err != nil {
			return err
		}
		return io.EOF
	}
	return r.rows.Scan(&r.part)
}

func (r *parts) Close() error { return r.close() }
