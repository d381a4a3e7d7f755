package fleet

import (
	"context"
	"sync"
	"time"
)

const (
	// maxDiscoveries is how many clusters are asked at a time. An answer takes up to a megabyte,
	// and some milliseconds of CPU.
	maxDiscoveries = 16
	// slotPatience is how long a discovery keeps others from being begun: one that takes longer
	// waits for its server, which costs nothing.
	slotPatience = 250 * time.Millisecond
)

// slots bound how many discoveries are under way.
type slots chan struct{}

// take waits for a slot. Release is to be called when it is used no more. The error is that of ctx.
func (s slots) take(ctx context.Context) (release func(), err error) {
	select {
	case s <- struct{}{}:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	giveBack := sync.OnceFunc(func() { <-s })
	timer := time.AfterFunc(slotPatience, giveBack)
	return func() {
		timer.Stop()
		giveBack()
	}, nil
}
