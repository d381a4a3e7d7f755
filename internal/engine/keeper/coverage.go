package keeper

import (
	"github.com/rvinformer/informer/internal/engine/deltaqueue"
	"github.com/rvinformer/informer/internal/leaf/rv"
)

// gaps counts what only a list can repair: objects that could not be read, clusters that took the
// place of another, and changes of the known versions that others have made.
func (k *Keeper) gaps() int64 { return k.Report.Gaps.Count() + k.Versions.Edits() }

// covered returns resourceVersion if everything up to it was shown to the handler, and else
// nothing.
func (k *Keeper) covered(resourceVersion string) string {
	return k.covers.Claim(resourceVersion, k.gaps())
}

// BeginList notes that a list begins. From then on a checkpoint has no version, which is saved at
// once: the reason for the list may be that a watch from the saved version does not show
// everything. When the list has ended, ended is called. The list is saved when it is acknowledged.
func (k *Keeper) BeginList(queue *deltaqueue.Queue) (ended func(complete bool)) {
	k.covers.Begin(k.gaps())
	k.pending.noteList()
	return func(complete bool) {
		k.covers.End(complete)
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
