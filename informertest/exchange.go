package informertest

import (
	"errors"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// exchange is one request under way with the faults that meet it, and the http.ResponseWriter
// through which its answer passes.
type exchange struct {
	inquiry
	w      http.ResponseWriter
	faults *faults
	done   <-chan struct{} // the client is gone
	stop   <-chan struct{} // the server closes
	// gzipAbove is the size in bytes that its answer must exceed to be compressed.
	gzipAbove int

	// How many faults meet it, so that the usual request pays nothing for being able to meet some.
	many atomic.Int32

	mu       sync.Mutex
	meetings []*meeting
	changed  signal // fires when meetings change
}

// meeting is what one fault does to one request.
type meeting struct {
	fault *activeFault
	// Of effectCut: the bytes that may still pass. Of effectGarbage, effectMistyped,
	// effectUnversioned and effectOversize: the items to pass by until it comes.
	left int
}

var errGone = errors.New("the client is gone, or the server closes")

// endedCleanly is what ends a handler, as a panic, whose response is to look whole.
type endedCleanly struct{}

func newExchange(q inquiry, w http.ResponseWriter, req *http.Request, a *handler) *exchange {
	return &exchange{inquiry: q, w: w, faults: a.faults, done: req.Context().Done(), stop: a.ctx.Done(), gzipAbove: a.options.GzipAbove}
}

func (x *exchange) add(a *activeFault) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.meetings = append(x.meetings, &meeting{fault: a, left: a.Effect.n})
	x.changedLocked()
}

func (x *exchange) remove(healed []*activeFault) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.meetings = slices.DeleteFunc(x.meetings, func(m *meeting) bool { return slices.Contains(healed, m.fault) })
	x.changedLocked()
}

func (x *exchange) changedLocked() {
	x.many.Store(int32(len(x.meetings)))
	x.changed.fire()
}

// wait returns a channel that is closed when other faults meet the request than now.
func (x *exchange) wait() <-chan struct{} {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.changed.wait()
}

// find returns the effect of one of the kinds that meets the request and was injected first; ok is
// false when there is none.
func (x *exchange) find(kinds ...effectKind) (e Effect, ok bool) {
	f, ok := x.findFault(kinds...)
	return f.Effect, ok
}

// findFault returns the fault of that effect.
func (x *exchange) findFault(kinds ...effectKind) (f Fault, ok bool) {
	if x.many.Load() == 0 {
		return f, false
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, m := range x.meetings {
		if slices.Contains(kinds, m.fault.Effect.kind) {
			return m.fault.Fault, true
		}
	}
	return f, false
}

// closesAfter is how long faults let a watch last; ok is false if none limits it.
func (x *exchange) closesAfter() (d time.Duration, ok bool) {
	if x.many.Load() == 0 {
		return 0, false
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, m := range x.meetings {
		if e := m.fault.Effect; e.kind == effectClose && (!ok || e.time < d) {
			d, ok = e.time, true
		}
	}
	return d, ok
}

// dawdle waits for as long as the next item takes, and not beyond until.
func (x *exchange) dawdle(until time.Time) error {
	began := time.Now()
	for x.many.Load() > 0 {
		changed := x.wait()
		e, ok := x.find(effectDelay)
		left := min(e.time-time.Since(began), time.Until(until))
		if !ok || left <= 0 {
			return nil
		}
		if err := x.sleep(left, changed); err != nil {
			return err
		}
	}
	return nil
}

func (x *exchange) has(kind effectKind) bool {
	_, ok := x.find(kind)
	return ok
}

// pass waits while the request hangs.
func (x *exchange) pass() error {
	for x.many.Load() > 0 {
		changed := x.wait()
		if !x.has(effectHang) {
			return nil
		}
		select {
		case <-changed:
		case <-x.done:
			return errGone
		case <-x.stop:
			return errGone
		}
	}
	return nil
}

// sleep waits for a time, or until changed is closed.
func (x *exchange) sleep(d time.Duration, changed <-chan struct{}) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-changed:
	case <-x.done:
		return errGone
	case <-x.stop:
		return errGone
	}
	return nil
}
