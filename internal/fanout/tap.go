package fanout

import (
	"errors"

	"github.com/rvinformer/informer/internal/rv"
)

var (
	// ErrNothing says that there is nothing to read yet.
	ErrNothing = errors.New("nothing yet")
	// ErrLapsed says that a reader was too slow for the others: he goes on with a watch
	// of his own, from his ResourceVersion.
	ErrLapsed = errors.New("too slow for the others")
	// ErrWentBack says that a watch tells the state before the server went back.
	ErrWentBack = errors.New("another list shows that the server has gone back to an older version")
)

// Tap is one reader. Its methods but Ready belong to one goroutine.
type Tap[T any] struct {
	hub *Hub[T]
	// ready has an entry when there may be something to read.
	ready chan struct{}
	place
	// beginning tells that it reads the objects that there are, which have no place.
	beginning bool

	// The rest belongs to the hub's lock.

	// trunk is nil once the reader has left it, and left is why.
	trunk *trunk[T]
	left  error
	// next is the number of the next event of trunk, after the backlog.
	next int64
	// waits tells that it has asked for the next event, and there was none.
	waits bool
	// backlog are events of a trunk that was left.
	backlog []Event[T]
	// after, if set, is from where on the reader is on trunk: what is not newer it has
	// from elsewhere, and newest, if set, too.
	after, newest string
	// repeated, if set, is the newest event of a reader that goes on, which comes once more.
	repeated string
	// again, if set, is that of Expect for a reader whose watch has failed.
	again func()
}

// place is where a reader, or a watch, is.
type place struct {
	// passed is where it was before the newest event, and at is where it is then: where a
	// broken proxy lets events change places, one before at may be yet to come, but none
	// before passed.
	passed, at string
}

// move moves on to a resource version, which is empty if that is not known.
func (p *place) move(resourceVersion string) {
	p.passed, p.at = p.at, later(p.at, resourceVersion)
}

func newTap[T any](h *Hub[T], from place) *Tap[T] {
	r := &Tap[T]{hub: h, ready: make(chan struct{}, 1), place: from}
	if from.at != from.passed {
		r.repeated = from.at
	}
	return r
}

// Ready is sent to when there may be something to Take, where Take has returned ErrNothing.
func (r *Tap[T]) Ready() <-chan struct{} { return r.ready }

// Take returns the next event, whose Value is shared with other readers. The error is
// ErrNothing, ErrLapsed, ErrWentBack or that of the watch.
func (r *Tap[T]) Take() (Event[T], error) {
	r.hub.mu.Lock()
	defer r.hub.mu.Unlock()
	e, err := r.takeLocked()
	r.waits = err == ErrNothing
	switch {
	case r.waits:
		r.trunk.movedLocked() // it may be held up from now on
	case err != nil:
	case e.Begins:
		r.beginning, r.place = false, place{passed: e.ResourceVersion, at: e.ResourceVersion}
	case !r.beginning:
		r.move(e.ResourceVersion)
	}
	return e, err
}

func (r *Tap[T]) takeLocked() (e Event[T], err error) {
	if len(r.backlog) > 0 {
		e, r.backlog[0] = r.backlog[0], Event[T]{}
		if r.backlog = r.backlog[1:]; len(r.backlog) == 0 {
			r.backlog = nil
		}
		return e, nil
	}
	t := r.trunk
	if t == nil {
		return e, r.left
	}
	for r.next < t.last() {
		e = t.events[r.next-t.first]
		if r.next++; r.next == t.last() {
			t.dropLocked()
		}
		t.movedLocked()
		if !r.knows(e) {
			return e, nil
		}
	}
	if t.ended != nil {
		return e, t.ended
	}
	return Event[T]{}, ErrNothing
}

// knows reports whether the reader has an event from elsewhere. A bookmark of the version
// where he is shows that the watch is alive.
func (r *Tap[T]) knows(e Event[T]) bool {
	if e.ResourceVersion != "" && e.ResourceVersion == r.repeated && !e.Bookmark {
		r.repeated = "" // a deletion may carry the version of the state that it ended
		return true
	}
	if e.ResourceVersion != "" && e.ResourceVersion == r.newest {
		return !e.Bookmark
	}
	switch rv.Compare(e.ResourceVersion, r.after) {
	case rv.Older:
		return true
	case rv.Same:
		return !e.Bookmark
	}
	return false
}

// Bookmarks reports whether the watch that is read has brought a bookmark, and so is to
// bring more.
func (r *Tap[T]) Bookmarks() bool {
	r.hub.mu.Lock()
	defer r.hub.mu.Unlock()
	return r.trunk != nil && r.trunk.bookmarks
}

// Doubt keeps others from joining the watch that is read, which may be broken, until it
// brings something.
func (r *Tap[T]) Doubt() {
	r.hub.mu.Lock()
	defer r.hub.mu.Unlock()
	if r.trunk != nil {
		r.trunk.doubted = true
	}
}

// Again returns the func of Expect for a reader whose watch has failed, and nil for others. All
// readers of that watch are expected since the failure. The caller of Again is to call the func.
// Without Again, Close calls it.
func (r *Tap[T]) Again() (here func()) {
	r.hub.mu.Lock()
	defer r.hub.mu.Unlock()
	here, r.again = r.again, nil
	return here
}

// Close ends the reading, and the watch if no other reads it: it is closed then.
func (r *Tap[T]) Close() {
	r.hub.mu.Lock()
	t, here := r.trunk, r.again
	r.backlog, r.trunk, r.again = nil, nil, nil
	last := false
	if t != nil {
		t.detachLocked(r)
		last = len(t.taps) == 0
	}
	r.hub.mu.Unlock()
	if here != nil {
		here()
	}
	if last {
		<-t.done
	}
}

// leaveLocked has the reader go, and tells it why.
func (r *Tap[T]) leaveLocked(why error) {
	r.trunk.detachLocked(r)
	r.trunk, r.left = nil, why
	r.wakeLocked()
}

func (r *Tap[T]) wakeLocked() {
	select {
	case r.ready <- struct{}{}:
	default:
	}
}
