package keeper

import (
	"context"
	"sync/atomic"
	"time"
)

// pending is what is to be saved.
type pending struct {
	// changes counts the informer's changes of the content since the last save.
	changes atomic.Int64
	// listed tells that a list has begun, or was acknowledged, since the last save.
	listed atomic.Bool
	// due wakes Run.
	due chan struct{}
}

func newPending() pending { return pending{due: make(chan struct{}, 1)} }

// noteList wakes Run, which saves what a list has changed.
func (p *pending) noteList() {
	p.listed.Store(true)
	p.wake()
}

func (p *pending) wake() {
	select {
	case p.due <- struct{}{}:
	default:
	}
}

// rest waits for the pause after a save. It returns earlier if a save becomes due and urgent
// reports true. A save that became due during the pause is still due afterwards. The error is that
// of ctx.
func (p *pending) rest(ctx context.Context, pause time.Duration, urgent func() bool) error {
	over := time.After(pause)
	due := false
	defer func() {
		if due {
			p.wake()
		}
	}()
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-over:
			return nil
		case <-p.due:
			due = true
			if urgent() {
				return nil
			}
		}
	}
}

// take takes what a save is about to have, and returns what gives the changes back. A save that failed
// is tried again whether there was a list or not.
func (p *pending) take() (revert func()) {
	p.listed.Store(false)
	changes := p.changes.Swap(0)
	return func() { p.changes.Add(changes) }
}

// Changed notes a change of the content.
func (s *lockedStore) Changed() {
	if s.pending.changes.Add(1) == int64(s.Changes) {
		s.pending.wake()
	}
}

// journalFailed reports why the journal cannot be used, and has everything saved soon.
func (k *Keeper) journalFailed(err error) {
	k.Report.Fail(err)
	k.SaveSoon()
}
