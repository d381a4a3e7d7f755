package objectcache

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"unsafe"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/internal/leaf/budget"
	"github.com/rvinformer/informer/internal/leaf/moment"
	"github.com/rvinformer/informer/internal/leaf/pack"
)

// changelog has the changes of a store in their order. Each handler reads them at its own pace,
// with a goroutine that lives while something waits for it. What every handler has read is garbage.
type changelog struct {
	// store is nil if objects are kept decoded.
	store *Store
	// applying is held while the store and the changelog change together, so that a handler which is
	// added meanwhile begins with one state of the store and what follows it. It is taken before
	// mu.
	applying sync.Mutex

	mu       sync.Mutex
	handlers []*registration
	// tail is the segment that the next event goes to.
	tail *segment
	// events and bytes count what was ever appended.
	events, bytes int64
	// budget has what waits for the slowest handler, which is counted.
	budget  *budget.Budget
	counted int64
	// syncedAt is the number of events up to the end of the initial list; -1 until that was read.
	syncedAt int64
	// unfinished are the batches that a handler has not finished.
	unfinished []*batch
	// copies has what events share.
	copies pack.Copies
	// ctx is that of the run, nil before it and when it ends.
	ctx     context.Context
	running sync.WaitGroup
	// callers is how many goroutines call handlers.
	callers atomic.Int64
}

// segment is a piece of the changelog. Its events are only appended to; the next one begins where
// it is full.
type segment struct {
	events []event
	next   *segment
}

// segmentEvents is how many events a full segment has. Those that were read stay in memory as long
// as one of them waits.
const segmentEvents = 32

// event is one change.
type event struct {
	// old is nil where there is none.
	old              *Stored
	new              Stored
	initial, unknown bool
	// shared is where handlers find what another one has decoded; nil if there is one handler only.
	shared *sharedObjects
	// batch, if set, is in place of a change.
	batch *batch
	// bytes is about how much memory the event takes while it waits.
	bytes int64
	// arrived is when the informer has read it.
	arrived moment.Moment
}

func (e *event) change() Change {
	c := Change{New: e.new, IsInInitialList: e.initial, FinalStateUnknown: e.unknown}
	if e.old != nil {
		c.Old = *e.old
	}
	switch {
	case e.new.IsZero():
		c.Type, c.Key = informer.Deleted, c.Old.Key()
	case e.old == nil:
		c.Type, c.Key = informer.Added, e.new.Key()
	default:
		c.Type, c.Key = informer.Updated, e.new.Key()
	}
	return c
}

func newChangelog(store *Store, b *budget.Budget) *changelog {
	return &changelog{store: store, budget: b, syncedAt: -1, tail: &segment{}}
}

// start lets handlers be called, until stop.
func (f *changelog) start(ctx context.Context) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.ctx = ctx
}

// stop lets no other call begin, and wait waits for those under way. No handler is added after it.
func (f *changelog) stop() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.ctx = nil
	for _, r := range f.handlers {
		r.endLocked()
	}
	f.handlers, f.tail = nil, &segment{}
	f.countLocked()
}

// countLocked takes from the budget what waits for the slowest handler, or gives it back. It does
// not wait for the budget, because an object is read in the store before handlers are called: other
// informers wait.
func (f *changelog) countLocked() {
	waits := int64(0)
	for _, r := range f.handlers {
		waits = max(waits, f.bytes-r.bytes)
	}
	switch more := waits - f.counted; {
	case more > 0:
		f.budget.Take(more)
	case more < 0:
		f.budget.Give(-more)
	}
	f.counted = waits
}

func (f *changelog) wait() { f.running.Wait() }

// run runs do, which calls a handler, in a goroutine that wait waits for.
func (f *changelog) run(do func()) {
	f.callers.Add(1)
	f.running.Go(func() {
		defer f.callers.Add(-1)
		do()
	})
}

// append adds the events of a change that has replaced an object, or none if that is nil. The
// changelog takes over replaced. The caller holds applying.
func (f *changelog) append(replaced *Stored, events ...event) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.handlers) == 0 {
		return
	}
	if replaced != nil {
		events[0].bytes += f.keepLocked(replaced)
		events[0].bytes += f.noteReplacedLocked(replaced)
	}
	for i := range events {
		e := &events[i]
		e.bytes += f.keepLocked(&e.new)
		if e.old != nil {
			e.bytes += e.old.sizeBytes()
		}
		f.appendLocked(e)
	}
	for _, r := range f.handlers {
		r.hireLocked()
	}
}

// keepLocked gives o a copy of its bytes, because it may wait for long, and returns what that
// takes.
func (f *changelog) keepLocked(o *Stored) (bytes int64) {
	record, copied := f.copies.Copy(o.record)
	o.record = record
	return int64(copied)
}

// noteReplacedLocked keeps a state that was replaced in the batches that name it, and returns what
// that takes. The handlers that have not finished such a batch have the event of the change before
// them, which keeps the state too.
func (f *changelog) noteReplacedLocked(o *Stored) (bytes int64) {
	if o.object != nil { // a batch of decoded objects has them itself
		return 0
	}
	for _, b := range f.unfinished {
		if b.replaceLocked(o) {
			bytes += mapEntry
		}
	}
	return bytes
}

func (f *changelog) appendLocked(e *event) {
	if len(f.handlers) > 1 && e.batch == nil && f.store != nil {
		e.shared = &sharedObjects{}
	}
	e.bytes += int64(unsafe.Sizeof(*e))
	if e.batch != nil {
		e.bytes += e.batch.sizeBytes()
	}
	f.events++
	f.bytes += e.bytes
	if len(f.tail.events) == segmentEvents {
		f.tail.next = &segment{}
		f.tail = f.tail.next
	}
	f.tail.events = append(f.tail.events, *e)
	for _, r := range f.handlers {
		if e.takenBy(r) {
			r.queueLocked(e.batch)
		}
	}
	f.countLocked()
}

// takenBy reports whether a handler is called with the event.
func (e *event) takenBy(r *registration) bool {
	return e.batch == nil || e.batch.due == nil || e.batch.due.Has(r)
}

// find returns an object of a batch that a handler has not finished. It is zero if a caller of the
// Store, and not the informer, has replaced it.
func (f *changelog) find(b *batch, place int) Stored {
	if b.objects != nil {
		return storedObject(b.objects[place])
	}
	of := b.states[place]
	if o := f.store.stateOf(of); !o.IsZero() {
		return o
	}
	if o := f.findReplaced(b, of); o != nil {
		return *o
	}
	f.applying.Lock() // the store changes first
	defer f.applying.Unlock()
	return ptr.Deref(f.findReplaced(b, of), Stored{})
}

func (f *changelog) findReplaced(b *batch, of state) *Stored {
	f.mu.Lock()
	defer f.mu.Unlock()
	return b.replaced[of]
}

// beginLocked notes that a handler is going to be called with a batch.
func (f *changelog) beginLocked(b *batch, r *registration) {
	if len(b.readers) == 0 {
		b.replaced = nil
		f.unfinished = append(f.unfinished, b)
	}
	b.readers = append(b.readers, r)
}

// endLocked notes that a handler is called with a batch no more.
func (f *changelog) endLocked(b *batch, r *registration) {
	b.readers = slices.DeleteFunc(b.readers, func(other *registration) bool { return other == r })
	if len(b.readers) == 0 {
		b.replaced = nil
		f.unfinished = slices.DeleteFunc(f.unfinished, func(other *batch) bool { return other == b })
	}
}

// hasBatches reports whether a handler has yet to be called with a part of a batch.
func (f *changelog) hasBatches() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.unfinished) > 0
}

// leaveLocked notes that a handler is not called any more with the batches that it has not
// finished.
func (f *changelog) leaveLocked(r *registration) {
	for _, b := range slices.Clone(f.unfinished) {
		f.endLocked(b, r)
	}
}

// resync has the handlers called that are due, with all objects. Those for which an earlier resync
// still waits are left out. The caller holds applying.
func (f *changelog) resync(due []*registration, all *batch, at moment.Moment) {
	f.mu.Lock()
	defer f.mu.Unlock()
	due = slices.DeleteFunc(due, func(r *registration) bool { return r.resyncing || r.removed })
	if len(due) == 0 || all.len() == 0 {
		return
	}
	for _, r := range due {
		r.resyncing = true
	}
	all.due = sets.New(due...)
	f.appendLocked(&event{batch: all, arrived: at})
	for _, r := range f.handlers {
		r.hireLocked()
	}
}

// dropReadLocked drops the newest events if all handlers have read them.
func (f *changelog) dropReadLocked() {
	if !slices.ContainsFunc(f.handlers, func(r *registration) bool { return r.events < f.events }) {
		clear(f.tail.events)
	}
}

// endInitial notes that what was appended so far is the initial list.
func (f *changelog) endInitial() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.syncedAt = f.events
	for _, r := range f.handlers {
		r.hireLocked()
	}
}

// add adds a handler that begins with what is kept, if it is not nil, and goes on with what is
// appended from now on. The caller holds applying.
func (f *changelog) add(r *registration, kept *batch) {
	f.mu.Lock()
	defer f.mu.Unlock()
	r.changelog, r.at, r.index, r.events, r.bytes = f, f.tail, len(f.tail.events), f.events, f.bytes
	if kept != nil && kept.len() > 0 {
		kept.initial = true
		r.batch, r.arrived = kept, moment.Now()
		r.queueLocked(r.batch)
	}
	f.handlers = append(f.handlers, r)
	r.hireLocked()
}

// remove removes a handler, which is called with nothing more. It reports whether the changelog has
// had it.
func (f *changelog) remove(r *registration) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if r.changelog != f || r.removed {
		return false
	}
	f.handlers = slices.DeleteFunc(f.handlers, func(other *registration) bool { return other == r })
	f.dropReadLocked()
	r.endLocked()
	f.countLocked()
	return true
}

// waiting returns the number of calls that handlers wait for, the bytes that wait with them, and
// when the oldest of the changes arrived; zero if there is none.
func (f *changelog) waiting() (calls int, bytes int64, oldest moment.Moment) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, r := range f.handlers {
		calls += r.queued
		waits := f.bytes - r.bytes
		if r.batch != nil {
			waits += r.batch.sizeBytes()
		}
		bytes = max(bytes, waits)
		if at := r.oldestLocked(); at != 0 && (oldest == 0 || at < oldest) {
			oldest = at
		}
	}
	return calls, bytes, oldest
}
