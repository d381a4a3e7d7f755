package deltaqueue

import (
	"math"

	"github.com/rvinformer/informer/internal/moment"
	"github.com/rvinformer/informer/internal/rv"
)

type passedOver struct {
	// seq and resume are those of the oldest entry dropped.
	seq     uint64
	resume  string
	current moment.Moment
	// generation is the one that was under way when the last of them was dropped. One that
	// begins later puts them all again.
	generation uint64
	// until is the last entry of the generation that repairs the loss; zero
	// while none has.
	until uint64
}

// Observed notes that everything up to a resource version has been put. Current, if it is not zero, is a moment: everything that the
// server had then has been put.
func (q *Queue) Observed(resourceVersion string, current moment.Moment) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.observed, q.ahead = resourceVersion, false
	if current != 0 && q.extent.Complete() { // or nothing is known of what was not listed
		q.current = max(q.current, current)
	}
	q.overlapEndsLocked()
	q.advancedLocked()
}

// Listed is Observed for the version of a generation that was read to its end. It may be older than what was observed before: then
// the server has gone back to an older state.
func (q *Queue) Listed(resourceVersion string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	before := q.observed
	q.observed, q.ahead = resourceVersion, false
	if rv.Compare(resourceVersion, before) == rv.Older {
		q.waiting.WentBack(before, resourceVersion)
	}
	q.advancedLocked()
}

// Times returns the newest moment for which everything that the server had then is known to be acknowledged, and when the
// oldest delta arrived that is not acknowledged. They are zero for none.
func (q *Queue) Times() (current, oldest moment.Moment) {
	q.mu.Lock()
	defer q.mu.Unlock()
	current = q.current
	if p := q.passedLocked(); p != nil {
		current = min(current, p.current)
	}
	if e := q.order.first; e != nil {
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

// reachLocked ends the waits for what is acknowledged. A resume point counts once the server has accepted it.
func (q *Queue) reachLocked() {
	if !q.waiting.Waits() || q.resumed && q.initial {
		return
	}
	_, resume := q.oldestLocked()
	q.waiting.Reach(resume)
}

// Drained reports whether everything that was put is acknowledged, and nothing was put
// beyond ResumePoint.
func (q *Queue) Drained() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.order.entries == 0 && q.passedLocked() == nil && !q.ahead
}

// ResumePoint is the resource version up to which everything is acknowledged:
// a watch from there brings again all that is not.
func (q *Queue) ResumePoint() string {
	q.mu.Lock()
	defer q.mu.Unlock()
	_, resume := q.oldestLocked()
	return resume
}

// SafeResumePoint is ResumePoint, and empty while something of a generation is not
// acknowledged: that would be before it, and why there was a list may be that a watch
// from there does not tell everything.
func (q *Queue) SafeResumePoint() string {
	q.mu.Lock()
	defer q.mu.Unlock()
	seq, resume := q.oldestLocked()
	if seq <= q.listed {
		return ""
	}
	return resume
}

// oldestLocked is the oldest entry that is not acknowledged, and the resource version
// from which a watch brings it again.
func (q *Queue) oldestLocked() (seq uint64, resume string) {
	oldest, p := q.order.first, q.passedLocked()
	switch {
	case oldest != nil && (p == nil || oldest.seq < p.seq):
		return oldest.seq, oldest.resume
	case p != nil:
		return p.seq, p.resume
	default:
		return math.MaxUint64, q.observed
	}
}

// WhenGivenBack has settled called once, when everything that is in the queue now was
// given back for good: at once, or in a call of the consumer. It must not call the
// queue, and takes the place of the one before.
func (q *Queue) WhenGivenBack(settled func()) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.settled, q.settling = settled, q.seq
	q.checkSettledLocked()
}

func (q *Queue) checkSettledLocked() {
	if q.settled == nil {
		return
	}
	if oldest := q.order.first; oldest == nil || oldest.seq > q.settling {
		q.settled()
		q.settled = nil
	}
}

// passedLocked returns what was dropped and is not repaired, nil if nothing is.
func (q *Queue) passedLocked() *passedOver {
	if p := q.passed; p != nil && p.until != 0 {
		if oldest := q.order.first; oldest == nil || oldest.seq > p.until {
			q.passed = nil
		}
	}
	return q.passed
}

// passOverLocked keeps the resume point at the oldest entry that was dropped.
func (q *Queue) passOverLocked(e *Entry) {
	if p := q.passedLocked(); p == nil || e.seq < p.seq {
		q.passed = &passedOver{seq: e.seq, resume: e.resume, current: e.current}
	}
	q.passed.generation, q.passed.until = q.generation, 0
}
