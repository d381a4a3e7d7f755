package follower

import (
	"sync"

	"github.com/rvinformer/informer/internal/engine/source"
)

// relist ends the watch under way when another goroutine wants a list.
type relist struct {
	mu     sync.Mutex
	wanted bool
	// watch is the one under way, nil without one.
	watch source.Feed
}

// Relist has the newest state of the server listed: at once if a watch is followed, or else after
// the list under way. It may be called from any goroutine.
func (f *Follower) Relist() {
	r := &f.relist
	r.mu.Lock()
	defer r.mu.Unlock()
	r.wanted = true
	if r.watch != nil {
		r.watch.Interrupt()
	}
}

// interrupt ends the watch under way, if there is one.
func (r *relist) interrupt() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.watch != nil {
		r.watch.Interrupt()
	}
}

// begin notes that a watch is followed, unless a list is wanted, which it reports.
func (r *relist) begin(watch source.Feed) (wanted bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.wanted {
		r.watch = watch
	}
	return r.wanted
}

// end notes that no watch is followed. It is called before the watch is closed.
func (r *relist) end() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.watch = nil
}

// take reports whether a list is wanted, which follows then.
func (r *relist) take() (wanted bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	wanted, r.wanted = r.wanted, false
	return wanted
}
