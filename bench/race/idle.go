package race

import (
	"context"
	"fmt"
	"time"

	"github.com/rvinformer/informer/bench/podserver/extra"
)

// crowd are informers of empty sets that run side by side.
type crowd struct {
	*trial
	members []*Following
}

// idleAround measures what informers of empty sets hold, beyond what the first
// of them does: that is with whom they share.
func (t *trial) idleAround(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	c := crowd{trial: t}
	defer c.wait()
	defer cancel()
	if err := c.grow(ctx, 1); err != nil {
		return err
	}
	before, err := held()
	if err != nil {
		return err
	}
	n := t.Limits.IdleInformers
	if err := c.grow(ctx, n); err != nil {
		return err
	}
	t.result.Objects = n
	after, err := held()
	if err != nil {
		return err
	}
	t.result.noteEach(before, after, n)
	return t.result.notePeakRSS()
}

// grow starts n informers, and returns when all watch.
func (c *crowd) grow(ctx context.Context, n int) error {
	first := len(c.members)
	for i := range n {
		c.members = append(c.members, c.source.Follow(ctx, Follow{
			Namespace: fmt.Sprintf("idle-%04d", first+i), Added: func(string) {}, Updated: func(string) {},
		}))
	}
	for _, f := range c.members[first:] {
		if err := done(ctx, f.Synced); err != nil {
			return err
		}
	}
	return c.watched(ctx)
}

func (c *crowd) wait() {
	for _, f := range c.members {
		f.Wait()
	}
}

// watched waits until the server has a watch for each.
func (c *crowd) watched(ctx context.Context) error {
	for c.Target.Control != "" {
		usage, err := extra.Control(ctx, c.Target.Control, extra.UsagePath)
		if err != nil {
			return err
		}
		if usage.Watches >= int64(len(c.members)) {
			break
		}
		time.Sleep(50 * time.Millisecond)
	}
	// The clients have to hear of it, and to let go of the buffers of their lists. A
	// real server says nothing of its watches; this is long enough there.
	time.Sleep(time.Second)
	return ctx.Err()
}
