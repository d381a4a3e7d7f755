package keeper

import (
	"context"
	"io"
	"math"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/rvinformer/informer/internal/leaf/backoff"
	"github.com/rvinformer/informer/internal/leaf/failure"
)

// unmovedIntervals is how many intervals content stays as it is if only the resource version has
// moved on.
const unmovedIntervals = 10

// pausePerSave is how many times as long as a save the pause after it is at least. So a twentieth
// of the time is spent on saving at most, and a tenth while each list is saved when it begins and
// when it is complete.
const pausePerSave = 19

// saved is what the last save had.
type saved struct {
	point
	at time.Time
}

// point is what a save says beside the content.
type point struct {
	// resume is the resource version up to which the content is whole, empty if it is not.
	resume string
	// cluster is the UID of the cluster, and server the address at which it is reached.
	cluster, server string
	// redelivery is the text of the redelivery, empty if there is none.
	redelivery string
}

// saver is how one kind of content is saved. Its functions are called one after the other, with
// ended if nothing changes any more.
type saver struct {
	// changes is the number of changes that are not saved.
	changes func() int64
	// moved reports whether a run could go on from another version than the saved one.
	moved func(ended bool) bool
	save  func(ctx context.Context, ended bool) error
}

// keepSaving saves what is worth it until ctx ends, at least at each interval and when something is
// due. A save that failed is tried again after growing pauses.
func (s *lockedStore) keepSaving(ctx context.Context, of saver) {
	tick := time.NewTicker(s.Interval)
	defer tick.Stop()
	waits := retries(s.Interval)
	for {
		ticked := false
		if s.failure == nil {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				ticked = true
			case <-s.pending.due:
			}
			if !s.worthwhile(of, ticked) {
				continue
			}
		}
		began := time.Now()
		err := of.save(ctx, false)
		pause := pausePerSave * time.Since(began)
		if err == nil {
			s.Report.Forget(s.failure)
			s.failure = nil
			waits = retries(s.Interval)
			// A save that has a version to go on from, where the last one has none, does not wait: a
			// process that goes on from the last one lists.
			err = s.pending.rest(ctx, pause, func() bool { return s.saved.resume == "" && of.moved(false) })
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

// worthwhile reports whether to save now.
func (s *lockedStore) worthwhile(of saver, ticked bool) bool {
	changes := of.changes()
	switch {
	case s.pending.listed.Swap(false):
		return changes > 0 || of.moved(false)
	case changes >= int64(s.Changes), ticked && changes > 0:
		return true
	default:
		return ticked && time.Since(s.saved.at) >= unmovedIntervals*s.Interval && of.moved(false)
	}
}

// write saves all of the content, and what that says.
func (s *lockedStore) write(ctx context.Context, content func(w io.Writer) (point, error)) error {
	revert, began := s.pending.take(), time.Now()
	var p point
	err := s.Store.Save(ctx, func(w io.Writer) (err error) {
		p, err = content(w)
		return err
	})
	if err != nil {
		revert()
		return failure.OfStore("CheckpointStore.Save", "", err)
	}
	s.noteSaved(p, began)
	return nil
}

func (s *lockedStore) noteSaved(p point, began time.Time) {
	s.saved = saved{point: p, at: time.Now()}
	s.Report.Checkpointed(s.saved.at, s.saved.at.Sub(began))
}

// saveLast saves at the end of a run, whose context has ended.
func (s *lockedStore) saveLast(ctx context.Context, of saver) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastSaveLimit)
	defer cancel()
	err := of.save(ctx, true)
	if err != nil {
		s.Report.Fail(s.unused(err))
	}
	return err
}

// retries are the pauses after saves that failed. They grow to an interval, because to write all
// of a large set in vain costs as much as to write it.
func retries(interval time.Duration) *wait.Backoff {
	return &wait.Backoff{Duration: min(time.Second, interval), Factor: 2, Steps: math.MaxInt, Cap: interval}
}
