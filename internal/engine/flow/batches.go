package flow

import (
	"context"

	"github.com/rvinformer/informer/internal/engine/deltaqueue"
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
	why  error
	fate fate
	// lone tells that a call with this event alone has failed in this trial.
	lone bool
}

// Max is the limit.
func (b Batches) Max() int { return b.Limit }

func (b Batches) deliver(ctx context.Context, f *Flow, queue *deltaqueue.Queue, entries []*deltaqueue.Entry) {
	sent, silent := b.batchOf(f, entries)
	mayCall := len(sent) > 0 && f.announce(ctx, queue, entries)
	clear(entries)
	defer func() {
		for _, s := range silent {
			f.acknowledge(queue, s)
		}
	}()
	if len(sent) > 0 {
		t := trial{flow: f, queue: queue, handle: b.Handle, batch: sent}
		defer t.giveBack(ctx)
		if mayCall {
			t.run(ctx)
		}
	}
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
			f.skip(e, err)
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
