package flow

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/rvinformer/informer/api"
	"github.com/rvinformer/informer/internal/engine/deltaqueue"
	"github.com/rvinformer/informer/internal/leaf/backoff"
	"github.com/rvinformer/informer/internal/leaf/redact"
)

// mostPanics is how often a handler may panic for an event, if MaxAttempts does not say more.
const mostPanics = 6

// longestText is how many bytes a dead letter has of an error.
const longestText = 512

// errEnded is the failure of a handler that has ended its goroutine, as a failed assertion of a test
// does.
var errEnded = errors.New("the handler has ended its goroutine")

// note notes a failure for the deltas of an entry.
func note(e *deltaqueue.Entry, text string) {
	if e.Failure == nil {
		e.Failure = &deltaqueue.Failure{First: text, Since: time.Now()}
	}
	e.Failure.Last = text
}

// textOf is the text of an error in a dead letter.
func textOf(err error) string {
	return redact.Short(redact.Error(err).Error(), longestText)
}

// isDead reports whether an entry that has just failed by itself is not to be tried again. That
// failure is counted in Failure.Alone, and not yet in Panics.
func (f *Flow) isDead(e *deltaqueue.Entry, panicked bool) bool {
	if f.MaxAttempts > 0 {
		return e.Failure.Alone >= int(f.MaxAttempts)
	}
	return panicked && e.Panics+1 >= mostPanics
}

// mayBury makes a dead letter known, which goes on with the one that its key has. It reports false if
// there are too many. A flow without dead letters keeps none.
func (f *Flow) mayBury(letter *api.DeadLetter) (ok bool) {
	if f.MaxDeadLetters == 0 {
		return true
	}
	*letter, ok = f.Versions.Bury(*letter, int(f.MaxDeadLetters))
	return ok
}

// bury writes down the dead letter of an entry, for which there is room, and gives the entry back,
// also if the store of the checkpoint ends the goroutine.
func (f *Flow) bury(ctx context.Context, queue *deltaqueue.Queue, e *deltaqueue.Entry, letter api.DeadLetter) {
	defer func() {
		taken := e.Deltas
		queue.Drop(e)
		f.Intake.TakeBack(taken)
	}()
	if f.MaxDeadLetters > 0 && f.Keeper != nil {
		f.Keeper.Bury(ctx, letter)
	}
}

// letterOf is the dead letter of an entry, whose change to a version has failed once more.
func (f *Flow) letterOf(e *deltaqueue.Entry, change api.EventType, resourceVersion string) api.DeadLetter {
	uid := e.Version.UID
	if known, exists := f.Versions.Get(e.Key); exists && change == api.Deleted { // another one may have come in its place
		uid = known.UID
	}
	return api.DeadLetter{
		Key: e.Key, UID: uid, ResourceVersion: resourceVersion, Newest: e.Version.ResourceVersion, Type: change,
		FirstError: e.Failure.First, LastError: e.Failure.Last, Attempts: e.Attempts + 1, Since: e.Failure.Since,
	}
}

// end gives back entries whose consumer has ended its goroutine. Where one cannot be a dead letter,
// it is tried again. The store of the checkpoint may end the goroutine too.
func (f *Flow) end(ctx context.Context, queue *deltaqueue.Queue, entries []*deltaqueue.Entry) {
	if len(entries) == 0 {
		return
	}
	defer f.end(ctx, queue, entries[1:])
	e := entries[0]
	if e == nil {
		return
	}
	note(e, errEnded.Error())
	change, resourceVersion := f.newestChange(e)
	if letter := f.letterOf(e, change, resourceVersion); f.mayBury(&letter) {
		f.bury(ctx, queue, e, letter)
		return
	}
	queue.Postpone(entries[:1], backoff.RetryDelay(e.Attempts), true)
}

// newestChange is what the deltas of an entry come to, and the version of that.
func (f *Flow) newestChange(e *deltaqueue.Entry) (change api.EventType, resourceVersion string) {
	known, exists := f.Versions.Get(e.Key)
	switch {
	case e.Deltas[len(e.Deltas)-1].FinalStateUnknown():
		return api.Deleted, known.ResourceVersion
	case e.Deleted():
		return api.Deleted, e.Version.ResourceVersion
	case exists && known.SameObject(e.Version):
		return api.Updated, e.Version.ResourceVersion
	default:
		return api.Added, e.Version.ResourceVersion
	}
}

// passedOver is the last failure of deltas that are not tried again.
func passedOver(err error) error { return fmt.Errorf("%w; %w", err, api.ErrPassedOver) }
