package keeper

import (
	"context"
	"math"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/rvinformer/informer/internal/backoff"
	"github.com/rvinformer/informer/internal/deltaqueue"
)

const (
	// unmovedIntervals is how many intervals a checkpoint stays as it is if only the resource
	// version has moved on.
	unmovedIntervals = 10
	// pausePerSave is how many times as long as a save the pause after it is at least. So a
	// twentieth of the time is spent on saving at most.
	pausePerSave = 19
)

// Run saves what is worth it until ctx ends. A save that failed is tried again after growing
// pauses.
func (k *Keeper) Run(ctx context.Context, queue *deltaqueue.Queue) {
	tick := time.NewTicker(k.Interval)
	defer tick.Stop()
	waits := k.retries()
	for {
		ticked := false
		if k.failure == nil {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				ticked = true
			case <-k.pending.due:
			}
			if !k.worthwhile(queue, ticked) {
				continue
			}
		}
		began := time.Now()
		err := k.save(ctx, queue, false)
		pause := pausePerSave * time.Since(began)
		if err == nil {
			k.Report.Forget(k.failure)
			k.failure = nil
			waits = k.retries()
		} else if ctx.Err() == nil {
			err = k.unused(err)
			k.Report.Fail(err)
			k.failure = err
			pause = max(pause, waits.Step())
		}
		if backoff.Sleep(ctx, pause) != nil {
			return
		}
	}
}

// retries are the pauses after saves that failed. They grow to an interval, because to write all
// of a large set in vain costs as much as to write it.
func (k *Keeper) retries() *wait.Backoff {
	return &wait.Backoff{Duration: min(time.Second, k.Interval), Factor: 2, Steps: math.MaxInt, Cap: k.Interval}
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
