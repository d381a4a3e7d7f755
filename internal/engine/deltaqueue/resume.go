package deltaqueue

import (
	"math"

	"github.com/rvinformer/informer/internal/leaf/moment"
	"github.com/rvinformer/informer/internal/leaf/rv"
)

// frontier is up to where the producer has put everything.
type frontier struct {
	// observed, before, shared and bookmarks are an rv.Reached. They stand apart, because an idle queue
	// would take 32 bytes more with one.
	observed, before string
	shared           bool
	bookmarks        uint8
	// ahead tells that something was put since.
	ahead bool
	// current is a moment, zero if there is none: everything that the server had then has been put.
	// It never goes back.
	current moment.Moment
}

func (f *frontier) reach(at rv.Reached) {
	f.observed, f.before, f.shared, f.bookmarks, f.ahead = at.ResourceVersion, at.Before, at.Shared, at.Bookmarks, false
}

func (f *frontier) reached() rv.Reached {
	return rv.Reached{ResourceVersion: f.observed, Before: f.before, Shared: f.shared, Bookmarks: f.bookmarks}
}

// settling is a call that is owed when no entry is left up to upTo; nil if none is.
type settling struct {
	settled func()
	upTo    uint64
}

// Observed notes how far the producer has put what happened. Current, if it is not zero, is a moment:
// everything that the server had then has been put.
func (q *Queue) Observed(at rv.Reached, current moment.Moment) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.frontier.reach(at)
	q.frontier.current = max(q.frontier.current, current)
	q.advancedLocked()
}

// Listed is Observed for the version of a generation that was read to its end. It may be older than
// what was observed before: then the server has gone back to an older state.
func (q *Queue) Listed(resourceVersion string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	before := q.frontier.observed
	q.frontier.reach(rv.At(resourceVersion))
	q.waiting.Listed(before, resourceVersion)
	q.advancedLocked()
}

// Times returns the newest moment for which everything that the server had then is known to be
// acknowledged or dropped, and when the oldest delta arrived that is not acknowledged. They are
// zero for none.
func (q *Queue) Times() (current, oldest moment.Moment) {
	q.mu.Lock()
	defer q.mu.Unlock()
	current = q.frontier.current
	if e := q.firstOwnLocked(); e != nil {
		current, oldest = min(current, e.current), e.Arrived
	}
	return current, oldest
}

// Reach ends the waits for what is acknowledged already.
func (q *Queue) Reach() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.reachLocked()
}

// reachLocked ends the waits for what is acknowledged. A resume point counts once the server has
// accepted it.
func (q *Queue) reachLocked() {
	if !q.waiting.Waits() || q.phase == resuming {
		return
	}
	q.waiting.Reach(q.reachedLocked())
}

// Drained reports whether everything that was put is acknowledged or was dropped, and nothing was
// put beyond ResumePoint.
func (q *Queue) Drained() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.firstOwnLocked() == nil && !q.frontier.ahead
}

// ResumePoint is the resource version up to which everything is acknowledged, or was dropped. It is
// before a version of which more is to be expected.
func (q *Queue) ResumePoint() string {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.reachedLocked()
}

// ToldPoint is ResumePoint, or an older version: of all versions up to it, everything was told.
func (q *Queue) ToldPoint() string {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.oldestOrLocked(q.frontier.reached().Resume())
}

// BegunPoint is ResumePoint, or a newer version: more of it may be expected, and all that was told of
// it is acknowledged, or was dropped.
func (q *Queue) BegunPoint() string {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.oldestOrLocked(q.frontier.observed)
}

func (q *Queue) reachedLocked() string { return q.oldestOrLocked(q.frontier.reached().Claim()) }

// oldestOrLocked is the version before the oldest entry that is no repeat, or reached if there is none.
func (q *Queue) oldestOrLocked(reached string) string {
	if oldest := q.firstOwnLocked(); oldest != nil {
		return oldest.resume
	}
	return reached
}

// SafeResumePoint is ResumePoint if a watch from there brings all that is neither acknowledged nor
// dropped. It is empty while something of a
// generation is not acknowledged: that would be before it, and why there was a list may be that a
// watch from there does not tell everything.
func (q *Queue) SafeResumePoint() string {
	q.mu.Lock()
	defer q.mu.Unlock()
	seq, resume := q.oldestLocked()
	if seq <= q.generation.listed {
		return ""
	}
	return resume
}

// oldestLocked is the oldest entry that is no repeat, and the resource version from which a watch
// brings it again.
func (q *Queue) oldestLocked() (seq uint64, resume string) {
	if oldest := q.firstOwnLocked(); oldest != nil {
		return oldest.seq, oldest.resume
	}
	return math.MaxUint64, q.reachedLocked()
}

// WhenGivenBack has settled called once, when everything that is in the queue now was
// given back for good: at once, or in a call of the consumer. It must not call the
// queue, and takes the place of the one before.
func (q *Queue) WhenGivenBack(settled func()) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.settling = settling{settled, q.seq}
	q.checkSettledLocked()
}

func (q *Queue) checkSettledLocked() {
	if q.settling.settled == nil {
		return
	}
	if oldest := q.firstOwnLocked(); oldest == nil || oldest.seq > q.settling.upTo {
		q.settling.settled()
		q.settling = settling{}
	}
}
