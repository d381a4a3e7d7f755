package deltaqueue

import (
	"time"

	"k8s.io/client-go/tools/cache"

	"github.com/rvinformer/informer/internal/leaf/keytable"
	"github.com/rvinformer/informer/internal/leaf/moment"
)

// Entry is the work that waits for the consumer under one key. From Take until it
// is given back its exported fields are the consumer's to read, and do not change.
type Entry struct {
	Key string
	// Deltas is what happened, oldest first: see Merge.
	Deltas []Delta
	// Version is that of the newest delta.
	Version keytable.Version
	// Initial tells that the first complete generation brought the entry.
	Initial bool
	// Resumed tells that the consumer may know the key although Known does not: what
	// it has acknowledged since the checkpoint that this queue goes on from is lost.
	Resumed bool
	// Arrived is when the oldest change of the key that is not acknowledged was read off its
	// connection; zero if that is not known.
	Arrived moment.Moment
	// Attempts counts the calls for these deltas that failed.
	Attempts int
	// Panics counts those that panicked, for what these deltas have replaced included.
	Panics int
	// Ambiguous counts those that may have failed for another entry. It is the consumer's to count.
	Ambiguous int
	// Failure is the consumer's to write down, nil while neither these deltas nor what they have
	// replaced has failed.
	Failure *Failure

	// batch is a number of those that were postponed together, 0 for none. See delayedBatch.
	batch uint64

	// stage says where the entry is; it is in the ready line, the parked heap,
	// or neither, accordingly.
	stage stage
	// generation is the newest one that showed the key, or that was under way when a watch did.
	generation uint64
	// resume is the resource version from which a watch would bring the entry
	// again: the newest that was known before it came.
	resume string
	// current is the newest moment for which everything had been put before the entry came.
	current moment.Moment
	seq     uint64
	// unattempted counts the entry among those that synced waits for.
	unattempted bool
	// unseen: see Unseen.
	unseen bool
	// again: see Again. A repeat has no more than the consumer has acknowledged before.
	again, repeat bool
	// owes is the redelivery that waits until the entry is given back, nil for none.
	owes *Redelivery
	// due is when a parked entry is tried again, and turn its place among those that are
	// due then.
	due       time.Time
	turn      uint64
	heapIndex int
	links     [lines]links
	// older and newer are the entries of the same key beside it. Invariant: only the oldest can be
	// taken, and without EveryChange there is a newer one only behind a taken one.
	older, newer *Entry
	// room is what Deltas begin in: there are two at most. Seen is what Room returns.
	room [2]Delta
	seen []Delta
}

// Failure is what a consumer remembers of the failures for the deltas of an entry.
type Failure struct {
	// First and Last are the texts of the first and of the newest error.
	First, Last string
	// Since is when the first was.
	Since time.Time
	// Alone counts the calls that have failed for this entry by itself.
	Alone int
}

type stage int

const (
	ready     stage = iota // waits to be taken
	late                   // a repeat that waits to be taken behind those that are ready
	blocked                // waits for an older entry of its key that is taken
	parked                 // waits until it is due to be tried again, or something newer comes
	postponed              // waits until it is due, whatever comes
	taken                  // with the consumer
)

// Room returns an empty slice for what the consumer makes of the deltas, which it may use until it
// gives the entry back.
func (e *Entry) Room() []Delta {
	if e.seen == nil {
		e.seen = make([]Delta, 0, 1)
	}
	return e.seen[:0]
}

// Again tells that the consumer is to be given what the entry has although it may have acknowledged
// that before.
func (e *Entry) Again() bool { return e.again }

// IsRepeat reports whether the entry has no more than a redelivery has put.
func (e *Entry) IsRepeat() bool { return e.repeat }

// Unseen notes, for an entry that is taken, that the consumer never saw the object whose end comes
// first in Deltas, and so is not told of that end. When it is given the entry again, it is only
// told what came after that.
func (e *Entry) Unseen() { e.unseen = true }

// Deleted reports whether the key ends deleted.
func (e *Entry) Deleted() bool {
	return e.newest().Type == cache.Deleted
}

func (e *Entry) newest() Delta {
	return e.Deltas[len(e.Deltas)-1]
}

func (e *Entry) bytes() (sum int64) {
	for _, d := range e.Deltas {
		sum += d.Bytes
	}
	return sum
}

// shows reports whether the newest delta is the object in exactly this version.
// Objects without a resource version are never known to be the same.
func (e *Entry) shows(v keytable.Version) bool {
	return !e.Deleted() && v.SameState(e.Version)
}
