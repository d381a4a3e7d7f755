package flow

import (
	"context"
	"errors"
	"time"

	"github.com/rvinformer/informer/api"
	"github.com/rvinformer/informer/internal/engine/blame"
	"github.com/rvinformer/informer/internal/engine/deltaqueue"
	"github.com/rvinformer/informer/internal/leaf/backoff"
	"github.com/rvinformer/informer/internal/leaf/failure"
)

// trial is one attempt to have a batch taken in: one call of the handler, or several with parts of
// the batch. What is taken in is given back to the queue at once, and the rest by giveBack.
type trial struct {
	flow   *Flow
	queue  *deltaqueue.Queue
	handle func(ctx context.Context, batch []Sent) error
	// batch is what is tried. Its parts share its memory.
	batch []Sent
	// calling is the part that the handler is called with, nil between calls.
	calling []Sent
	// taken tells that some of the batch was taken in.
	taken bool
	// named are the events that FailedEvents have named, those of each call together.
	named [][]Sent
	// later are the events that FailedEvents have named as not being at fault.
	later []delayed
	// succeeded is when a part of the batch was last taken in, or the first one is tried.
	succeeded time.Time
}

// fate is what becomes of an event of a trial.
type fate int

const (
	// open: it is tried again, together with all others that are open.
	open fate = iota
	// settled: it was given back, or is in trial.named or trial.later.
	settled
	// alone: it has failed by itself. It is tried again by itself, if there are not many of these.
	alone
	// panicked: the handler has panicked for it, or for another event of the same call. It is tried
	// again by itself.
	panicked
)

// run has the handler take the batch in.
func (t *trial) run(ctx context.Context) {
	if t.call(ctx, t.batch) != blame.Unknown || !mayBisect(t.batch) {
		return
	}
	t.bisect(ctx)
	t.gather()
	for i := range t.batch {
		if ctx.Err() != nil { // another run tries the rest
			return
		}
		if s := &t.batch[i]; s.fate == alone && s.lone && t.flow.blames(s.Entry) && t.count(s, blame.Unknown) {
			t.bury(ctx, s, errors.New(s.Entry.Failure.Last))
		}
	}
}

// call hands a part of the batch over, and returns who is to blame for what was not taken in. It
// calls no code of the user's but the handler before each event has its fate.
func (t *trial) call(ctx context.Context, part []Sent) blame.Blame {
	number := t.flow.beginCall()
	t.calling = part
	whom, failed, err := blame.Of(t.hand(ctx, part), len(part))
	t.calling = nil
	if whom == blame.Nobody || whom == blame.Named {
		t.taken = true
		t.flow.Report.Handled()
	}
	if whom == blame.Unknown && ctx.Err() == nil {
		t.flow.noteRefused(part)
	}
	var refused, named []Sent
	var dying []*Sent
	for i := range part {
		s, event := &part[i], api.FailedEvent{Err: err}
		if failed != nil {
			event = failed[i]
		}
		switch {
		case event.Err == nil:
			if s.Type != api.Synced { // for which the handler may have nothing to write
				t.flow.noteTaken(number)
			}
			t.take(s)
			continue
		case event.Later:
			t.delay(s, event.After)
		case t.refuse(ctx, s, whom, len(part), event.Err):
			dying = append(dying, s)
			continue
		case whom == blame.Named:
			named = append(named, *s)
		}
		refused = append(refused, *s)
	}
	t.named = append(t.named, named)
	if len(refused) > 0 && (ctx.Err() == nil || !errors.Is(err, ctx.Err())) { // the end of ctx is no failure of the handler
		t.report(refused, err)
	}
	for _, s := range dying {
		cause := err
		if whom == blame.Named {
			cause = errors.New(s.Entry.Failure.Last)
		}
		t.bury(ctx, s, cause)
	}
	return whom
}

// refuse notes that the handler has not taken in an event, of so many in the call, and reports
// whether it is to be a dead letter.
func (t *trial) refuse(ctx context.Context, s *Sent, whom blame.Blame, events int, err error) (dies bool) {
	t.flow.Versions.Settle(s.Entry.Key, s.Type == api.Synced)
	byItself := events == 1
	s.lone = s.lone || byItself
	switch {
	case whom == blame.Named:
		s.fate, byItself = settled, true
	case whom == blame.Panicked:
		s.fate = panicked
	case byItself:
		s.fate = alone
		byItself = len(t.batch) == 1 // what has failed in a part is counted at the end
	}
	if ctx.Err() != nil { // another run tries it
		return false
	}
	note(s.Entry, textOf(err))
	if !byItself || whom == blame.Unknown && !t.flow.blames(s.Entry) || !t.count(s, whom) {
		return false
	}
	s.fate = alone // until it is buried
	return true
}

// count counts a failure of an event by itself, and reports whether there were too many.
func (t *trial) count(s *Sent, whom blame.Blame) (dies bool) {
	s.Entry.Failure.Alone++
	return t.flow.isDead(s.Entry, whom == blame.Panicked)
}

// bury makes an event a dead letter, if there may be another one, and reports what it has failed
// with.
func (t *trial) bury(ctx context.Context, s *Sent, err error) {
	failure := t.failure([]Sent{*s}, passedOver(err))
	entry := s.Entry
	letter := t.flow.letterOf(entry, s.Type, s.Version)
	if !t.flow.mayBury(&letter) {
		t.report([]Sent{*s}, err)
		return
	}
	s.Entry, s.fate = nil, settled
	// Once it is given back, another worker may deliver what is newer of the key, which is to be told
	// after the report. The report may end the goroutine.
	defer t.flow.bury(ctx, t.queue, entry, letter)
	t.flow.Report.FailHandling(failure)
}

// hand calls the handler.
func (t *trial) hand(ctx context.Context, part []Sent) error {
	returned := false
	defer func() {
		if returned {
			return
		}
		for _, s := range part { // the handler has ended the goroutine
			t.flow.Versions.Settle(s.Entry.Key, s.Type == api.Synced)
		}
	}()
	call := t.flow.Report.BeginCall()
	t.flow.Report.CountBatch(len(part))
	err := failure.Guard(ctx, func(err error) { t.report(part, err) }, func() error { return t.handle(ctx, part) })
	call.End()
	returned = true
	return err
}

// take acknowledges an event.
func (t *trial) take(s *Sent) {
	if s.means == firstEnded {
		t.flow.Versions.SettleEnd(s.Entry.Key)
	} else {
		t.flow.Versions.Settle(s.Entry.Key, true)
	}
	t.flow.acknowledge(t.queue, *s)
	s.Entry, s.fate = nil, settled
}

// report reports a failure of the handler.
func (t *trial) report(sent []Sent, err error) { t.flow.Report.FailHandling(t.failure(sent, err)) }

func (t *trial) failure(sent []Sent, err error) *api.BatchError {
	failed := &api.BatchError{Err: err, Attempts: sent[0].Entry.Attempts + 1}
	for _, s := range sent {
		failed.Keys = append(failed.Keys, s.Entry.Key)
	}
	return failed
}

// giveBack gives the queue back what was not taken in. If the handler has ended the goroutine, what
// it was called with last becomes dead letters.
func (t *trial) giveBack(ctx context.Context) {
	var ended []*deltaqueue.Entry
	for i := range t.calling {
		if s := &t.calling[i]; s.fate != settled {
			ended = append(ended, s.Entry)
			s.fate = settled
		}
	}
	for _, sent := range t.named {
		t.postpone(sent, false)
	}
	t.postponeDelayed()
	t.gather()
	var rest []Sent
	for _, s := range t.batch {
		switch s.fate {
		case open:
			rest = append(rest, s)
		case alone:
			t.postpone([]Sent{s}, false)
		case panicked:
			t.postpone([]Sent{s}, true)
		}
	}
	t.postpone(rest, false)
	if t.taken {
		t.flow.Report.GivenBack()
	}
	t.flow.end(ctx, t.queue, ended) // last: the store of the checkpoint may end the goroutine as well
}

// postpone has events tried again together.
func (t *trial) postpone(sent []Sent, panicked bool) {
	if len(sent) == 0 {
		return
	}
	entries := make([]*deltaqueue.Entry, len(sent))
	for i, s := range sent {
		entries[i] = s.Entry
		if s.fate == open || s.fate == alone {
			s.Entry.Ambiguous++
		}
	}
	// All have failed equally often.
	t.queue.Postpone(entries, backoff.RetryDelay(entries[0].Attempts), panicked)
}
