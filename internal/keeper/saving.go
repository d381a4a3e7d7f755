package keeper

import (
	"context"
	"math"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/rvinformer/informer/internal/backoff"
)

// pausePerSave is how many times as long as a save the pause after it is at least. So a
// twentieth of the time is spent on saving at most.
const pausePerSave = 19

// keepSaving saves what is worth it until ctx ends, at least at each interval and when due. A save that failed is tried again after
// growing pauses.
func (s *shelf) keepSaving(ctx context.Context, interval time.Duration, due <-chan struct{}, worthwhile func(ticked bool) bool, save func(context.Context) error) {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	waits := retries(interval)
	for {
		ticked := false
		if s.failure == nil {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				ticked = true
			case <-due:
			}
			if !worthwhile(ticked) {
				continue
			}
		}
		began := time.Now()
		err := save(ctx)
		pause := pausePerSave * time.Since(began)
		if err == nil {
			s.Report.Forget(s.failure)
			s.failure = nil
			waits = retries(interval)
		} else if ctx.Err() == nil {
			err = s.unused(err)
			s.Report.Fail(err)
			s.failure = err
			pause = max(pause, waits.Step())
		}
		if backoff.Sleep(ctx, pause) != nil {
			return
		}
	}
}

// retries are the pauses after saves that failed. They grow to an interval, because to write all
// of a large set in vain costs as much as to write it.
func retries(interval time.Duration) *wait.Backoff {
	return &wait.Backoff{Duration: min(time.Second, interval), Factor: 2, Steps: math.MaxInt, Cap: interval}
}
