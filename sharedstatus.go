package informer

import (
	"slices"

	"github.com/rvinformer/informer/internal/rv"
)

// Status is a snapshot of all handlers together: the Phase of the one that is least far, the
// oldest ResourceVersion, and CheckpointTime of those that have one, the most Objects, the
// newest LastContact and LastError, and the sums of all counts. Checkpoint is that of the
// first handler with a CheckpointError, or else of the first with a Checkpoint; SkippedError,
// ResumedFrom and ResumedTime are those of the first that has them. Without handlers, it is that
// of an informer that does not run.
func (s *SharedResourceVersionInformer) Status() (all Status) {
	for i, h := range s.Handlers() {
		if i == 0 {
			all = h.Status()
		} else {
			all = together(all, h.Status())
		}
	}
	all.Synced = s.HasSynced()
	return all
}

// together is the status of two handlers.
func together(a, b Status) Status {
	if far(b.Phase) < far(a.Phase) {
		a.Phase = b.Phase
	}
	if a.Fallback == nil && b.Fallback != nil {
		a.ListMode, a.Fallback = b.ListMode, b.Fallback
	}
	a.ResourceVersion = reachedByBoth(a.ResourceVersion, b.ResourceVersion)
	a.Objects = max(a.Objects, b.Objects)
	a.Queued += b.Queued
	a.QueuedBytes += b.QueuedBytes
	a.Skipped += b.Skipped
	a.Stale += b.Stale
	if b.LastContact.After(a.LastContact) {
		a.LastContact = b.LastContact
	}
	if b.LastErrorTime.After(a.LastErrorTime) {
		a.LastError, a.LastErrorTime, a.FailingSince = b.LastError, b.LastErrorTime, b.FailingSince
	}
	if a.CheckpointTime.IsZero() || !b.CheckpointTime.IsZero() && b.CheckpointTime.Before(a.CheckpointTime) {
		a.CheckpointTime = b.CheckpointTime
	}
	if a.SkippedError == nil {
		a.SkippedError = b.SkippedError
	}
	if a.CheckpointError == nil && (b.CheckpointError != nil || a.Checkpoint == "") {
		a.Checkpoint, a.CheckpointError = b.Checkpoint, b.CheckpointError
	}
	if a.ResumedTime.IsZero() {
		a.ResumedFrom, a.ResumedTime = b.ResumedFrom, b.ResumedTime
	}
	return a
}

// far is how far an informer is that is in a phase.
func far(p Phase) int {
	return slices.Index([]Phase{PhaseStopped, PhaseIdle, PhaseBackoff, PhaseListing, PhaseWatching}, p)
}

// reachedByBoth returns the older one of the resource versions that two handlers have reached. It is
// empty if they differ and have no order.
func reachedByBoth(a, b string) string {
	switch rv.Compare(a, b) {
	case rv.Older, rv.Same:
		return a
	case rv.Newer:
		return b
	}
	if a == b {
		return a
	}
	return ""
}
