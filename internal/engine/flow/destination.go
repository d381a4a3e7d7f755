package flow

import (
	"sync"
	"time"

	"github.com/rvinformer/informer/internal/engine/deltaqueue"
)

// fresh is how long it counts that the destination has taken something in.
const fresh = time.Minute

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
	// calls counts the calls that have begun since there is a destination, and doubted is how many
	// had when it came to be in doubt.
	calls, doubted uint64
	// taken is when something was last taken in.
	taken time.Time
}

// health is whether a destination is there.
type health int

const (
	// there: it has taken something in.
	there health = iota
	// inDoubt: something has failed since.
	inDoubt
)

// beginCall returns the number of a call of the handler that begins, zero if the destination was
// never in doubt.
func (f *Flow) beginCall() (number uint64) {
	d := f.destination.Load()
	if d == nil {
		return 0
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.calls++
	return d.calls
}

// noteTaken notes a call that has taken something in. One that had begun before the destination came
// to be in doubt tells nothing.
func (f *Flow) noteTaken(number uint64) {
	d := f.destination.Load()
	if d == nil {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.state == there || number > d.doubted {
		d.state, d.lone, d.taken = there, "", time.Now()
	}
}

// noteRefused notes a call that has failed for these events. None of them is known to be to blame.
func (f *Flow) noteRefused(events []Sent) {
	if f.destination.Load() == nil {
		f.destination.CompareAndSwap(nil, &destination{})
	}
	d, first, news := f.destination.Load(), events[0].Entry, false
	for _, s := range events {
		news = news || s.Entry.Failure == nil
	}
	if !news {
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
	d.state, d.doubted = inDoubt, d.calls
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

// blames reports whether an event that has failed by itself is to blame: the destination has just
// taken others in, or nothing else has failed for longer than an outage lasts.
func (f *Flow) blames(e *deltaqueue.Entry) bool {
	d := f.destination.Load()
	if d == nil {
		return false
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.state == there && time.Since(d.taken) <= fresh {
		return true
	}
	return (d.state == there || d.lone == e.Key) && hasLasted(e, outage)
}

// hasLasted reports whether the failures for an entry go on for so long.
func hasLasted(e *deltaqueue.Entry, long time.Duration) bool {
	return e.Failure != nil && time.Since(e.Failure.Since) >= long
}
