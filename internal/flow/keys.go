package flow

import (
	"context"

	"github.com/rvinformer/informer/api"
	"github.com/rvinformer/informer/internal/backoff"
	"github.com/rvinformer/informer/internal/deltaqueue"
	"github.com/rvinformer/informer/internal/report"
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
	// PassOver leaves them until the object changes or is listed again.
	PassOver AfterFailure = iota
	// Retry tries them again until they are acknowledged.
	Retry
	// RetryFew tries them again a few times.
	RetryFew
)

// Max is 1.
func (Keys) Max() int { return 1 }

func (k Keys) deliver(ctx context.Context, f *Flow, queue *deltaqueue.Queue, entries []*deltaqueue.Entry) {
	e := entries[0]
	deltas, unreadable := f.Intake.Refined(e)
	if unreadable != nil {
		f.Report.Skip(unreadable)
	}
	fail := func(err error) { f.Report.FailHandling(&api.ProcessError{Key: e.Key, Err: err}) }
	var call report.Call
	if len(deltas) > 0 {
		f.announce(ctx, queue, entries)
		call = f.Report.BeginCall()
	}
	err := report.Guard(ctx, fail, func() error { return k.Process(e, deltas) })
	call.End()
	if err != nil {
		k.failed(f, queue, e, err, fail)
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
func (k Keys) failed(f *Flow, queue *deltaqueue.Queue, e *deltaqueue.Entry, err error, fail func(error)) {
	again := k.Failing == Retry || k.Failing == RetryFew && e.Panics < maxRetries
	if !again && k.Failing == RetryFew {
		err = passedOver(err)
	}
	fail(err)
	switch taken := e.Deltas; {
	case !again:
		queue.Drop(e)
		f.Intake.TakeBack(taken)
	case k.Failing == RetryFew:
		queue.Postpone([]*deltaqueue.Entry{e}, backoff.RetryDelay(e.Attempts), true)
	default:
		queue.Retry(e, backoff.RetryDelay(e.Attempts))
	}
}
