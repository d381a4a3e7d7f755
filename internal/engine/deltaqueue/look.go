package deltaqueue

import (
	"github.com/rvinformer/informer/internal/leaf/keytable"
	"github.com/rvinformer/informer/internal/leaf/moment"
)

// Look is what a queue knows of one key at one moment.
type Look struct {
	// Known is the version that was acknowledged, if Exists.
	Known  keytable.Version
	Exists bool
	// Waits tells that changes of the key wait, or are with the consumer. What follows is of them.
	Waits bool
	// Newest is the version of the newest of them, and Deleted tells that it is a deletion.
	Newest  keytable.Version
	Deleted bool
	// Taken tells that the oldest is with the consumer, and Attempts how often the consumer has
	// failed for it.
	Taken    bool
	Attempts int
	// Arrived is when the oldest was read, zero if that is not known.
	Arrived moment.Moment
}

// Look returns what is known of a key, and what waits. It may also be called after Close.
func (q *Queue) Look(key string) (l Look) {
	q.mu.Lock()
	defer q.mu.Unlock()
	l.Known, l.Exists = q.known.Get(key)
	newest := q.newest[key]
	if newest == nil {
		return l
	}
	oldest := newest.oldest()
	l.Taken = oldest.stage == taken
	l.Waits, l.Newest, l.Deleted = true, newest.Version, newest.Deleted()
	l.Attempts, l.Arrived = oldest.Attempts, oldest.Arrived
	return l
}
