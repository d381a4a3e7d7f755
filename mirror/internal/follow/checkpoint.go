package follow

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"io/fs"
	"sync/atomic"
	"time"

	"github.com/rvinformer/informer"
	format "github.com/rvinformer/informer/internal/leaf/checkpoint"
)

// lastWrite is how long after the end of a run its last checkpoint may take.
const lastWrite = 10 * time.Second

// checkpoint is that of the sink. It tells when it cannot be saved, and does not hold up the end of
// a run: a replica whose database does not answer so releases its units to the others before
// Kubernetes would kill it.
type checkpoint struct {
	informer.CheckpointStore
	feed     *feed
	hidden   bool                      // nothing of it is loaded but its cluster
	deadline atomic.Pointer[time.Time] // of the last save; nil until the run ends
}

// newCheckpoint returns the checkpoint of a feed for a run that ends with ctx.
func newCheckpoint(ctx context.Context, of informer.CheckpointStore, feed *feed, hidden bool) *checkpoint {
	c := &checkpoint{CheckpointStore: of, feed: feed, hidden: hidden}
	context.AfterFunc(ctx, func() {
		deadline := time.Now().Add(lastWrite)
		c.deadline.Store(&deadline)
	})
	return c
}

// String names the checkpoint in messages.
func (c *checkpoint) String() string { return fmt.Sprint(c.CheckpointStore) }

// Load loads the checkpoint, or one that names its cluster alone if it is hidden: another cluster deletes
// nothing then either.
func (c *checkpoint) Load(ctx context.Context) (io.ReadCloser, error) {
	saved, err := c.CheckpointStore.Load(c.limit(ctx))
	if err != nil || !c.hidden {
		return saved, err
	}
	defer saved.Close()
	head, err := io.ReadAll(io.LimitReader(saved, format.MaxHead))
	if err != nil {
		return nil, err
	}
	cluster := format.SourceOfHead(head).OfCluster()
	if cluster.Server == "" {
		return nil, fs.ErrNotExist
	}
	var alone bytes.Buffer
	err = format.WriteOf(cluster, &alone)
	return io.NopCloser(&alone), err
}

// Save saves the checkpoint.
func (c *checkpoint) Save(ctx context.Context, content func(io.Writer) error) error {
	ctx = c.limit(ctx)
	err := c.CheckpointStore.Save(ctx, content)
	c.feed.outage.note(ctx, c.feed.target, []informer.Event{{}}, err)
	return err
}

// limit returns a context that ends at the deadline, if the run has ended.
func (c *checkpoint) limit(ctx context.Context) context.Context {
	deadline := c.deadline.Load()
	if deadline == nil {
		return ctx
	}
	ctx, cancel := context.WithDeadline(ctx, *deadline)
	context.AfterFunc(ctx, cancel) // a reader that Load returns outlives the call
	return ctx
}
