package flow

import (
	"context"

	"k8s.io/client-go/tools/cache"

	"github.com/rvinformer/informer/internal/engine/deltaqueue"
	"github.com/rvinformer/informer/internal/engine/object"
)

// Consumer takes what waits in the queue: Keys or Batches.
type Consumer interface {
	// Max is how many keys it takes at a time.
	Max() int
	// deliver hands entries over, and then gives each back to the queue. It calls no code of the
	// user's after it has given the first one back. It sets to nil the entries that it gives back
	// also if the consumer ends the goroutine.
	deliver(ctx context.Context, f *Flow, queue *deltaqueue.Queue, entries []*deltaqueue.Entry)
}

// deliverAll delivers until ctx ends, or there is nothing for a while.
func (f *Flow) deliverAll(ctx context.Context, queue *deltaqueue.Queue) {
	entries := make([]*deltaqueue.Entry, 0, 1)
	for {
		var err error
		entries, err = queue.TakeBatch(ctx, entries[:0], f.Consumer.Max())
		if err != nil {
			return
		}
		f.deliver(ctx, queue, entries)
		clear(entries)
	}
}

// deliver gives the entries back also if the consumer ends the goroutine, as a failed assertion of a
// test does.
func (f *Flow) deliver(ctx context.Context, queue *deltaqueue.Queue, entries []*deltaqueue.Entry) {
	returned := false
	defer func() {
		if !returned {
			defer queue.Leave()
			f.end(ctx, queue, entries)
		}
	}()
	f.Consumer.deliver(ctx, f, queue, entries)
	returned = true
}

// skip reports that an entry, or the newest delta of it, cannot be read.
func (f *Flow) skip(e *deltaqueue.Entry, why error) {
	if e.IsRepeat() {
		f.Report.Handler(why)
	} else {
		f.Report.Skip(why)
	}
}

// leave gives back an entry whose newest delta cannot be read, for the reason why. An object that
// cannot be decoded is missed from then on: a list that began before takes it for delivered.
func (f *Flow) leave(queue *deltaqueue.Queue, e *deltaqueue.Entry, why error) {
	if e.IsRepeat() { // nothing is missed that was not delivered before
		queue.Skip(e, func() {})
		return
	}
	listed := e.Deltas[len(e.Deltas)-1].Type == cache.Replaced
	queue.Skip(e, f.Report.Gaps.Add)
	if !listed && object.IsUndecodable(why) {
		f.Report.Gaps.Miss()
	}
}
