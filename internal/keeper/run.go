package keeper

import (
	"context"
	"time"

	"github.com/rvinformer/informer/internal/deltaqueue"
)

// unmovedIntervals is how many intervals a checkpoint stays as it is if only the resource
// version has moved on.
const unmovedIntervals = 10

// Run saves what is worth it until ctx ends. A save that failed is tried again after growing
// pauses.
func (k *Keeper) Run(ctx context.Context, queue *deltaqueue.Queue) {
	k.keepSaving(ctx, saver{
		interval:   k.Interval,
		pending:    &k.pending,
		worthwhile: func(ticked bool) bool { return k.worthwhile(queue, ticked) },
		resumable:  func() bool { return k.saved.resume == "" && k.moved(queue, false) },
		save:       func(ctx context.Context) error { return k.save(ctx, queue, false) },
	})
}

// worthwhile reports whether to save now.
func (k *Keeper) worthwhile(queue *deltaqueue.Queue, ticked bool) bool {
	changes := k.changes()
	switch {
	case k.pending.listed.Swap(false):
		news := changes > 0 || k.moved(queue, false)
		if news {
			k.pending.listed.Store(true)
		}
		return news
	case changes >= int64(k.Changes), ticked && changes > 0:
		return true
	default:
		return ticked && time.Since(k.saved.at) >= unmovedIntervals*k.Interval && k.moved(queue, false)
	}
}

// changes is the number of changes of the known versions that are not saved. Changes by others
// count too: a run that lists nothing must save versions that were there before.
func (k *Keeper) changes() int64 {
	return k.pending.changes.Load() + k.Versions.Edits() - k.saved.edits
}

// moved reports whether the run could go on from another version than the saved one.
func (k *Keeper) moved(queue *deltaqueue.Queue, ended bool) bool {
	return k.covered(SafePoint(queue, ended)) != k.saved.resume
}
