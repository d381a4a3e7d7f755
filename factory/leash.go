package factory

import "context"

// leash makes a context of a stop channel, with one goroutine for all informers
// that were started with that channel.
type leash struct {
	stop <-chan struct{}
	ctx  context.Context
	// slip ends ctx.
	slip context.CancelFunc
	// lives counts those that run on it; of the factory's lock.
	lives int
}

func newLeash(stop <-chan struct{}) *leash {
	ctx, slip := context.WithCancel(context.Background())
	return &leash{stop: stop, ctx: ctx, slip: slip}
}

// hold ends the context when the channel is closed, and returns when the context has
// ended.
func (l *leash) hold() {
	select {
	case <-l.stop:
		l.slip()
	case <-l.ctx.Done():
	}
}
