package keeper

import (
	"sync"

	"github.com/rvinformer/informer/internal/deltaqueue"
	"github.com/rvinformer/informer/internal/rv"
)

// coverage tells whether the handler was shown everything up to the newest version that was
// acknowledged. Only then may a checkpoint claim that version.
//
// A list that is complete covers everything, and so does a checkpoint with a version that was
// loaded. Coverage ends with the beginning of a list, and with a gap.
type coverage struct {
	mu    sync.Mutex
	state covering
	// gaps is the number of gaps when the list began, or the checkpoint was loaded, if the state
	// is whole. Each further gap is one that they do not repair.
	gaps int64
}

type covering int

const (
	// nothing: no list was complete yet, or one is under way.
	nothing covering = iota
	// whole: everything was shown, unless there is a gap since.
	whole
)

// begin notes that a list begins.
func (c *coverage) begin() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.state = nothing
}

// complete notes that everything was shown but for what the gaps beyond those given have lost.
func (c *coverage) complete(gaps int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.state, c.gaps = whole, gaps
}

// is reports whether everything was shown, with that many gaps by now.
func (c *coverage) is(gaps int64) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.state == whole && c.gaps == gaps
}

// gaps counts what only a list can repair: objects that could not be read, clusters that took the
// place of another, and changes of the known versions that others have made.
func (k *Keeper) gaps() int64 { return k.Report.Gaps.Count() + k.Versions.Edits() }

// covered returns resourceVersion if everything up to it was shown to the handler, and else
// nothing. It returns nothing for "0", which a server takes for any version.
func (k *Keeper) covered(resourceVersion string) string {
	if resourceVersion == "0" || !k.covers.is(k.gaps()) {
		return ""
	}
	return resourceVersion
}

// BeginList notes that a list begins. From then on a checkpoint has no version, which is saved at
// once: the reason for the list may be that a watch from the saved version does not show
// everything. When the list has ended, ended is called. The list is saved when it is acknowledged.
func (k *Keeper) BeginList(queue *deltaqueue.Queue) (ended func(complete bool)) {
	gaps := k.gaps()
	k.covers.begin()
	k.pending.noteList()
	return func(complete bool) {
		if complete {
			k.covers.complete(gaps)
		}
		queue.WhenGivenBack(k.pending.noteList)
	}
}

// SafePoint returns the resource version up to which everything in queue is acknowledged, if
// another run can go on from there. Ended tells that the run has ended.
//
// Another run is shown again what was acknowledged beyond it, and knows by the version that it is
// old. Versions without an order do not tell that. With them nothing may lie beyond: the run has
// ended, and everything is acknowledged.
func SafePoint(queue *deltaqueue.Queue, ended bool) string {
	resume := queue.SafeResumePoint()
	if rv.Ordered(resume) || ended && queue.Drained() {
		return resume
	}
	return ""
}
