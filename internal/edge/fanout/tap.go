package fanout

import (
	"errors"

	"github.com/rvinformer/informer/internal/leaf/rv"
)

var (
	// ErrNothing says that there is nothing to read yet.
	ErrNothing = errors.New("nothing yet")
	// ErrLapsed says that a reader was too slow for the others: he goes on with a watch
	// of his own, from his ResourceVersion.
	ErrLapsed = errors.New("too slow for the others")
	// ErrNotResumed says that a watch may have left out what was deleted before it.
	ErrNotResumed = errors.New("the server does not go on from a version")
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
	// after, if set, is from where on the reader is on trunk: it has what trunk tells up to there.
	after since
	// repeated are events that it had before it went on, and joined those that it had on another
	// trunk.
	repeated, joined repeated
	// again, if set, is that of Expect for a reader whose watch has failed.
	again func()
}

// place is where a reader, or a watch, is.
type place struct {
	// at is the resource version of the newest event, and passed the one before it. A broken proxy
	// lets events change places: one before at may be yet to come, but none before passed. And more
	// events of the version at may come: etcd deletes what a lease holds in one version.
	passed, at string
	// events counts the events of the version at, without bookmarks.
	events int
}

// at returns the place of what has had everything up to a resource version.
func at(resourceVersion string) place { return place{passed: resourceVersion, at: resourceVersion} }

// move moves on to an event, whose resource version is empty if it is not known. One without an
// order says nothing after one with an order. A watch that began without a place gets none.
func (p *place) move(resourceVersion string, bookmark bool) {
	order := rv.Compare(resourceVersion, p.at)
	switch {
	case resourceVersion == p.at && !bookmark:
	case rv.Moves(p.at, resourceVersion) && resourceVersion != p.at:
		*p = place{passed: p.at, at: resourceVersion}
	case resourceVersion == p.at, order == rv.Older: // a bookmark, or an event that has changed places
		p.passed = p.at
	}
	if resourceVersion == p.at && !bookmark {
		p.events++
	}
}

// repeated are the first events of a resource version. The zero value is none.
type repeated struct {
	version string
	events  int
}

// take reports whether an event is the next of them, and counts it.
func (r *repeated) take(resourceVersion string) bool {
	if r.events == 0 || resourceVersion != r.version {
		return false
	}
	r.events--
	return true
}

// since is where a reader is on a trunk. Of what the trunk tells before it comes there, the reader has
// what is not newer. What is older and comes later is new: a server may give versions when transactions
// begin, and show them when they end.
type since struct {
	version string
	// come tells that the trunk has come to version.
	come bool
	// held is the number after that of the last event that the trunk held when the reader came from
	// another trunk. What is older among these events it has, too.
	held int64
}

// covers reports whether the reader has the event of a number, and notes how far the trunk has come.
func (s *since) covers(number int64, version string, bookmark bool) bool {
	order := rv.Compare(version, s.version)
	switch order {
	case rv.Older:
		return !s.come || number < s.held
	case rv.Same, rv.Newer:
		s.come = true
	}
	return order == rv.Same && !bookmark
}

func newTap[T any](h *Hub[T], from place) *Tap[T] {
	r := &Tap[T]{hub: h, ready: make(chan struct{}, 1), place: from}
	if from.at != from.passed {
		r.repeated = repeated{from.at, from.events}
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
		r.beginning, r.place = false, at(e.ResourceVersion)
	case !r.beginning:
		r.move(e.ResourceVersion, e.Bookmark)
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
		number := r.next
		e = t.events[number-t.first]
		if r.next++; r.next == t.last() {
			t.dropLocked()
		}
		t.movedLocked()
		if !r.knows(number, e) {
			return e, nil
		}
	}
	if t.ended != nil {
		return e, t.ended
	}
	return Event[T]{}, ErrNothing
}

// knows reports whether the reader has the event of a number from elsewhere. A bookmark of the version
// where it is shows that the watch is alive, and one from before its watch that the server has gone
// back.
func (r *Tap[T]) knows(number int64, e Event[T]) bool {
	switch {
	case !e.Bookmark && (r.repeated.take(e.ResourceVersion) || r.joined.take(e.ResourceVersion)):
		return true
	case e.Bookmark && r.trunk != nil && rv.Compare(e.ResourceVersion, r.trunk.began) == rv.Older:
		return false
	}
	return r.after.covers(number, e.ResourceVersion, e.Bookmark)
}

// Bookmarks reports whether the watch that is read has brought a bookmark, and so is to
// bring more.
func (r *Tap[T]) Bookmarks() bool {
	r.hub.mu.Lock()
	defer r.hub.mu.Unlock()
	return r.trunk != nil && r.trunk.bookmarks
}

// Joined reports whether the watch that is read was opened for another reader, so that it may tell what
// is older than where the reader has begun.
func (r *Tap[T]) Joined() bool {
	r.hub.mu.Lock()
	defer r.hub.mu.Unlock()
	return r.after.version != ""
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

// joinLocked notes what the reader has had on the trunk that it leaves: everything up to had.passed,
// and the first had.events events that the next trunk, other, tells of the version had.at. A reader
// that has joined before may have had more.
func (r *Tap[T]) joinLocked(had place, other *trunk[T]) {
	newest := later(r.after.version, had.passed)
	r.after = since{version: newest, come: rv.NotNewer(newest, other.at), held: other.last()}
	if r.joined.version != had.at {
		r.joined = repeated{version: had.at}
	}
	r.joined.events += had.events
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
