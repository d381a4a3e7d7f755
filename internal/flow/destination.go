package flow

import (
	"sync"
	"time"

	"github.com/rvinformer/informer/internal/deltaqueue"
)

// outage is for how long an event may fail while nothing tells whether the destination of the
// handler is there. A destination that is away for less makes no dead letter.
const outage = 15 * time.Minute

// destination is what the calls of a handler tell of where it puts things. A call that succeeds
// shows that the destination is there. A call that fails for events that have not failed before
// leaves that in doubt: it may have gone away. A call that fails again for events that have failed
// before tells nothing.
//
// There is none before the first failure.
type destination struct {
	mu    sync.Mutex
	state health
	// lone is the only key that has failed since the destination is in doubt, empty for several.
	lone string
}

// health is whether a destination is there.
type health int

const (
	// there: it has taken something in.
	there health = iota
	// inDoubt: something has failed since.
	inDoubt
)

// noteTaken notes a call that has taken something in.
func (f *Flow) noteTaken() {
	if d := f.destination.Load(); d != nil { // else it was never in doubt
		d.mu.Lock()
		defer d.mu.Unlock()
		d.state, d.lone = there, ""
	}
}

// noteRefused notes a call that has failed for these events, of which none is known to be to blame.
func (f *Flow) noteRefused(events []Sent) {
	if f.destination.Load() == nil {
		f.destination.CompareAndSwap(nil, &destination{})
	}
	d, first, fresh := f.destination.Load(), events[0].Entry, false
	for _, s := range events {
		fresh = fresh || s.Entry.Failure == nil
	}
	if !fresh {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case len(events) > 1, d.state == inDoubt && d.lone != first.Key:
		d.lone = ""
	default:
		d.lone = first.Key
	}
	d.state = inDoubt
}

// takesOthers reports whether the destination takes other things in than what has failed.
func (f *Flow) takesOthers() bool {
	d := f.destination.Load()
	if d == nil {
		return false
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.state == there
}

// blames reports whether an event that has failed by itself is to blame: the destination takes
// others in, or nothing else has failed for longer than an outage lasts.
func (f *Flow) blames(e *deltaqueue.Entry) bool {
	d := f.destination.Load()
	if d == nil {
		return false
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.state == there || d.lone == e.Key && hasLasted(e, outage)
}

// hasLasted reports whether the failures for an entry go on for so long.
func hasLasted(e *deltaqueue.Entry, long time.Duration) bool {
	return e.Failure != nil && time.Since(e.Failure.Since) >= long
}
