package deltaqueue

import (
	"time"

	"github.com/rvinformer/informer/internal/leaf/keytable"
)

// Done acknowledges an entry: the table of known versions moves.
func (q *Queue) Done(e *Entry) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if e.Deleted() {
		q.deleteLocked(e.Key, e.Version)
	} else {
		q.known.Set(e.Key, e.Version, e.generation)
	}
	q.finishLocked(e)
}

// deleteLocked acknowledges a deletion with the version that came with it. What has replaced an
// object is proof of its end, too.
func (q *Queue) deleteLocked(key string, v keytable.Version) {
	if q.audit.deleted != nil {
		q.audit.deleted(key, v.ResourceVersion)
	}
	q.known.Delete(key)
}

// Drop gives an entry up without acknowledging it: the table of known versions stays, so that the
// next generation shows the key as changed. The resume point does not wait for it.
func (q *Queue) Drop(e *Entry) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.refuseLocked(e)
	q.finishLocked(e)
}

// refuseLocked notes that what an entry ends with is not tried again.
func (q *Queue) refuseLocked(e *Entry) {
	if refusals, ok := q.known.(Refusals); ok {
		refusals.Refuse(e.Key, e.Version.ResourceVersion, e.generation)
	}
}

// Skip gives the newest delta of an entry up for good, because its object cannot
// be read: the table of known versions stays, so that a generation shows the key as
// changed, but the resume point does not wait for it. What came before that delta is
// acknowledged.
//
// Skip calls lost under the queue's lock: no resume point that covers the delta, and no
// generation that takes it for delivered, can be seen before lost has returned.
func (q *Queue) Skip(e *Entry, lost func()) {
	q.mu.Lock()
	defer q.mu.Unlock()
	lost()
	if len(e.Deltas) > 1 { // a deletion, and what came after it
		q.deleteLocked(e.Key, e.Deltas[0].Version)
	}
	q.refuseLocked(e)
	q.finishLocked(e)
}

// Advance acknowledges the end of the object that the consumer knew under the key
// of an entry, and lets the entry be taken again for what came after: its newer
// delta, if it has two, or the only one, if that is of another object. It returns
// the deltas that the entry no longer has.
func (q *Queue) Advance(e *Entry) (done []Delta) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.deleteLocked(e.Key, e.Deltas[0].Version)
	if len(e.Deltas) > 1 {
		done = []Delta{e.Deltas[0]}
		q.dropFirstLocked(e)
		e.Arrived = max(e.Arrived, e.Deltas[0].Arrived)
	}
	e.Attempts, e.Panics, e.Ambiguous, e.Failure, e.batch = 0, 0, 0, nil, 0
	q.returnLocked(e)
	q.readyLocked(e)
	return done
}

// dropFirstLocked drops the first of two deltas.
func (q *Queue) dropFirstLocked(e *Entry) {
	q.account.grow(-e.Deltas[0].Bytes, 0)
	e.Deltas[0], e.Deltas[1] = e.Deltas[1], Delta{}
	e.Deltas = e.Deltas[:1]
}

// Retry lets an entry be taken again after delay, or at once together with what
// arrived, or arrives, for its key meanwhile. It counts as returned: the queue may
// be synced.
func (q *Queue) Retry(e *Entry, delay time.Duration) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.attemptedLocked(e)
	q.failedLocked(e)
	if newer := q.returnLocked(e); newer != nil {
		e.Attempts = 0
		if newer.stage == ready { // others of the key may wait behind it
			q.ready.replace(newer, e)
			e.stage = ready
		} else {
			q.readyLocked(e)
		}
		return
	}
	e.Attempts++
	q.parkLocked(e, parked, time.Now().Add(delay))
}

// Postpone lets entries be taken again after delay, and not before, whatever
// arrives for their keys: that replaces what they have. They are then taken together,
// in the order that they have here; after a panic, one by one, because it is not
// known which was to blame. They do not count as returned before they are acknowledged, or
// given up.
func (q *Queue) Postpone(entries []*Entry, delay time.Duration, panicked bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	due := time.Now().Add(delay)
	batch := q.parking.newBatch()
	for _, e := range entries {
		if panicked {
			e.Panics++
			batch = q.parking.newBatch()
		}
		q.postponeLocked(e, due, batch)
	}
}

// Delay is Postpone for entries that are not at fault. They are taken again together with others that
// were delayed, and with no others: they wait for a part of the destination that the others can do
// without.
func (q *Queue) Delay(entries []*Entry, delay time.Duration) {
	q.mu.Lock()
	defer q.mu.Unlock()
	due := time.Now().Add(delay)
	for _, e := range entries {
		q.postponeLocked(e, due, delayedBatch)
	}
}

func (q *Queue) postponeLocked(e *Entry, due time.Time, batch uint64) {
	q.failedLocked(e)
	q.returnLocked(e)
	e.Attempts++
	e.batch = batch
	q.parkLocked(e, postponed, due)
}

// failedLocked notes that the consumer has failed for an entry, to which nothing was added since it
// was taken.
func (q *Queue) failedLocked(e *Entry) {
	if e.unseen && len(e.Deltas) > 1 {
		q.dropFirstLocked(e)
	}
	e.unseen = false
}

// returnLocked takes back an entry that the consumer is not done with, and merges the
// next one of its key into it, which it returns, if there is one.
func (q *Queue) returnLocked(e *Entry) (newer *Entry) {
	clear(e.seen[:cap(e.seen)])
	e.again = e.again || e.owes != nil
	newer = e.newer
	if newer == nil {
		return nil
	}
	before := e.bytes() + newer.bytes()
	for _, d := range newer.Deltas {
		e.Deltas = Merge(e.Deltas, d)
	}
	q.account.grow(e.bytes()-before, 0)
	e.Version, e.generation = newer.Version, newer.generation
	e.again = e.again || newer.again
	if newer.owes != nil {
		e.owes = newer.owes
	}
	q.syncing.merge(e, newer)
	if e.repeat && !newer.repeat {
		q.order.remove(e)
		q.order.replace(newer, e)
		e.repeat, e.seq, e.resume, e.current, e.Arrived = false, newer.seq, newer.resume, newer.current, newer.Arrived
	} else {
		q.order.remove(newer)
	}
	q.unlinkLocked(newer)
	return newer
}

// PutParked adds what a consumer without this queue has failed for, to be taken after
// delay. The deltas are of one key, which may have no other entry. It ignores the
// limit and the budget.
func (q *Queue) PutParked(deltas []Delta, delay time.Duration) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, d := range deltas {
		q.queueLocked(d, 0)
	}
	e := q.newest[deltas[0].Key]
	q.ready.remove(e)
	q.parkLocked(e, parked, time.Now().Add(delay))
}

func (q *Queue) parkLocked(e *Entry, as stage, due time.Time) {
	q.parking.add(e, as, due)
	q.wakeLocked()
}

// finishLocked forgets an entry that the consumer has given back, and lets the
// next one of its key go.
func (q *Queue) finishLocked(e *Entry) {
	q.attemptedLocked(e)
	q.account.grow(-e.bytes(), 0)
	q.order.remove(e)
	q.repeats.givenBackLocked(e)
	q.advancedLocked()
	q.checkSettledLocked()
	next := e.newer
	q.unlinkLocked(e)
	if next != nil && next.stage == blocked {
		q.readyLocked(next)
	}
	q.wakeLocked()
}
