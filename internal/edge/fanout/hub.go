package fanout

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/rvinformer/informer/internal/leaf/rv"
)

// Event is one event of a watch.
type Event[T any] struct {
	Value T
	// Bytes is what Value takes in memory, about.
	Bytes int
	// ResourceVersion is where the watch is after the event; empty if that is not known.
	ResourceVersion string
	// Bookmark tells that it says only where the watch is.
	Bookmark bool
	// Begins tells that the events before it, in no order, were the objects that there are. From
	// here on the watch has a place in the order of versions.
	Begins bool
}

// Watch is a watch that is open.
type Watch[T any] interface {
	// Next waits for the next event. An error ends the watch.
	Next() (Event[T], error)
	// Stop makes Next return, which may be under way, and any later one, and returns at
	// once. It may be called more than once, and after Close.
	Stop()
	// Close is called once, when Next will not be called again.
	Close()
}

// Options of a Hub. The zero value is the default.
type Options struct {
	// Most is how many bytes of events a trunk holds for readers that are behind. One
	// event passes whatever its size. Default: 256 KiB.
	Most int
	// Kept is how many bytes of events that all have read a trunk holds for readers
	// to come: no more than 16 events, and half of Most. Default: 16 KiB.
	Kept int
	// Patience is for how long readers that are behind may hold up others before one of them
	// lapses. Default: 100 ms.
	Patience time.Duration
}

// keptEvents is the most events that are held for readers to come.
const keptEvents = 16

func (o Options) withDefaults() Options {
	if o.Most == 0 {
		o.Most = 256 << 10
	}
	if o.Kept == 0 {
		o.Kept = 16 << 10
	}
	o.Kept = min(o.Kept, o.Most/2)
	if o.Patience == 0 {
		o.Patience = 100 * time.Millisecond
	}
	return o
}

// Hub is for the watches of one set of objects. It is safe for concurrent use.
type Hub[T any] struct {
	options Options

	mu sync.Mutex
	// trunks are those that are read and have a place in the order of versions, the
	// oldest first.
	trunks []*trunk[T]
	// opening counts the watches that are being opened, and asked is when the newest of them was
	// asked for. Opened is closed, and replaced, when one was opened, or could not be.
	opening int
	asked   time.Time
	opened  chan struct{}
	// pumps has a goroutine for each trunk that is read.
	pumps sync.WaitGroup
	// gathering are those that are about to read the objects that there are, by what they ask for.
	gathering map[string]*gathering[T]
	// expected counts the readers that are about to ask for something. Come is closed, and
	// replaced, when one has asked.
	expected int
	come     chan struct{}
}

// New returns a hub without watches.
func New[T any](o Options) *Hub[T] {
	return &Hub[T]{options: o.withDefaults(), gathering: map[string]*gathering[T]{}, come: make(chan struct{}), opened: make(chan struct{})}
}

// Follow returns a reader of the events after resourceVersion: of a watch that has it, or else
// of the one that open opens, from there. A call waits while others open a watch. When a second has
// passed since the newest watch was asked for, the call opens one as well. So many calls at a slow
// server open one watch a second. The error is that of open, or context.Cause of ctx.
func (h *Hub[T]) Follow(ctx context.Context, resourceVersion string, open func() (Watch[T], error)) (*Tap[T], error) {
	return h.follow(ctx, at(resourceVersion), open)
}

// GoOn closes r, which has lapsed, and returns another reader that goes on after r's last event.
// Open is given the resource version to begin from. The error is ErrLapsed for a reader without a
// place in the order of versions. Otherwise it is as Follow.
func (h *Hub[T]) GoOn(ctx context.Context, r *Tap[T], open func(resourceVersion string) (Watch[T], error)) (*Tap[T], error) {
	r.Close()
	if !rv.IsPlace(r.passed) {
		return nil, ErrLapsed
	}
	return h.follow(ctx, r.place, func() (Watch[T], error) { return open(r.passed) })
}

func (h *Hub[T]) follow(ctx context.Context, from place, open func() (Watch[T], error)) (*Tap[T], error) {
	late := time.NewTimer(openingPatience)
	defer late.Stop()
	for {
		tap, others, patience := h.joinOrOpen(from)
		switch {
		case tap != nil:
			return tap, nil
		case others == nil:
			defer h.noLongerOpens()
			w, err := open()
			if err != nil {
				return nil, err
			}
			return h.adopt(w, from), nil
		}
		late.Reset(patience)
		select {
		case <-others:
		case <-late.C:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// openingPatience is how long readers wait for a watch that another opens.
const openingPatience = time.Second

// joinOrOpen returns a reader of a watch that has what follows from, or else what to wait
// for, which is closed when another has opened a watch, and for how long; or neither: then the
// caller opens one, and calls noLongerOpens.
func (h *Hub[T]) joinOrOpen(from place) (tap *Tap[T], others <-chan struct{}, patience time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if t, next, ok := h.findLocked(from.passed); ok {
		tap = newTap(h, from)
		tap.after = since{version: from.passed, come: rv.NotNewer(from.passed, t.before)}
		t.attachLocked(tap, next)
		return tap, nil, 0
	}
	now := time.Now()
	if patience = openingPatience - now.Sub(h.asked); h.opening > 0 && patience > 0 {
		return nil, h.opened, patience
	}
	h.opening++
	h.asked = now
	return nil, nil, 0
}

// noLongerOpens notes that a watch was opened, or could not be.
func (h *Hub[T]) noLongerOpens() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.opening--
	close(h.opened)
	h.opened = make(chan struct{})
}

// Adopt returns a reader of w, a watch that begins after resourceVersion, and reads and
// closes w from now on, which others may join.
func (h *Hub[T]) Adopt(w Watch[T], resourceVersion string) *Tap[T] {
	return h.adopt(w, at(resourceVersion))
}

// adopt is Adopt for a watch that begins after what from has passed.
func (h *Hub[T]) adopt(w Watch[T], from place) *Tap[T] {
	t := newTrunk(h, w, from.passed)
	tap := newTap(h, from)
	h.mu.Lock()
	defer h.mu.Unlock()
	t.attachLocked(tap, t.first)
	h.startLocked(t)
	if !t.orderless {
		h.trunks = append(h.trunks, t)
		h.joinLocked()
	}
	return tap
}

// startLocked has a trunk read.
func (h *Hub[T]) startLocked(t *trunk[T]) { h.pumps.Go(t.pump) }

// ResourceVersion is where the watch is that is furthest; empty if that is not known.
func (h *Hub[T]) ResourceVersion() (newest string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, t := range h.trunks {
		newest = later(newest, t.at)
	}
	return newest
}

// WentBack tells that the server is at resourceVersion, after watches were further: it
// was restored from a backup, and they tell the state before. They end, with ErrWentBack.
func (h *Hub[T]) WentBack(resourceVersion string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, t := range slices.Clone(h.trunks) {
		if rv.Compare(t.at, resourceVersion) == rv.Newer {
			for tap := range t.taps {
				tap.backlog = nil
				tap.leaveLocked(ErrWentBack)
			}
		}
	}
}

// GiveUp ends all watches, with ErrNotResumed: the server has opened one from a version, and told
// nothing of what was deleted since.
func (h *Hub[T]) GiveUp() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, t := range slices.Clone(h.trunks) {
		for tap := range t.taps {
			tap.leaveLocked(ErrNotResumed)
		}
	}
}

// Wait waits until every watch is closed. Every Tap has to be closed before.
func (h *Hub[T]) Wait() { h.pumps.Wait() }

// findLocked finds a trunk that has what follows a resource version, and the number
// of the first event.
func (h *Hub[T]) findLocked(resourceVersion string) (t *trunk[T], next int64, ok bool) {
	for _, t := range h.trunks {
		if t.doubted {
			continue
		}
		if next, ok := t.seek(resourceVersion); ok {
			return t, next, true
		}
	}
	return nil, 0, false
}

// joinLocked makes one of trunks that have come to the same place: the younger one goes,
// or the one that is doubted. An older one may have stood still since the server was
// restored from a backup. Its readers learn that from its end.
func (h *Hub[T]) joinLocked() {
	for i := len(h.trunks) - 1; i >= 0; i-- {
		t := h.trunks[i]
		for j, other := range h.trunks {
			if other == t || other.doubted || j > i && !t.doubted {
				continue
			}
			if next, ok := other.follows(t); ok {
				t.joinLocked(other, next)
				break
			}
		}
	}
}
