package cluster

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
)

// Churn writes at full speed until it is stopped: every writer has its own part
// of the names and creates, updates or deletes whichever comes by chance, so
// that each write is legal and names are used again.
type Churn struct {
	objects *Objects
	parts   [][]churned // one for each writer, which alone uses it
	cancel  context.CancelFunc
	wg      sync.WaitGroup

	mu      sync.Mutex
	writes  int64
	failed  error
	changed chan struct{} // closed and replaced when writes or failed changes
}

// churned is one name, and whether the server has an object under it.
type churned struct {
	name   string
	exists bool
}

// StartChurn begins to write with the given number of goroutines over the names
// that Fill(ctx, names) uses; existing says how many of them were filled. The
// caller owns it and must Stop it.
func (o *Objects) StartChurn(ctx context.Context, goroutines, names, existing int) *Churn {
	c := &Churn{
		objects: o,
		parts:   make([][]churned, goroutines),
		changed: make(chan struct{}),
	}
	for i := range names {
		part := &c.parts[i%goroutines]
		*part = append(*part, churned{name: Name(i), exists: i < existing})
	}
	c.Resume(ctx)
	return c
}

// Resume goes on writing after Stop.
func (c *Churn) Resume(ctx context.Context) {
	ctx, c.cancel = context.WithCancel(ctx)
	for _, part := range c.parts {
		c.wg.Go(func() { c.write(ctx, part) })
	}
}

func (c *Churn) write(ctx context.Context, part []churned) {
	for ctx.Err() == nil {
		if err := c.writeOne(&part[rand.IntN(len(part))]); err != nil {
			c.fail(err)
			return
		}
		c.mu.Lock()
		c.writes++
		c.changedLocked()
		c.mu.Unlock()
	}
}

// writeOne does not end with the context of the churn: whether a write that was
// given up took effect would be unknown.
func (c *Churn) writeOne(object *churned) error {
	ctx := context.Background()
	switch {
	case !object.exists:
		object.exists = true
		return c.objects.Create(ctx, object.name)
	case rand.IntN(3) == 0:
		object.exists = false
		return c.objects.Delete(ctx, object.name)
	default:
		return c.objects.Update(ctx, object.name, strconv.FormatInt(c.Writes(), 10))
	}
}

func (c *Churn) fail(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.failed == nil {
		c.failed = fmt.Errorf("churn: %w", err)
		c.changedLocked()
	}
}

func (c *Churn) changedLocked() {
	close(c.changed)
	c.changed = make(chan struct{})
}

// Writes counts the writes that have succeeded so far.
func (c *Churn) Writes() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.writes
}

// Await returns when at least n more writes have succeeded.
func (c *Churn) Await(ctx context.Context, n int64) error {
	until := c.Writes() + n
	for {
		c.mu.Lock()
		writes, failed, changed := c.writes, c.failed, c.changed
		c.mu.Unlock()
		if failed != nil {
			return failed
		}
		if writes >= until {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return fmt.Errorf("churn: waiting for write %d, now at %d: %w", until, writes, context.Cause(ctx))
		}
	}
}

// Stop ends the churn, waits for the last writes and returns the first error.
// Stopping again returns the same.
func (c *Churn) Stop() error {
	c.cancel()
	c.wg.Wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.failed
}
