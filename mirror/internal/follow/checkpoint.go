package follow

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"sync"
	"time"

	"github.com/rvinformer/informer"
)

// checkpoint is that of the sink. It tells when it cannot be saved, and does not hold up the end of
// a run.
type checkpoint struct {
	informer.CheckpointStore
	feed   *feed
	hidden bool // there is none to load
	last   *lastCheckpoint
}

// String names the checkpoint in messages.
func (c *checkpoint) String() string { return fmt.Sprint(c.CheckpointStore) }

// Load loads the checkpoint, unless it is hidden.
func (c *checkpoint) Load(ctx context.Context) (io.ReadCloser, error) {
	if c.hidden {
		return nil, fs.ErrNotExist
	}
	ctx, cancel := c.last.limit(ctx)
	saved, err := c.CheckpointStore.Load(ctx)
	if err != nil {
		cancel()
		return nil, err
	}
	return loading{saved, cancel}, nil
}

// loading is a checkpoint whose context ends when it is closed.
type loading struct {
	io.ReadCloser
	cancel context.CancelFunc
}

func (l loading) Close() error {
	defer l.cancel()
	return l.ReadCloser.Close()
}

// Save saves the checkpoint.
func (c *checkpoint) Save(ctx context.Context, content func(io.Writer) error) error {
	ctx, cancel := c.last.limit(ctx)
	defer cancel()
	err := c.CheckpointStore.Save(ctx, content)
	c.feed.note(ctx, slices.Values([]write{{target: c.feed.target}}), err)
	if err != nil {
		return &unsavedError{err}
	}
	return nil
}

// unsavedError says that a checkpoint was not saved, which the outage tells.
type unsavedError struct{ err error }

func (e *unsavedError) Error() string { return e.err.Error() }
func (e *unsavedError) Unwrap() error { return e.err }

// lastWrite is how long the last checkpoint of a run may take.
const lastWrite = 10 * time.Second

// lastCheckpoint limits how long the last checkpoint of a run may take. A replica whose database does
// not answer so releases its units to the others before Kubernetes would kill it.
type lastCheckpoint struct {
	mu       sync.Mutex
	deadline time.Time // zero until the run ends
}

// newLastCheckpoint is for a run that ends with ctx.
func newLastCheckpoint(ctx context.Context) *lastCheckpoint {
	l := &lastCheckpoint{}
	context.AfterFunc(ctx, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.deadline = time.Now().Add(lastWrite)
	})
	return l
}

// limit returns a context that ends at the deadline, if the run has ended.
func (l *lastCheckpoint) limit(ctx context.Context) (context.Context, context.CancelFunc) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.deadline.IsZero() {
		return ctx, func() {}
	}
	return context.WithDeadline(ctx, l.deadline)
}
