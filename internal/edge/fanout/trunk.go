package fanout

import (
	"errors"
	"io"
	"slices"
	"time"

	"github.com/rvinformer/informer/internal/leaf/rv"
)

// trunk is one watch and its newest events. All but watch belongs to the hub's lock.
type trunk[T any] struct {
	hub   *Hub[T]
	watch Watch[T]

	// events are those that are held. The first has the number first, and before
	// is the resource version before it.
	events []Event[T]
	first  int64
	before string
	bytes  int
	// began is the resource version that the watch began from.
	began string
	// place is where the watch is, and changed where its newest event is that is no
	// bookmark, empty if there was none.
	place
	changed string
	// orderless tells that the watch has no place in the order of others.
	orderless bool

	// bookmarks tells that the watch has brought one.
	bookmarks bool
	// doubted tells that a reader takes the watch for broken. It is not, once it brings
	// something.
	doubted bool

	// taps are the readers, and where they are.
	taps map[*Tap[T]]struct{}
	// ended is what the watch ended with, nil while it is read.
	ended error
	// patience is that with the readers which are behind.
	patience patience
	// moved is sent to when a reader has read, come or gone.
	moved chan struct{}
	// done is closed when the watch is closed.
	done chan struct{}
}

func newTrunk[T any](h *Hub[T], w Watch[T], resourceVersion string) *trunk[T] {
	return &trunk[T]{
		hub:       h,
		watch:     w,
		before:    resourceVersion,
		began:     resourceVersion,
		place:     at(resourceVersion),
		orderless: !rv.IsPlace(resourceVersion),
		taps:      map[*Tap[T]]struct{}{},
		moved:     make(chan struct{}, 1),
		done:      make(chan struct{}),
	}
}

// errEnded says that the watch is not read any more.
var errEnded = errors.New("the goroutine that reads the watch has ended")

// pump reads the watch until it ends, or has no more readers.
func (t *trunk[T]) pump() {
	defer close(t.done)
	defer t.watch.Close()
	defer t.end(errEnded) // a callback may have ended the goroutine
	for {
		e, err := t.watch.Next()
		if err != nil {
			t.end(err)
			return
		}
		if !t.put(e) {
			return
		}
	}
}

func (t *trunk[T]) end(err error) {
	t.hub.mu.Lock()
	defer t.hub.mu.Unlock()
	if t.ended != nil {
		return
	}
	t.ended = err
	if err != io.EOF {
		for tap := range t.taps {
			tap.again = t.hub.expectLocked()
		}
	}
	t.leaveHubLocked()
	t.wakeLocked()
}

// put adds an event, when there is room for it. It reports whether the watch is to be
// read further.
func (t *trunk[T]) put(e Event[T]) bool {
	t.hub.mu.Lock()
	defer t.hub.mu.Unlock()
	t.events = append(t.events, e)
	t.bytes += e.Bytes
	t.move(e.ResourceVersion, e.Bookmark)
	if e.Bookmark {
		t.bookmarks = true
	} else {
		t.changed = later(t.changed, e.ResourceVersion)
	}
	t.doubted = false
	t.wakeLocked()
	if e.Begins && len(t.taps) > 0 {
		t.beginLocked(e.ResourceVersion)
	}
	t.hub.joinLocked()
	t.makeRoomLocked()
	return len(t.taps) > 0
}

// beginLocked gives the watch its place in the order of versions, after the objects that there
// were. What the readers have not read of these, each takes along.
func (t *trunk[T]) beginLocked(resourceVersion string) {
	for tap := range t.taps {
		tap.backlog = append(tap.backlog, t.events[tap.next-t.first:]...)
		tap.next = t.last()
	}
	t.first, t.events, t.bytes = t.last(), nil, 0
	t.before, t.began, t.changed = resourceVersion, resourceVersion, ""
	t.place = at(resourceVersion)
	if t.orderless = !rv.IsPlace(resourceVersion); !t.orderless {
		t.hub.trunks = append(t.hub.trunks, t)
	}
}

// makeRoomLocked drops what was read, and waits for readers that are behind. They lapse
// when they have held up another reader for as long as there is patience with them.
func (t *trunk[T]) makeRoomLocked() {
	for len(t.taps) > 0 {
		t.dropLocked()
		if t.bytes <= t.hub.options.Most || len(t.events) <= 1 {
			return
		}
		t.waitLocked()
	}
}

// waitLocked waits until a reader has read, come or gone, or has those lapse that are behind.
func (t *trunk[T]) waitLocked() {
	if !t.anyWaitsLocked() {
		t.hub.mu.Unlock()
		<-t.moved
		t.hub.mu.Lock()
		return
	}
	began := time.Now()
	timer := time.NewTimer(t.patience.left(t.hub.options.Patience, began))
	defer timer.Stop()
	t.hub.mu.Unlock()
	late := false
	select {
	case <-t.moved:
	case <-timer.C:
		late = true
	}
	t.hub.mu.Lock()
	switch {
	case !late:
		t.patience.spend(began, time.Now())
	case t.anyWaitsLocked():
		t.lapseLocked()
		t.patience = patience{}
	}
}

// anyWaitsLocked reports whether a reader waits for more, and so is held up by those
// that are behind.
func (t *trunk[T]) anyWaitsLocked() bool {
	for tap := range t.taps {
		if tap.waits && tap.next == t.last() {
			return true
		}
	}
	return false
}

// dropLocked drops what everybody has read, but the newest of it.
func (t *trunk[T]) dropLocked() {
	read := t.last()
	for tap := range t.taps {
		read = min(read, tap.next)
	}
	n := 0
	for ; t.first+int64(n) < read && (t.bytes > t.hub.options.Kept || len(t.events)-n > keptEvents); n++ {
		t.bytes -= t.events[n].Bytes
		t.before = later(t.before, t.events[n].ResourceVersion)
	}
	t.events = slices.Delete(t.events, 0, n)
	t.first += int64(n)
	if len(t.events) <= keptEvents && cap(t.events) > 4*keptEvents {
		t.events = slices.Clone(t.events) // it may be idle for long
	}
}

// lapseLocked lets go of the readers that have not read the first event.
func (t *trunk[T]) lapseLocked() {
	for tap := range t.taps {
		if tap.next == t.first {
			tap.leaveLocked(ErrLapsed)
		}
	}
}

// last is the number after that of the newest event.
func (t *trunk[T]) last() int64 { return t.first + int64(len(t.events)) }

// joinLocked moves the readers to another trunk.
func (t *trunk[T]) joinLocked(other *trunk[T], next int64) {
	had := t.place
	if had == other.place { // the other one may have dropped some events of this version
		had.events = other.countLocked(next, t.at)
	}
	for tap := range t.taps {
		for i, e := range t.events[tap.next-t.first:] {
			if !tap.knows(tap.next+int64(i), e) {
				tap.backlog = append(tap.backlog, e)
			}
		}
		tap.joinLocked(had, other)
		other.attachLocked(tap, next)
	}
	clear(t.taps)
	t.leaveHubLocked()
	t.watch.Stop()
	t.movedLocked()
}

// countLocked counts the events of a resource version that are held, from number next on.
func (t *trunk[T]) countLocked(next int64, resourceVersion string) (n int) {
	for _, e := range t.events[next-t.first:] {
		if e.ResourceVersion == resourceVersion && !e.Bookmark {
			n++
		}
	}
	return n
}

// follows reports whether a trunk has the events after those that another has passed, and has come
// to where that is: a reader that goes on there does not wait for what it has. One that is doubted
// has been silent for long: there nothing is yet to come.
func (t *trunk[T]) follows(other *trunk[T]) (next int64, ok bool) {
	if rv.Compare(t.at, other.changed) == rv.Older {
		return 0, false
	}
	next, ok = t.seek(other.at)
	if !ok || other.doubted || t.place == other.place {
		return next, ok
	}
	return t.seek(other.passed)
}

// seek returns the number of the first event after a resource version, if the trunk
// has all that follow it, or will have.
func (t *trunk[T]) seek(resourceVersion string) (next int64, ok bool) {
	if !rv.IsPlace(resourceVersion) {
		return 0, false
	}
	if order := rv.Compare(t.before, resourceVersion); order != rv.Unordered {
		if order == rv.Newer || t.isBehind(resourceVersion) {
			return 0, false
		}
		return t.first, true // the Tap passes over what it has
	}
	// Only the same version is known to be the same place. Where it is held twice, the
	// first is taken: what follows may be told twice then, and nothing is missed. (A proxy
	// that repeats an event from before those that are held could have a reader miss what
	// came between; such versions leave no way to know.)
	if t.before == resourceVersion {
		return t.first, true
	}
	i := slices.IndexFunc(t.events, func(e Event[T]) bool { return e.ResourceVersion == resourceVersion })
	return t.first + int64(i) + 1, i >= 0
}

// isBehind reports whether the watch has not come to a resource version because a reader
// has not read what came before.
func (t *trunk[T]) isBehind(resourceVersion string) bool {
	return rv.Compare(t.at, resourceVersion) == rv.Older && t.unread()
}

// unread reports whether there is something that not everybody has read.
func (t *trunk[T]) unread() bool {
	for tap := range t.taps {
		if tap.next < t.last() {
			return true
		}
	}
	return false
}

func (t *trunk[T]) attachLocked(tap *Tap[T], next int64) {
	tap.trunk, tap.next = t, next
	t.taps[tap] = struct{}{}
	tap.wakeLocked()
	t.movedLocked()
}

// detachLocked lets a reader go. The trunk is stopped when that was the last one.
func (t *trunk[T]) detachLocked(tap *Tap[T]) {
	delete(t.taps, tap)
	if len(t.taps) == 0 {
		t.leaveHubLocked()
		t.watch.Stop()
	}
	t.movedLocked()
}

// leaveHubLocked keeps others from joining.
func (t *trunk[T]) leaveHubLocked() {
	t.hub.trunks = slices.DeleteFunc(t.hub.trunks, func(other *trunk[T]) bool { return other == t })
}

func (t *trunk[T]) movedLocked() {
	select {
	case t.moved <- struct{}{}:
	default:
	}
}

func (t *trunk[T]) wakeLocked() {
	for tap := range t.taps {
		tap.wakeLocked()
	}
}

// later is the resource version of two, one after the other, at which a watch is then. An empty one
// is not known.
func later(a, b string) string {
	if a == "" || rv.Moves(a, b) {
		return b
	}
	return a
}
