package factory

import "context"

// stopContext makes a context of a stop channel, with one goroutine for all informers
// that were started with that channel.
type stopContext struct {
	stop <-chan struct{}
	ctx  context.Context
	// slip ends ctx.
	slip context.CancelFunc
	// lives counts those that run on it; of the factory's lock.
	lives int
}

func newStopContext(stop <-chan struct{}) *stopContext {
	ctx, slip := context.WithCancel(context.Background())
	return &stopContext{stop: stop, ctx: ctx, slip: slip}
}

// hold ends the context when the channel is closed, and returns when the context has
// ended.
func (l *stopContext) hold() {
	select {
	case <-l.stop:
		l.slip()
	case <-l.ctx.Done():
	}
}
