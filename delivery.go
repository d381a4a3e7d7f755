package informer

import (
	"context"
	"fmt"

	"k8s.io/client-go/tools/cache"

	"github.com/rvinformer/informer/internal/backoff"
	"github.com/rvinformer/informer/internal/deltaqueue"
	"github.com/rvinformer/informer/internal/object"
	"github.com/rvinformer/informer/internal/report"
)

// delivery hands what waits in a queue to a consumer.
type delivery interface {
	// most is how many keys it takes at a time.
	most() int
	// deliver hands entries over, and then gives each back to the queue. It calls
	// nobody else's code after it has given the first one back.
	deliver(ctx context.Context, queue *deltaqueue.Queue, entries []*deltaqueue.Entry)
}

// deliverAll delivers until ctx ends, or there is nothing for a while.
func deliverAll(ctx context.Context, queue *deltaqueue.Queue, d delivery) {
	entries := make([]*deltaqueue.Entry, 0, 1)
	for {
		var err error
		entries, err = queue.TakeBatch(ctx, entries[:0], d.most())
		if err != nil {
			return
		}
		deliver(ctx, queue, d, entries)
		clear(entries)
	}
}

// deliver drops the entries if the consumer ends the goroutine, as a failed assertion
// of a test does.
func deliver(ctx context.Context, queue *deltaqueue.Queue, d delivery, entries []*deltaqueue.Entry) {
	returned := false
	defer func() {
		if !returned {
			for _, e := range entries {
				queue.Drop(e)
			}
			queue.Leave()
		}
	}()
	d.deliver(ctx, queue, entries)
	returned = true
}

// keyDelivery delivers key by key.
type keyDelivery struct {
	*flow
	// process handles the deltas of one key, as the consumer is to see them. An error
	// means that they are not acknowledged.
	process func(e *deltaqueue.Entry, deltas []deltaqueue.Delta) error
	// failing says what becomes of deltas that process failed for.
	failing afterFailure
}

// afterFailure is what becomes of deltas that were not acknowledged.
type afterFailure int

const (
	// passOver leaves them until the object changes or is listed again.
	passOver afterFailure = iota
	// retry tries them again until they are acknowledged.
	retry
	// retryFew tries them again a few times.
	retryFew
)

// mostRetries is how often a consumer that panics is called again.
const mostRetries = 5

func (d keyDelivery) most() int { return 1 }

func (d keyDelivery) deliver(ctx context.Context, queue *deltaqueue.Queue, entries []*deltaqueue.Entry) {
	e := entries[0]
	deltas, unreadable := d.intake.Refined(e)
	if unreadable != nil {
		d.reflector.report.Skip(unreadable)
	}
	fail := func(err error) { d.reflector.report.FailHandling(&report.ProcessError{Key: e.Key, Err: err}) }
	if len(deltas) > 0 {
		d.announce(ctx, queue, entries)
	}
	err := report.Guard(ctx, fail, func() error { return d.process(e, deltas) })
	if err != nil {
		d.failed(queue, e, err, fail)
		return
	}
	taken := e.Deltas
	if len(deltas) < len(taken) {
		d.leave(queue, e, unreadable)
	} else {
		d.reflector.report.Handled()
		queue.Done(e)
	}
	d.intake.TakeBack(taken)
}

// failed reports what process failed with, and gives the entry back.
func (d keyDelivery) failed(queue *deltaqueue.Queue, e *deltaqueue.Entry, err error, fail func(error)) {
	again := d.failing == retry || d.failing == retryFew && e.Panics < mostRetries
	if !again && d.failing == retryFew {
		err = passedOver(err)
	}
	fail(err)
	switch taken := e.Deltas; {
	case !again:
		queue.Drop(e)
		d.intake.TakeBack(taken)
	case d.failing == retryFew:
		queue.Postpone([]*deltaqueue.Entry{e}, backoff.RetryDelay(e.Attempts), true)
	default:
		queue.Retry(e, backoff.RetryDelay(e.Attempts))
	}
}

// passedOver is the last failure of what is not tried again.
func passedOver(err error) error { return fmt.Errorf("%w; %w", err, report.ErrPassedOver) }

// leave gives back an entry whose newest delta cannot be read, for the reason why. An object that
// cannot be decoded is missed from then on: a list that began before takes it for delivered.
func (f *flow) leave(queue *deltaqueue.Queue, e *deltaqueue.Entry, why error) {
	listed := e.Deltas[len(e.Deltas)-1].Type == cache.Replaced
	queue.Skip(e, f.reflector.report.Gaps.Add)
	if !listed && object.IsUndecodable(why) {
		f.reflector.missed.Store(true)
	}
}
