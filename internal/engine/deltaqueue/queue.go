// Package deltaqueue holds the deltas that wait for the consumer of an
// informer.
//
// A delta is one observed change of one key. Deltas of one key wait together,
// as one entry: a newer delta replaces an older one in place, so that a slow
// consumer costs at most one object per key, and a deletion is never lost. The
// consumer takes entries in the order of their keys' arrival, and never two
// of one key at a time; what arrives for a key that is taken waits behind it.
//
// A queue with EveryChange keeps each delta as an entry of its own instead, in the
// order of their arrival. Put waits for the consumer where that becomes too much.
//
// An entry is acknowledged with Done, and only then does the table of known
// versions move. A sweep compares that table, and the entries that wait, with
// what a complete generation showed.
package deltaqueue

import (
	"context"
	"sync"

	"k8s.io/client-go/tools/cache"

	"github.com/rvinformer/informer/internal/engine/recency"
	"github.com/rvinformer/informer/internal/leaf/budget"
	"github.com/rvinformer/informer/internal/leaf/keytable"
	"github.com/rvinformer/informer/internal/leaf/moment"
	"github.com/rvinformer/informer/internal/leaf/waiting"
)

// Known is what the consumer has acknowledged. The queue calls it while it
// holds its own lock; Known must not call the queue.
type Known interface {
	Begin() (generation uint64)
	Get(key string) (keytable.Version, bool)
	Set(key string, version keytable.Version, generation uint64)
	Delete(key string) bool
	Show(key string, version keytable.Version, generation, since uint64) (again bool, c keytable.Comparison)
	UnmarkedFrom(cursor keytable.Cursor, generation uint64, most int) (keys []string, next keytable.Cursor)
}

// Refusals is implemented by a Known that also remembers the states that the consumer has refused for
// good. The queue then drops older states. It calls Refusals while it holds its own lock.
type Refusals interface {
	// Refuse notes that a state which a generation showed is not tried again.
	Refuse(key, resourceVersion string, generation uint64)
	// Refused returns the newest such state of a key, until the consumer has acknowledged another one.
	Refused(key string) (resourceVersion string, generation uint64, exists bool)
}

// DefaultLimit is the default of Options.Limit.
const DefaultLimit = 1000

// Options configure a Queue.
type Options struct {
	// Known is required.
	Known Known
	// Limit is the number of entries from which on Put waits. Default: DefaultLimit.
	Limit int
	// Budget has the bytes of the objects in them, from Put until they are given
	// back, and Put waits where it is spent, unless the queue is empty. Default: one
	// of its own, of 16 MiB.
	Budget *budget.Budget
	// SkipUnchanged keeps objects that a generation shows in the version that
	// the consumer has acknowledged out of the queue.
	SkipUnchanged bool
	// EveryChange keeps the deltas of a key apart, so that the consumer gets each of them,
	// and all in the order of Put. Only an entry that failed, and waits to
	// be tried again, is replaced by the next delta of its key. There is one consumer, which
	// takes one entry at a time and gives it back with Done, Drop, Skip or Retry.
	EveryChange bool
	// Tombstones makes Stale know events of objects that were deleted not long ago by their
	// UIDs. Not every source makes new ones.
	Tombstones bool
	// Workers is how many consumers there may be at a time, and Hire starts one: it is
	// called, and must not call the queue, when there is something to take and none
	// waits for it. What it starts calls TakeBatch until that returns an error. Without
	// Hire, consumers are none of the queue's business.
	Workers int
	Hire    func()
	// Synced, if given, is the channel that the queue closes when it is synced;
	// it may be closed already.
	Synced chan struct{}
	// NoteSynced, if given, is called before the queue closes Synced, with the lock of the queue.
	NoteSynced func()
	// Starved, if given, is called by Put when it begins to wait for the budget, with true, and
	// when it has its bytes, or waits no more, with false. It must not call the queue, nor wait.
	Starved func(bool)
	// Resume is the resource version up to which everything was acknowledged
	// before this queue.
	Resume string
	// Resumed tells that the queue goes on from Resume without a generation: Known has
	// all that was acknowledged up to there, and perhaps some, but not all, that was
	// acknowledged since. The generation before Resume was complete, so that the queue is
	// synced when Follow is called.
	Resumed bool
	// Current is a moment: everything that the server had then is acknowledged. It is zero if none
	// is known.
	Current moment.Moment
	// Waiting, if given, are the callers that wait for a resume point.
	Waiting *waiting.Line
}

// Queue is a bounded queue of deltas. It owns no goroutine.
type Queue struct {
	known          Known
	limit          int
	waiting        *waiting.Line
	skipUnchanged  bool
	everyChange    bool
	keepTombstones bool

	// mu is the lock of all that follows.
	mu    sync.Mutex
	phase phase
	// order holds every entry that is not acknowledged, oldest first.
	order line
	// ready holds the entries that can be taken, in the order they became so.
	ready line
	// parking holds the entries that will be tried again later.
	parking parking
	// newest is the newest entry of each key, which leads to the older ones. It is made for the
	// first entry.
	newest map[string]*Entry
	// seq is the number of the newest entry.
	seq        uint64
	account    account
	hiring     hiring
	generation generation
	syncing    syncing
	frontier   frontier
	settling   settling
	audit      audit
	repeats    *repeats // nil before the first redelivery
	// changed fires when something happens that a waiting Put or Take may wait for, and places
	// when a Put that waits for a full queue should go on.
	changed, places signal
}

// New returns an empty queue.
func New(opts Options) *Queue {
	if opts.Limit <= 0 {
		opts.Limit = DefaultLimit
	}
	if opts.Budget == nil {
		opts.Budget = budget.New(16 << 20)
	}
	if opts.Synced == nil {
		opts.Synced = make(chan struct{})
	}
	if opts.Waiting == nil {
		opts.Waiting = &waiting.Line{}
	}
	q := &Queue{
		known:          opts.Known,
		limit:          opts.Limit,
		skipUnchanged:  opts.SkipUnchanged,
		everyChange:    opts.EveryChange,
		keepTombstones: opts.Tombstones,
		waiting:        opts.Waiting,
		order:          line{which: inOrder},
		ready:          line{which: inReady},
		account:        account{budget: opts.Budget, starved: opts.Starved},
		hiring:         hiring{start: opts.Hire, most: max(opts.Workers, 1)},
		syncing:        syncing{done: opts.Synced, note: opts.NoteSynced},
		frontier:       frontier{observed: opts.Resume, current: opts.Current},
	}
	if opts.Resumed {
		q.phase = resuming
	}
	return q
}

// Put adds what a watch told. It waits while the queue is full or the budget
// spent, unless it takes the place of an object that waits in it already; the error is
// that of ctx.
func (q *Queue) Put(ctx context.Context, d Delta) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	reserved, err := q.roomLocked(ctx, d)
	if err != nil {
		return err
	}
	q.queueLocked(d, reserved)
	if d.Type == cache.Deleted && q.keepTombstones {
		q.generation.tombstones.Add(d.Version)
	}
	return nil
}

// Stale reports whether d, which a watch told, is not newer than what is known
// of its key, or of an object whose deletion was put not long ago, or is older than what the
// consumer has refused. A deletion may carry the version of the state that it ended.
func (q *Queue) Stale(d Delta) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.generation.tombstones.Covers(d.Version) {
		return true
	}
	if e := q.newest[d.Key]; e != nil && e.newest().FinalStateUnknown() {
		return false // what a sweep deleted was gone by then, at no version that is known
	}
	if q.isBeforeRefusalLocked(d) {
		return true
	}
	version, ok := q.versionLocked(d.Key)
	if !ok {
		return false
	}
	// A queue that goes on from a checkpoint knows what was acknowledged beyond its resume point.
	told := func() bool { return q.phase.isResumed() || q.toldLocked(d) }
	return recency.Stale(d.Type == cache.Deleted, d.Version, version, q.frontier.observed, told)
}

// Has reports whether the object of d is known in just the state of d.
func (q *Queue) Has(d Delta) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	known, ok := q.versionLocked(d.Key)
	return ok && known.SameState(d.Version)
}

// isBeforeRefusalLocked reports whether d, which a watch told, is older than the state of its key that
// the consumer has refused, and nothing newer waits.
func (q *Queue) isBeforeRefusalLocked(d Delta) bool {
	refused, generation, exists := q.refusedLocked(d.Key)
	if !exists || q.newest[d.Key] != nil {
		return false
	}
	told := func() bool { return q.phase.isResumed() || q.generation.isOn(generation) }
	// As after a deletion, what comes in the refused version itself may be told.
	return recency.Stale(true, d.Version, keytable.Version{ResourceVersion: refused}, q.frontier.observed, told)
}

func (q *Queue) refusedLocked(key string) (resourceVersion string, generation uint64, exists bool) {
	if refusals, ok := q.known.(Refusals); ok {
		return refusals.Refused(key)
	}
	return "", 0, false
}

// toldLocked reports whether a generation is under way and has told of the key of d.
func (q *Queue) toldLocked(d Delta) bool {
	if !q.generation.underWay {
		return false
	}
	if e := q.newest[d.Key]; e != nil {
		return e.generation == q.generation.number
	}
	_, c := q.known.Show(d.Key, d.Version, q.generation.number, q.generation.number)
	return c.Marked
}

// Resync adds the delta d of type Sync, of an object that the consumer's store
// was seen to hold. It does not if something newer of the key waits, or has been
// acknowledged since: d would take the consumer back.
// Between BeginGeneration and EndGeneration it must not be called: it would count
// as showing the key.
func (q *Queue) Resync(ctx context.Context, d Delta) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	reserved, err := q.roomLocked(ctx, d)
	if err != nil {
		return err
	}
	known, ok := q.known.Get(d.Key)
	switch {
	case !ok || q.newest[d.Key] != nil:
	case d.Version.ResourceVersion == "": // a transform may have dropped it
		d.Version = known
		q.queueLocked(d, reserved)
		return nil
	case d.Version.ResourceVersion == known.ResourceVersion:
		q.queueLocked(d, reserved)
		return nil
	}
	q.account.budget.Give(reserved)
	return nil
}

// Knows reports whether key is acknowledged or waits in the queue, not deleted.
func (q *Queue) Knows(key string) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if e := q.newest[key]; e != nil {
		return !e.Deleted()
	}
	_, ok := q.known.Get(key)
	return ok
}

// Holds reports whether key waits in the queue or is taken.
func (q *Queue) Holds(key string) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.newest[key] != nil
}

// Taken returns the oldest key that the consumer has, and how many it has.
func (q *Queue) Taken() (key string, keys int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for e := q.order.first; e != nil; e = q.order.next(e) {
		if e.stage != taken {
			continue
		}
		if keys++; keys == 1 {
			key = e.Key
		}
	}
	return key, keys
}

// Close gives back what the queue has of its budget. Nothing may be called after
// it but ResumePoint, Drained, Len and Look.
func (q *Queue) Close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.account.grow(-q.account.bytes, 0)
	for e := q.order.first; e != nil; e = q.order.next(e) {
		for i := range e.Deltas {
			e.Deltas[i].Object = nil // for the garbage collector: Look may be called for long
		}
	}
	q.audit.closed = true
	q.endAuditLocked()
	q.advancedLocked()
}

// Len is the number of entries that are not acknowledged, and the bytes of the
// objects in them.
func (q *Queue) Len() (entries int, bytes int64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.order.len(), q.account.bytes
}

// Retrying reports whether the consumer has failed for something that is not acknowledged.
func (q *Queue) Retrying() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	for e := q.order.first; e != nil; e = q.order.next(e) {
		if e.Attempts > 0 {
			return true
		}
	}
	return false
}

func (q *Queue) versionLocked(key string) (keytable.Version, bool) {
	if e := q.newest[key]; e != nil {
		return e.Version, true
	}
	return q.known.Get(key)
}

// queueLocked merges d into the entry of its key, or makes one. Reserved is what
// was taken of the budget for it.
func (q *Queue) queueLocked(d Delta, reserved int64) {
	newest := q.newest[d.Key]
	e := q.mergingInto(newest)
	if e == nil {
		e = q.newEntryLocked(d, newest)
	} else {
		if e.repeat {
			q.renewLocked(e, d)
		}
		if e.stage == parked {
			q.parking.remove(e)
			q.readyLocked(e)
		}
	}
	q.frontier.ahead = true
	before := e.bytes()
	e.Deltas = Merge(e.Deltas, d)
	q.account.grow(e.bytes()-before, reserved)
	if e.batch == 0 {
		e.Attempts = 0
	}
	e.generation = q.generation.number
	if q.phase.isInitial() {
		q.syncing.await(e)
	}
	if d.hasState() {
		e.Version = d.Version
	}
	q.wakeLocked()
}

// mergingLocked is the entry that a newer delta of key is merged into, nil if the delta
// gets one of its own.
func (q *Queue) mergingLocked(key string) *Entry { return q.mergingInto(q.newest[key]) }

// mergingInto is mergingLocked for the newest entry of a key, nil for none.
func (q *Queue) mergingInto(newest *Entry) *Entry {
	if newest == nil || newest.stage == taken || q.everyChange && newest.stage != parked {
		return nil
	}
	return newest
}

// newEntryLocked makes an entry for d. Older is the newest one of its key so far, nil for none.
func (q *Queue) newEntryLocked(d Delta, older *Entry) *Entry { return q.newEntryAs(d, older, false) }

// newEntryAs is newEntryLocked, also for a repeat.
func (q *Queue) newEntryAs(d Delta, older *Entry, repeat bool) *Entry {
	q.seq++
	key := d.Key
	e := newEntry()
	e.repeat, e.again = repeat, repeat
	e.Key, e.Arrived, e.seq = key, d.Arrived, q.seq
	e.Initial, e.Resumed = q.phase.isInitial(), q.phase.isResumed()
	e.resume, e.current = q.frontier.reached().ClaimFor(d.Version.ResourceVersion), q.frontier.current
	if !d.hasState() { // a sweep knows no version: the entry has that of the deleted object
		e.Version, _ = q.versionLocked(key)
	}
	e.Deltas = e.room[:0]
	q.order.pushBack(e)
	if q.newest == nil {
		q.newest = map[string]*Entry{}
	}
	q.newest[key] = e
	if e.older = older; older != nil {
		older.newer = e
	}
	if older != nil && !q.everyChange { // whose only consumer has the older one
		e.stage = blocked
	} else {
		q.readyLocked(e)
	}
	return e
}

// unlinkLocked takes e out from among the entries of its key.
func (q *Queue) unlinkLocked(e *Entry) {
	older, newer := e.older, e.newer
	e.older, e.newer = nil, nil
	if older != nil {
		older.newer = newer
	}
	switch {
	case newer != nil:
		newer.older = older
	case older != nil:
		q.newest[e.Key] = older
	default:
		delete(q.newest, e.Key)
	}
}

func (q *Queue) readyLocked(e *Entry) {
	if e.repeat && e.Attempts == 0 {
		e.stage = late
		q.repeats.line.pushBack(e)
	} else {
		e.stage = ready
		q.ready.pushBack(e)
	}
	q.wakeLocked()
	q.hireLocked()
}
