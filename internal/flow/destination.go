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
// It is safe for concurrent use.
type destination struct {
	mu    sync.Mutex
	state health
	// lone is the only key that has failed since the destination is in doubt, empty for several.
	lone string
}

// health is whether a destination is there.
type health int

const (
	// untold: no call has returned yet.
	untold health = iota
	// there: it has taken something in.
	there
	// inDoubt: something has failed since.
	inDoubt
)

// succeeded notes a call that has taken something in.
func (d *destination) succeeded() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.state, d.lone = there, ""
}

// failed notes a call that has failed for these events, of which none is known to be to blame.
func (d *destination) failed(events []Sent) {
	first := events[0].Entry
	fresh := false
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

// isThere reports whether the destination takes other things in.
func (d *destination) isThere() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.state == there
}

// blames reports whether an event that has failed by itself is to blame: the destination takes
// others in, or nothing else has failed for longer than an outage lasts.
func (d *destination) blames(e *deltaqueue.Entry) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.state == there || d.lone == e.Key && hasLasted(e, outage)
}

// hasLasted reports whether the failures for an entry go on for so long.
func hasLasted(e *deltaqueue.Entry, long time.Duration) bool {
	return e.Failure != nil && time.Since(e.Failure.Since) >= long
}
