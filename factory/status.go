package factory

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/client-go/tools/cache"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/internal/edge/report"
)

// Status is how one informer of a factory is.
type Status struct {
	Key Key
	// Phase is what the informer is doing. Of a cache.SharedIndexInformer only so much
	// is known: it lists until it has synced, then it watches, and either is
	// PhaseBackoff after a failure.
	Phase informer.Phase
	// Synced tells that it has synced. It stays true, also when the informer was stopped.
	Synced bool
	// Started is when it was started, zero before that. A resource-version informer
	// waits then until the one that had its key before has ended.
	Started time.Time
	// LastError is the newest failure, nil again after a success, and LastErrorTime
	// when it was. That of a cache.SharedIndexInformer counts until the resource
	// version has moved on, and is only known if newFunc sets no watch error handler,
	// or one that calls NoteWatchError; a watch that is refused a connection, or
	// throttled, client-go tries again without a word.
	LastError     error
	LastErrorTime time.Time
	// FailingSince is when the first of the failures was that have not ended: LastError is
	// the newest of them. Zero without a LastError.
	FailingSince time.Time
	// SkippedError and CheckpointError are those of a resource-version informer: conditions that
	// last, though lists and watches succeed. See informer.Status.
	SkippedError    error
	CheckpointError error
	// Condition is what holds the informer up, or that nothing does. Of a client-go informer it has
	// no more than LastError tells, and no Since if it is current.
	Condition informer.Condition
	// Leases counts those that are not released.
	Leases int
}

// ErrorClass is the class of LastError.
func (s Status) ErrorClass() ErrorClass { return ClassOf(s.LastError) }

// String is for people: what is to be known of an informer that has not synced.
func (s Status) String() string {
	text := fmt.Sprintf("%v: %v", s.Key, s.Phase)
	if !s.Started.IsZero() {
		text += fmt.Sprintf(", started %s", s.Started.Format(time.RFC3339))
	}
	if s.LastError != nil {
		text += fmt.Sprintf(", failing since %s, %s: %v", s.FailingSince.Format(time.RFC3339), s.ErrorClass(), s.LastError)
	}
	if s.SkippedError != nil {
		text += fmt.Sprintf(", skips items: %v", s.SkippedError)
	}
	if s.CheckpointError != nil {
		text += fmt.Sprintf(", %v", s.CheckpointError)
	}
	return text
}

// Status returns how the informer of a key is; false if there is none.
func (f *Factory) Status(key Key) (Status, bool) {
	f.mu.Lock()
	l := f.lives[key]
	exists := l != nil && l.stage != building
	f.mu.Unlock()
	if !exists {
		return Status{}, false
	}
	return f.statusOf(l), true
}

// Statuses returns how all informers are, in the order of their keys.
func (f *Factory) Statuses() []Status {
	return f.statusesOf(f.those(func(l *life) bool { return l.stage != building }))
}

// those returns the lives that the factory has not let go of.
func (f *Factory) those(which func(*life) bool) (lives []*life) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, l := range f.lives {
		if which(l) {
			lives = append(lives, l)
		}
	}
	return lives
}

func (f *Factory) statusesOf(lives []*life) []Status {
	statuses := make([]Status, 0, len(lives))
	for _, l := range lives {
		statuses = append(statuses, f.statusOf(l))
	}
	slices.SortFunc(statuses, func(a, b Status) int { return strings.Compare(a.Key.String(), b.Key.String()) })
	return statuses
}

func (f *Factory) statusOf(l *life) Status {
	f.mu.Lock()
	s := Status{Key: l.key, Started: l.started, Leases: l.users, Synced: isClosed(l.synced)}
	at, i, failed := l.stage, l.informer, l.failed
	f.mu.Unlock()
	switch i := i.(type) {
	case interface{ Status() informer.Status }:
		own := i.Status()
		failed, s.Phase, s.Condition = ownFailing(own), own.Phase, own.Condition
		s.SkippedError, s.CheckpointError = own.SkippedError, own.CheckpointError
	case cache.SharedIndexInformer:
		failed = l.trouble.at(i.LastSyncResourceVersion())
		s.Phase = phaseOf(at, s.Synced, failed)
		s.Condition = report.Worded(conditionOf(s, at, failed))
	default: // it has ended
		s.Phase = informer.PhaseStopped
		s.Condition = report.Worded(conditionOf(s, at, failed))
	}
	s.LastError, s.LastErrorTime, s.FailingSince = failed.err, failed.last, failed.since
	return s
}

// conditionOf is the condition of an informer that does not tell its own.
func conditionOf(s Status, at stage, failed failing) informer.Condition {
	switch {
	case at == ended:
		return informer.Condition{Reason: informer.ReasonStopped, Message: textOf(failed.err), Since: failed.ended}
	case at == queued:
		return informer.Condition{Reason: informer.ReasonNotStarted, Message: "it waits until the informer that had its key before has ended", Since: s.Started}
	case at != running:
		return informer.Condition{Reason: informer.ReasonNotStarted, Message: "it was not started"}
	case failed.err != nil && failed.reason != informer.ReasonExpiredLoop: // after that a list follows
		return informer.Condition{Reason: failed.reason, Message: textOf(failed.err), Since: failed.reasonSince}
	case s.Synced:
		return informer.Condition{Reason: informer.ReasonCurrent}
	}
	return informer.Condition{Reason: informer.ReasonListing, Message: "a client-go informer does not tell how far it is", Since: s.Started}
}

func textOf(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// phaseOf is the phase of a cache.SharedIndexInformer.
func phaseOf(at stage, synced bool, failed failing) informer.Phase {
	switch {
	case at != running:
		return informer.PhaseIdle
	case failed.err != nil:
		return informer.PhaseBackoff
	case synced:
		return informer.PhaseWatching
	}
	return informer.PhaseListing
}
