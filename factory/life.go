package factory

import (
	"context"
	"slices"
	"time"

	"github.com/rvinformer/informer/internal/leaf/claims"
)

// stage is how far a life is. It only moves on.
type stage int

const (
	building stage = iota // newFunc has not returned
	idle                  // not started
	queued                // it was started, and waits for its turn
	running               // the informer runs
	ended                 // its goroutine has ended, or will never be
)

// life is one informer from newFunc to its end. A client-go informer runs once,
// hence each start after a stop is another life under the same key.
type life struct {
	key       Key
	transform Transform
	// done is closed when the life is ended.
	done chan struct{}
	// claim is what its informer is claimed by while it runs; nil where no others can run
	// it. It is set while the stage is building.
	claim claims.Identity
	// trouble is what the informer's watch error handler was told.
	trouble trouble

	// The rest is guarded by the factory's lock.

	stage stage
	// built is closed when newFunc has returned, or panicked; nil from then on.
	built chan struct{}
	// informer is there from idle to running, so that what has ended holds no objects.
	informer Informer
	// synced is closed when it has synced; nil while the stage is building.
	synced <-chan struct{}
	// users counts the leases that are not released.
	users int
	// until has, of each of them that was started by StartUntil, what is closed when its
	// context has ended.
	until []<-chan struct{}
	// pinned tells that it was given to a user that never gives it back (InformerFor).
	pinned bool
	// removed tells that the factory was told to let go of it: no wait for a sync includes
	// it.
	removed bool
	// stopped tells that others ran the informer, and have stopped it.
	stopped bool
	// started is when it was started, zero before.
	started time.Time
	// cancel ends ctx, with which the informer runs.
	ctx    context.Context
	cancel context.CancelFunc
	// stop ends the life when it is closed; nil: only the factory ends it.
	stop <-chan struct{}
	// failed is how the informer failed when it ended.
	failed failing
}

func newLife(key Key, t Transform) *life {
	return &life{key: key, transform: t, built: make(chan struct{}), done: make(chan struct{})}
}

// over reports whether the informer has ended, or was told to by its stop channel, or by
// others that ran it, or is about to, because each of its users has left: it is of no use to
// the next request.
func (l *life) over() bool {
	return l.stage == ended || l.active() && (isClosed(l.stop) || l.stopped || l.abandoned())
}

// abandoned reports whether the context of each lease has ended, so that all that is missing
// are their Releases.
func (l *life) abandoned() bool {
	return !l.pinned && len(l.until) > 0 && len(l.until) == l.users &&
		!slices.ContainsFunc(l.until, func(end <-chan struct{}) bool { return !isClosed(end) })
}

// active reports whether the life has a goroutine.
func (l *life) active() bool { return l.stage == queued || l.stage == running }

// end moves to ended.
func (l *life) end() {
	l.stage, l.informer = ended, nil
	close(l.done)
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
