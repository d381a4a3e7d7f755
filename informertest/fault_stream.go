package informertest

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
)

// maxRecent is how many events of a watch may come again.
const maxRecent = 8

// frame is one event of a watch, ready to be written.
type frame struct {
	kind   watch.EventType
	object []byte
}

// strain is what faults have done to the events of a watch so far.
type strain struct {
	// An event that waits for the next one to be written before it; nil for none.
	held *frame
	// The newest events written, while they may be repeated.
	recent []frame
	// The end bookmark was withheld for good, and with it all later ones.
	endless bool
	// The time of the watch was over before an event was there.
	overtaken bool
}

// act does to the watch as a whole what faults want, and reports whether it is over.
func (w *watching) act() (over bool, err error) {
	x := w.exchange
	if err := x.pass(); err != nil {
		return true, err
	}
	if w.held != nil && !x.has(effectSwap) {
		if err := w.release(); err != nil {
			return true, err
		}
		if err := w.flush(); err != nil {
			return true, err
		}
	}
	x.breakOff()
	if w.overtaken || !time.Now().Before(w.ends()) {
		return true, w.end()
	}
	if e, ok := x.find(effectErrorEvent); ok {
		if err := w.sayBefore(e); err != nil {
			return true, err
		}
		return true, w.fail(x.status(e, w.target, nil))
	}
	return false, nil
}

// sayBefore sends the bookmark that comes before a late ERROR event.
func (w *watching) sayBefore(e Effect) error {
	if !e.option || !w.bookmarks || w.opening == openingStream || w.cursor.future > 0 {
		return nil
	}
	return w.sendBookmark(w.cursor.rv, false)
}

// ends is when the watch is over: after the time that it was asked for, or after a shorter one that
// faults give it.
func (w *watching) ends() time.Time {
	if d, ok := w.exchange.closesAfter(); ok && d < w.duration {
		return w.began.Add(d)
	}
	return w.began.Add(w.duration)
}

// dawdle waits for as long as the next event takes, or until the watch is overtaken. What is there
// already is sent before.
func (w *watching) dawdle() error {
	if w.overtaken || !w.exchange.has(effectDelay) {
		return nil
	}
	if err := w.flush(); err != nil {
		return err
	}
	ends := w.ends()
	if err := w.exchange.dawdle(ends); err != nil {
		return err
	}
	w.overtaken = !time.Now().Before(ends)
	return nil
}

// end sends what is left of a watch that is over.
func (w *watching) end() error {
	if err := w.release(); err != nil {
		return err
	}
	return w.flush()
}

func (w *watching) release() error {
	held := w.held
	if held == nil {
		return nil
	}
	w.held = nil
	return w.write(*held)
}

// emit writes an event that is no bookmark, or has it change places with the next one.
func (w *watching) emit(f frame) error {
	if w.held != nil {
		if err := w.write(f); err != nil {
			return err
		}
		return w.release()
	}
	if e, ok := w.exchange.find(effectSwap); ok && w.exchange.faults.roll(e.n) {
		w.held = &f
		return nil
	}
	return w.write(f)
}

// write writes an event, and perhaps an earlier one after it.
func (w *watching) write(f frame) error {
	if err := w.say(f.kind, f.object); err != nil {
		return err
	}
	e, ok := w.exchange.find(effectRepeat)
	if !ok {
		w.recent = nil
		return nil
	}
	faults := w.exchange.faults
	if n := len(w.recent); n > 0 && faults.roll(e.n) {
		again := w.recent[faults.pick(n)]
		if err := w.say(again.kind, again.object); err != nil {
			return err
		}
	}
	if len(w.recent) == maxRecent {
		w.recent = slices.Delete(w.recent, 0, 1)
	}
	w.recent = append(w.recent, f)
	return nil
}

// loses reports whether a change is not to be told.
func (w *watching) loses() bool {
	e, ok := w.exchange.find(effectLose)
	return ok && w.exchange.faults.roll(e.n)
}

// withholds reports whether a bookmark is not to be sent.
func (w *watching) withholds(initialEnd bool) bool {
	x := w.exchange
	if initialEnd && x.has(effectEndlessWatchList) {
		w.endless = true
	}
	if w.endless || x.has(effectNoBookmarks) {
		return true
	}
	e, ok := x.find(effectDropBookmarks)
	return ok && x.faults.roll(e.n)
}

// openAt waits, if the watch is one that waits for its state, until that is reached, and returns
// from when it must be.
func (a *handler) openAt(x *exchange, p watchPlan, done <-chan struct{}) watchPlan {
	if p.opening != openingStream {
		return p
	}
	if p.consistent {
		p.rv = a.store.newest()
	}
	a.store.await(done, x, p.rv)
	return p
}

// idle waits for the next thing to do.
func (w *watching) idle(done, changed, faulty <-chan struct{}) {
	until := w.ends()
	if w.bookmarks && w.bookmark.Before(until) {
		until = w.bookmark
	}
	timer := time.NewTimer(time.Until(until))
	defer timer.Stop()
	select {
	case <-changed:
	case <-faulty:
	case <-timer.C:
	case <-done:
	}
}

// anyVersion reports whether list options name no resource version of their own.
func anyVersion(opts *metav1.ListOptions) bool {
	return opts.ResourceVersion == "" || opts.ResourceVersion == "0"
}
