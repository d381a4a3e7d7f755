package flow

import (
	"context"

	"github.com/rvinformer/informer/api"
	"github.com/rvinformer/informer/internal/edge/report"
	"github.com/rvinformer/informer/internal/engine/deltaqueue"
	"github.com/rvinformer/informer/internal/leaf/backoff"
	"github.com/rvinformer/informer/internal/leaf/failure"
)

// Keys consumes key by key.
type Keys struct {
	// Process handles the deltas of one key, as the consumer is to see them. An error
	// means that they are not acknowledged.
	Process func(e *deltaqueue.Entry, deltas []deltaqueue.Delta) error
	// Failing says what becomes of deltas that Process failed for.
	Failing AfterFailure
}

// AfterFailure is what becomes of deltas that were not acknowledged.
type AfterFailure int

const (
	// PassOver drops them: the object comes again when it changes, or is listed again.
	PassOver AfterFailure = iota
	// Retry tries them again until they are acknowledged.
	Retry
	// Bury tries them again some times, and makes them a dead letter then.
	Bury
)

// Max is 1.
func (Keys) Max() int { return 1 }

func (k Keys) deliver(ctx context.Context, f *Flow, queue *deltaqueue.Queue, entries []*deltaqueue.Entry) {
	e := entries[0]
	deltas, unreadable := f.Intake.Refined(e)
	if unreadable != nil {
		f.skip(e, unreadable)
	}
	fail := func(err error) { f.Report.FailHandling(&api.ProcessError{Key: e.Key, Err: err}) }
	var call report.Call
	if len(deltas) > 0 {
		if !f.announce(ctx, queue, entries) {
			queue.Postpone(entries, 0, false)
			return
		}
		call = f.Report.BeginCall()
	}
	err := failure.Guard(ctx, fail, func() error { return k.Process(e, deltas) })
	call.End()
	if err != nil {
		k.failed(ctx, f, queue, entries, err, fail)
		return
	}
	taken := e.Deltas
	if len(deltas) < len(taken) {
		f.leave(queue, e, unreadable)
		f.Intake.TakeBack(taken)
		return
	}
	f.Report.Handled()
	queue.Done(e)
	f.Report.GivenBack()
	f.Intake.TakeBack(taken)
	deltaqueue.Recycle(e)
}

// failed reports what Process failed with, and gives the entry back.
func (k Keys) failed(ctx context.Context, f *Flow, queue *deltaqueue.Queue, entries []*deltaqueue.Entry, err error, fail func(error)) {
	e := entries[0]
	if k.Failing == Bury {
		note(e, textOf(err))
		e.Failure.Alone++
		change, resourceVersion := f.newestChange(e)
		if letter := f.letterOf(e, change, resourceVersion); f.isDead(e, true) && f.mayBury(&letter) {
			entries[0] = nil
			defer f.bury(ctx, queue, e, letter) // as for a batch: after the report
			fail(passedOver(err))
			return
		}
	}
	fail(err)
	switch taken := e.Deltas; k.Failing {
	case PassOver:
		queue.Drop(e)
		f.Intake.TakeBack(taken)
	case Bury:
		queue.Postpone(entries, backoff.RetryDelay(e.Attempts), true)
	default:
		queue.Retry(e, backoff.RetryDelay(e.Attempts))
	}
}
