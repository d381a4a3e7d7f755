package report

import (
	"sync/atomic"
	"time"

	"github.com/rvinformer/informer/internal/leaf/histogram"
)

const (
	// One call in timedEvery is timed while there are more than one in timedPause. So
	// timing costs a hundredth of the time at most, however fast the handler is.
	timedEvery = 16
	timedPause = 100 * time.Microsecond
	// timedBurst is how far the calls may be ahead of that before.
	timedBurst = 100 * time.Millisecond
)

// handling is what is counted of the calls of a handler.
type handling struct {
	calls, failures atomic.Int64
	// next is the call to be timed next.
	next atomic.Int64
	// began is when the first call began, and ahead is how long after that the calls that were
	// timed would be due, at one in timedPause.
	began    time.Time
	ahead    atomic.Int64
	duration *histogram.Histogram
	// batches is nil without batches.
	batches atomic.Pointer[histogram.Histogram]
}

// Call is a call of the handler that is under way.
type Call struct {
	handling *handling
	// number is that of the call if it is timed, and began is when it began.
	number int64
	began  time.Duration
}

// BeginCall counts a call of the handler. Calls may be under way side by side.
func (p *Progress) BeginCall() Call {
	h := p.counters.handling.Load()
	if h == nil {
		h = &handling{began: time.Now(), duration: histogram.OfSeconds()}
		h.ahead.Store(-int64(timedBurst))
		if !p.counters.handling.CompareAndSwap(nil, h) {
			h = p.counters.handling.Load()
		}
	}
	n := h.calls.Add(1)
	if n < h.next.Load() {
		return Call{}
	}
	return Call{handling: h, number: n, began: time.Since(h.began)}
}

// End notes that the call has returned, or panicked.
func (c Call) End() {
	h := c.handling
	if h == nil {
		return
	}
	now := time.Since(h.began)
	h.duration.Observe(int64(now - c.began))
	ahead := max(time.Duration(h.ahead.Load()), now-timedBurst) + timedPause
	h.ahead.Store(int64(ahead))
	if ahead > now {
		h.next.Store(c.number + timedEvery)
	}
}

// CountBatch counts a batch of so many events, whose call was begun.
func (p *Progress) CountBatch(events int) {
	h := p.counters.handling.Load()
	b := h.batches.Load()
	if b == nil {
		b = histogram.OfSizes()
		if !h.batches.CompareAndSwap(nil, b) {
			b = h.batches.Load()
		}
	}
	b.Observe(int64(events))
}

// CountFailure counts a call that failed.
func (p *Progress) CountFailure() {
	if h := p.counters.handling.Load(); h != nil {
		h.failures.Add(1)
	}
}
