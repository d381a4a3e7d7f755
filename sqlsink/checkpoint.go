package sqlsink

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
)

// checkpoint is where the informer of a place keeps its checkpoint: in the database. With a file
// beside it, a backup that is restored would leave rows whose deletion would never be delivered.
type checkpoint struct{ Place }

// String names the checkpoint in messages.
func (c checkpoint) String() string { return c.at.String() + " in " + c.sink.String() }

// Load claims the unit of the place, and returns what was saved, if it goes with the rows. If nothing
// does, it returns which cluster the rows are of.
func (c checkpoint) Load(ctx context.Context) (io.ReadCloser, error) {
	if err := c.sink.claim(ctx, c.at); err != nil {
		return nil, failure(c.sink.unread(ctx, "checkpoint", c.at, err))
	}
	saved := &parts{load: func(part int) ([]byte, error) {
		data, err := c.sink.db.Checkpoint(ctx, c.at, part)
		if err != fs.ErrNotExist { // itself
			err = failure(c.sink.unread(ctx, "checkpoint", c.at, err))
		}
		return data, err
	}}
	err := saved.next()
	if err == fs.ErrNotExist {
		return c.ofCluster(ctx)
	}
	return io.NopCloser(saved), err
}

// Save takes its turn among the batches, in the order of their arrival.
func (c checkpoint) Save(ctx context.Context, write func(io.Writer) error) error {
	return c.sink.write(ctx, c.at, func(ctx context.Context) error { return c.sink.db.SaveCheckpoint(ctx, c.at, write) })
}

// failure returns err without the errors in it that say something about a checkpoint to an informer:
// that there is none, or that it was cut. It would list. Drivers return them too, for a socket that
// is not there while the server is down and a connection that breaks, and then the checkpoint is to
// be loaded again.
func failure(err error) error {
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, io.ErrUnexpectedEOF) {
		return errors.New(err.Error())
	}
	return err
}

// checkpointPart is about the size of a part of a checkpoint in bytes: small enough to hold, and
// large enough that there are few.
const checkpointPart = 256 << 10

// writeParts hands what write writes to keep, part by part.
func writeParts(write func(io.Writer) error, keep func(part int, data []byte) error) error {
	part := -1
	parts := bufio.NewWriterSize(partWriter(func(data []byte) error {
		part++
		return keep(part, data)
	}), checkpointPart)
	if err := write(parts); err != nil {
		return err
	}
	return parts.Flush()
}

// partWriter takes each write as a part.
type partWriter func(data []byte) error

func (keep partWriter) Write(data []byte) (int, error) { return len(data), keep(data) }

// parts reads a checkpoint part by part.
type parts struct {
	load func(part int) ([]byte, error) // the error is fs.ErrNotExist behind the last part
	part int                            // the next one
	rest bytes.Reader                   // of the one before
}

func (p *parts) next() error {
	data, err := p.load(p.part)
	if err == nil {
		p.rest.Reset(data)
		p.part++
	}
	return err
}

func (p *parts) Read(b []byte) (int, error) {
	for p.rest.Len() == 0 {
		if err := p.next(); errors.Is(err, fs.ErrNotExist) {
			return 0, io.EOF
		} else if err != nil {
			return 0, err
		}
	}
	return p.rest.Read(b)
}
