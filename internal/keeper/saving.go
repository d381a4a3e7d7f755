package keeper

import (
	"context"
	"math"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/rvinformer/informer/internal/backoff"
)

// pausePerSave is how many times as long as a save the pause after it is at least. So a twentieth
// of the time is spent on saving at most, and a tenth while each list is saved when it begins and
// when it is complete.
const pausePerSave = 19

// saver is how one kind of content is saved. Its functions are called one after the other.
type saver struct {
	interval time.Duration
	pending  *pending
	// worthwhile reports whether to save now.
	worthwhile func(ticked bool) bool
	// resumable reports whether a save would have a resource version to go on from, where the last
	// one has none. Such a save does not wait: a process that goes on from the last one lists.
	resumable func() bool
	save      func(context.Context) error
}

// keepSaving saves what is worth it until ctx ends, at least at each interval and when something is
// due. A save that failed is tried again after growing pauses.
func (s *lockedStore) keepSaving(ctx context.Context, of saver) {
	tick := time.NewTicker(of.interval)
	defer tick.Stop()
	waits := retries(of.interval)
	for {
		ticked := false
		if s.failure == nil {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				ticked = true
			case <-of.pending.due:
			}
			if !of.worthwhile(ticked) {
				continue
			}
		}
		began := time.Now()
		err := of.save(ctx)
		pause := pausePerSave * time.Since(began)
		if err == nil {
			s.Report.Forget(s.failure)
			s.failure = nil
			waits = retries(of.interval)
			err = of.pending.rest(ctx, pause, of.resumable)
		} else {
			if ctx.Err() == nil {
				err = s.unused(err)
				s.Report.Fail(err)
				s.failure = err
				pause = max(pause, waits.Step())
			}
			err = backoff.Sleep(ctx, pause)
		}
		if err != nil {
			return
		}
	}
}

// retries are the pauses after saves that failed. They grow to an interval, because to write all
// of a large set in vain costs as much as to write it.
func retries(interval time.Duration) *wait.Backoff {
	return &wait.Backoff{Duration: min(time.Second, interval), Factor: 2, Steps: math.MaxInt, Cap: interval}
}
