package factory

import "context"

// turn lets the resource-version informers of one key run one after the other: the
// next request after a stop gets another informer at once, and that one runs when the
// former has ended. They may share what only one can use, a storage or a checkpoint.
//
// Others share nothing, and take no turns. A nil turn is always there for the taking.
// Client-go's informers, which may take a minute to end when their server refuses
// connections, would make others wait for it.
type turn struct {
	taken chan struct{} // holds one
	users int           // those that have it or wait for it; of the factory's lock
}

func newTurn() *turn { return &turn{taken: make(chan struct{}, 1)} }

// take waits for the turn, and reports whether it has come before ctx ended.
func (t *turn) take(ctx context.Context) bool {
	if ctx.Err() != nil || t == nil {
		return ctx.Err() == nil
	}
	select {
	case t.taken <- struct{}{}:
		return true
	case <-ctx.Done():
		return false
	}
}

func (t *turn) giveBack() {
	if t != nil {
		<-t.taken
	}
}
