package main

import (
	"context"
	"sync"
	"time"
)

// lastCheckpoint is the time for the last checkpoint of a run: lastWrite from its end on to begin with it, and lastWrite more, as for all that
// is written. A replica whose database does not answer keeps its units from those that reach it for no longer than both, and has ended before
// Kubernetes would kill it.
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
