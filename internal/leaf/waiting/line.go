// Package waiting has the callers of WaitUntil: those that wait until a resource version, and all
// before it, has been taken in.
package waiting

import (
	"container/heap"
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rvinformer/informer/api"
	"github.com/rvinformer/informer/internal/leaf/rv"
)

// Line is the callers that wait for versions of one informer. The zero value has none. Its methods
// may be called from any goroutine, and under the locks of the informer: they wait for nothing.
type Line struct {
	// any tells that somebody waits.
	any atomic.Bool
	mu  sync.Mutex
	// unversioned tells that the newest list had no version, so that none is ever reached.
	unversioned bool
	// waiters is a heap by version, so that an event looks only at the callers whose version it
	// reaches, and at one more.
	waiters waiters
	// past is nil if the server's versions never went back.
	past *restore
}

// restore is what is known of a server whose versions went back.
type restore struct {
	at time.Time
	// from is the newest version before, and to the one of the list that was older.
	from, to string
}

// Waits reports whether there may be a caller. It costs a load, so that an informer can ask it at
// every event.
func (l *Line) Waits() bool { return l.any.Load() }

// Reach ends the waits for a version that is not newer than reached, up to which everything has
// been taken in. The informer calls it when that has moved on and Waits is true. Where reached has
// no order, all waits end with api.ErrUnorderedVersion; an empty one means that nothing is known
// yet.
func (l *Line) Reach(reached string) {
	if reached == "" || !l.Waits() {
		return
	}
	if !rv.Ordered(reached) {
		l.endAll(api.ErrUnorderedVersion)
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for len(l.waiters) > 0 && rv.NotNewer(l.waiters[0].resourceVersion, reached) {
		l.end(l.waiters[0], nil)
	}
}

// Stop ends all waits with api.ErrStopped.
func (l *Line) Stop() { l.endAll(api.ErrStopped) }

// Listed notes the newest version before a list, and that of the list. If the list is older, it ends
// all waits with api.ErrServerRestored: what they wait for may be of the state that is gone. If it
// has no version, it ends them with api.ErrUnorderedVersion.
func (l *Line) Listed(from, to string) {
	l.mu.Lock()
	l.unversioned = to == ""
	l.mu.Unlock()
	if to == "" {
		l.endAll(api.ErrUnorderedVersion)
	}
	if rv.Compare(to, from) != rv.Older {
		return
	}
	l.mu.Lock()
	l.past = &restore{at: time.Now(), from: rv.AtLeast(from, l.past.newest()), to: to}
	l.mu.Unlock()
	l.endAll(fmt.Errorf("%w from %s to %s", api.ErrServerRestored, from, to))
}

func (r *restore) newest() string {
	if r == nil {
		return ""
	}
	return r.from
}

// endAll ends all waits.
func (l *Line) endAll(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for len(l.waiters) > 0 {
		l.end(l.waiters[len(l.waiters)-1], err)
	}
}

// end takes a caller out of the line and ends its wait. The caller holds l.mu.
func (l *Line) end(w *waiter, err error) {
	heap.Remove(&l.waiters, w.place)
	w.done <- err
	l.any.Store(len(l.waiters) > 0)
}

// Wait is one call of WaitUntil.
type Wait struct {
	// Informer is for errors.
	Informer string
	// ResourceVersion is what to wait for.
	ResourceVersion string
	// Check calls Reach with what is reached, or Stop. It is called once, when the caller is in the
	// line.
	Check func()
	// Reached returns the version that is reached, for errors.
	Reached func() string
	// Gone, if set, is closed when the informer will not run any more.
	Gone <-chan struct{}
}

// Until waits until a version is reached. The error is an *Error.
func (l *Line) Until(ctx context.Context, w Wait) error {
	err := l.until(ctx, w)
	if err == nil {
		return nil
	}
	return &api.WaitError{Informer: w.Informer, ResourceVersion: w.ResourceVersion, Reached: w.Reached(), Err: err}
}

func (l *Line) until(ctx context.Context, w Wait) error {
	if !rv.Ordered(w.ResourceVersion) {
		return api.ErrUnorderedVersion
	}
	own := &waiter{resourceVersion: w.ResourceVersion, done: make(chan error, 1)}
	if !l.join(own) {
		return api.ErrUnorderedVersion
	}
	defer l.leave(own)
	w.Check()
	select { // what is reached is reached, whatever else has ended
	case err := <-own.done:
		return err
	default:
	}
	select {
	case err := <-own.done:
		return err
	case <-w.Gone:
		return api.ErrStopped
	case <-ctx.Done():
		return l.explain(ctx, w.ResourceVersion)
	}
}

// join adds a caller, unless no version is ever reached.
func (l *Line) join(w *waiter) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.unversioned {
		return false
	}
	heap.Push(&l.waiters, w)
	l.any.Store(true)
	return true
}

// leave takes a caller out of the line, if its wait has not ended.
func (l *Line) leave(w *waiter) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if w.place != nowhere {
		l.end(w, nil)
	}
}

// explain returns the error of a wait whose context has ended. It says so if the version may be of
// a state that the server has lost.
func (l *Line) explain(ctx context.Context, resourceVersion string) error {
	err := ctx.Err()
	if cause := context.Cause(ctx); cause != err {
		err = fmt.Errorf("%w: %w", err, cause)
	}
	l.mu.Lock()
	past := l.past
	l.mu.Unlock()
	if past != nil && rv.NotNewer(resourceVersion, past.from) {
		return fmt.Errorf("%w; the server was restored at %s, from version %s to %s: the version may be of the state before",
			err, past.at.Format(time.RFC3339), past.from, past.to)
	}
	return err
}
