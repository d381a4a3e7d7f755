package main

import (
	"context"
	"sync"
	"time"
)

// lastCheckpoint limits how long the last checkpoint of a run may take: it is loaded within
// lastWrite of the end of the run, and saved within twice that, because a save may outlast its
// context by lastWrite, as every write does. A replica whose database does not answer so releases
// its units to the others before Kubernetes would kill it.
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
