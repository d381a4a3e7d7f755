package flow

import (
	"context"
	"errors"

	"github.com/rvinformer/informer/api"
	"github.com/rvinformer/informer/internal/backoff"
	"github.com/rvinformer/informer/internal/deltaqueue"
	"github.com/rvinformer/informer/internal/report"
)

// Batches consumes notices of many keys at a time, one of each.
type Batches struct {
	// Limit is how many keys a batch has at most.
	Limit int
	// Handle takes a batch in. An error means that it is not acknowledged.
	Handle func(ctx context.Context, batch []Sent) error
}

// Sent is a notice of a batch, and the entry that it is of.
type Sent struct {
	Notice
	Entry *deltaqueue.Entry
	means meaning
	// why is set if it is unreadable.
	why error
}

// Max is the limit.
func (b Batches) Max() int { return b.Limit }

func (b Batches) deliver(ctx context.Context, f *Flow, queue *deltaqueue.Queue, entries []*deltaqueue.Entry) {
	sent, silent := b.batchOf(f, entries)
	if len(sent) > 0 {
		f.announce(ctx, queue, entries)
		if err := b.hand(ctx, f, sent); err != nil {
			b.failed(ctx, f, queue, sent, err)
		} else {
			f.Report.Handled()
			for _, s := range sent {
				f.acknowledge(queue, s)
			}
			f.Report.GivenBack()
		}
	}
	for _, s := range silent {
		f.acknowledge(queue, s)
	}
}

// hand hands a batch over.
func (b Batches) hand(ctx context.Context, f *Flow, sent []Sent) error {
	taken := false
	defer func() { // also if the handler ends the goroutine
		for _, s := range sent {
			f.Versions.Settle(s.Entry.Key, taken || s.Change == Synced)
		}
	}()
	fail := func(err error) { f.reportBatch(sent, err) }
	call := f.Report.BeginCall()
	f.Report.CountBatch(len(sent))
	err := report.Guard(ctx, fail, func() error { return b.Handle(ctx, sent) })
	call.End()
	taken = err == nil
	return err
}

// meaning is what the acknowledgement of a notice means for its entry.
type meaning int

const (
	// allTaken: that is all of the entry.
	allTaken meaning = iota
	// lastSkipped: all but its newest delta, whose object cannot be read.
	lastSkipped
	// firstEnded: the object that the handler knew is gone, and the next one of its name comes in
	// another batch.
	firstEnded
)

// batchOf returns the first notice of each of entries, and the entries that have none.
func (b Batches) batchOf(f *Flow, entries []*deltaqueue.Entry) (sent, silent []Sent) {
	sent = make([]Sent, 0, len(entries))
	for _, e := range entries {
		s := Sent{Entry: e}
		deltas, err := f.Intake.Refined(e)
		if err != nil {
			f.Report.Skip(err)
			s.means, s.why = lastSkipped, err
		}
		var room [MaxNotices]Notice
		notices := f.Notices(room[:0], e, deltas)
		if len(notices) > 1 {
			s.means = firstEnded
		}
		if len(notices) == 0 {
			silent = append(silent, s)
			continue
		}
		s.Notice = notices[0]
		sent = append(sent, s)
	}
	return sent, silent
}

// acknowledge gives back an entry whose notice was taken in, or that has none.
func (f *Flow) acknowledge(queue *deltaqueue.Queue, s Sent) {
	taken := s.Entry.Deltas
	switch s.means {
	case allTaken:
		queue.Done(s.Entry)
		f.Intake.TakeBack(taken)
		deltaqueue.Recycle(s.Entry)
		return
	case lastSkipped:
		f.leave(queue, s.Entry, s.why)
	case firstEnded:
		taken = queue.Advance(s.Entry)
	}
	f.Intake.TakeBack(taken)
}

// failed has a batch tried again, or passes over its only event if that has
// panicked too often.
func (b Batches) failed(ctx context.Context, f *Flow, queue *deltaqueue.Queue, sent []Sent, err error) {
	entries := make([]*deltaqueue.Entry, len(sent))
	for i, s := range sent {
		entries[i] = s.Entry
	}
	attempts := entries[0].Attempts // all have failed together
	panicked := report.IsPanic(err)
	last := panicked && len(entries) == 1 && entries[0].Panics >= maxRetries
	if last {
		err = passedOver(err)
	}
	if ctx.Err() == nil || !errors.Is(err, ctx.Err()) { // the end of ctx is no failure of the handler
		f.reportBatch(sent, err)
	}
	if !last {
		queue.Postpone(entries, backoff.RetryDelay(attempts), panicked)
		return
	}
	taken := entries[0].Deltas
	queue.Drop(entries[0])
	f.Intake.TakeBack(taken)
}

// reportBatch reports a failure of the handler.
func (f *Flow) reportBatch(sent []Sent, err error) {
	failed := &api.BatchError{Err: err, Attempts: sent[0].Entry.Attempts + 1}
	for _, s := range sent {
		failed.Keys = append(failed.Keys, s.Entry.Key)
	}
	f.Report.FailHandling(failed)
}
