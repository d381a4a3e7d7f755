package informer

import (
	"slices"
	"time"

	"github.com/rvinformer/informer/api"
	"github.com/rvinformer/informer/internal/edge/report"
	"github.com/rvinformer/informer/internal/leaf/rv"
)

// Phase is what an informer is doing. Its String is "idle", "listing" and so on.
type Phase = api.Phase

// The phases. Package api says what each means.
const (
	PhaseIdle     = api.PhaseIdle
	PhaseListing  = api.PhaseListing
	PhaseWatching = api.PhaseWatching
	PhaseBackoff  = api.PhaseBackoff
	PhaseStopped  = api.PhaseStopped
)

// ListMode is how an informer reads a complete set. Its String is "auto", "paged", "full" or
// "watch-list".
type ListMode = api.ListMode

// The list modes. Package api says more of each.
const (
	// ListModeAuto is ListModeWatchList, and ListModePaged where a watch-list does not work.
	ListModeAuto = api.ListModeAuto
	// ListModePaged lists the newest state in consistent pages.
	ListModePaged = api.ListModePaged
	// ListModeFull lists in one response, which the server may serve from its cache.
	ListModeFull = api.ListModeFull
	// ListModeWatchList opens a watch that begins with the set and goes on with it.
	ListModeWatchList = api.ListModeWatchList
)

// fieldsDecide is the mode of a Reflector whose fields say how it lists.
const fieldsDecide ListMode = -1

// Status is a snapshot of an informer.
type Status struct {
	Phase Phase
	// ListMode is the mode in use. It is the configured one until Run has decided.
	ListMode ListMode
	// Fallback is why ListMode is ListModePaged although a watch-list was to be tried, or why a list
	// follows each watch, because the server does not go on from a resource version; nil if neither.
	Fallback error
	// Listed tells that a complete list was read, whether or not its handler has returned,
	// or that Run has resumed without one. It stays true.
	Listed bool
	// Synced tells that the first complete list was delivered to the handler,
	// every call returned, deletions included. It stays true.
	Synced bool
	// ResourceVersion is the one up to which everything is acknowledged that could be
	// read, and is no dead letter; empty until that is true of the first list.
	ResourceVersion string
	// CurrentAsOf is the newest moment for which everything that could be read of what the server
	// had then is known to be acknowledged, or a dead letter.
	// How old the handler's view can be is time.Since(CurrentAsOf). It is zero until something
	// proves a moment, and does not go back.
	//
	// A bookmark or an event of a watch proves the moment at which it arrived, if the watch had
	// caught up. A list of the newest state proves the moment at which it was asked for; one that
	// the server may have read from its cache proves none. So CurrentAsOf of a quiet informer is
	// about a minute old before the next bookmark comes. It stands still while a handler fails,
	// while the server is silent, and while a watch has more to tell than is read at once.
	//
	// It cannot show what is still under way from the server, or that the server's watch cache lags
	// behind its storage.
	CurrentAsOf time.Time
	// Objects is the number of objects acknowledged and not deleted.
	Objects int
	// Queued is the number of keys with deltas that are not acknowledged, and
	// QueuedBytes the size of the objects in them: about that of their encoding.
	Queued      int
	QueuedBytes int64
	// OldestQueued is when the oldest change arrived that is not acknowledged; zero if there is
	// none. It counts from when it was read off its connection.
	OldestQueued time.Time
	// Skipped counts the items that could not be read.
	Skipped int64
	// Stale counts the watch events that were not newer than what was known of
	// their object, and were dropped.
	Stale int64
	// DeadLetters is the number of changes that the handler has refused too often: see the method of
	// that name. It becomes less when the handler takes in a newer state.
	DeadLetters int
	// LastContact is when the server last answered, bookmarks included.
	LastContact time.Time
	// LastError is the newest failure, and LastErrorTime when it was. One of the
	// reading is forgotten at the next watch that is opened or list that comes, one of the handler
	// at the next call that does, and one of saving a checkpoint at the next save, or list
	// or watch, that does.
	LastError     error
	LastErrorTime time.Time
	// FailingSince is when the first of the failures was that have not ended: LastError is
	// the newest of them. Zero without a LastError.
	FailingSince time.Time
	// SkippedError is what was wrong with the newest item that was skipped. It stays until a
	// complete list had no such item: an ExampleObject of another type than the resource has, for
	// instance, is an error in each.
	SkippedError error
	// Checkpoint names the Checkpoint: by its method String, as for the path of a FileCheckpoint,
	// or else by its type. It is empty without one.
	Checkpoint string
	// CheckpointTime is when the Checkpoint was saved, zero before that.
	CheckpointTime time.Time
	// CheckpointError is why the Checkpoint is not in use, for as long as that is so: an
	// *UnusedCheckpointError, which tells whether anything will be saved.
	CheckpointError error
	// ResumedFrom is the resource version from which the newest Run went on without a list, and
	// ResumedTime when the server had accepted it. They are empty if Run has begun with a list, or
	// did not get so far.
	ResumedFrom string
	ResumedTime time.Time
	// Shard is the part of the set that is followed.
	Shard Shard
	// Counts is what the informer has done since it was made. Package metrics shows it to
	// Prometheus.
	Counts Counts
	// Condition is what holds the informer up, or that nothing does.
	Condition Condition
	// LastAudit is the result of the last audit, nil before the first. It does not change.
	LastAudit *AuditResult
	// AuditEvery is how often the informer is audited by itself, zero for never and before the
	// first Run. LastAudited is when the newest audit came to its end, and Run began to audit
	// before that.
	AuditEvery  time.Duration
	LastAudited time.Time
	// Redelivery is how far Redeliver has come, nil while nothing is delivered again. Between two
	// Runs it is what the next one goes on with.
	Redelivery *RedeliveryStatus
}

// Counts is what an informer has done since it was made, in numbers.
type Counts = api.Counts

// ListCounts are lists by the reason why they were begun.
type ListCounts = api.ListCounts

// WatchCounts are watches by the reason why they were asked for.
type WatchCounts = api.WatchCounts

// EventCounts are the events of watches by type.
type EventCounts = api.EventCounts

// Histogram counts values by size.
type Histogram = api.Histogram

// together is the status of two handlers.
func together(a, b Status) Status {
	if far(b.Phase) < far(a.Phase) {
		a.Phase = b.Phase
	}
	if a.Fallback == nil && b.Fallback != nil {
		a.ListMode, a.Fallback = b.ListMode, b.Fallback
	}
	a.ResourceVersion = rv.Oldest(a.ResourceVersion, b.ResourceVersion)
	if b.CurrentAsOf.Before(a.CurrentAsOf) {
		a.CurrentAsOf = b.CurrentAsOf
	}
	a.OldestQueued = report.Earliest(a.OldestQueued, b.OldestQueued)
	a.Objects = max(a.Objects, b.Objects)
	a.Queued += b.Queued
	a.QueuedBytes += b.QueuedBytes
	a.Skipped += b.Skipped
	a.Stale += b.Stale
	a.DeadLetters += b.DeadLetters
	if b.LastContact.After(a.LastContact) {
		a.LastContact = b.LastContact
	}
	if b.LastErrorTime.After(a.LastErrorTime) {
		a.LastError, a.LastErrorTime = b.LastError, b.LastErrorTime
	}
	a.FailingSince = report.Earliest(a.FailingSince, b.FailingSince)
	a.CheckpointTime = report.Earliest(a.CheckpointTime, b.CheckpointTime)
	if a.SkippedError == nil {
		a.SkippedError = b.SkippedError
	}
	if a.CheckpointError == nil && (b.CheckpointError != nil || a.Checkpoint == "") {
		a.Checkpoint, a.CheckpointError = b.Checkpoint, b.CheckpointError
	}
	if a.LastAudit == nil || b.LastAudit != nil && b.LastAudit.Differs() {
		a.LastAudit = b.LastAudit
	}
	if a.AuditEvery == 0 || b.AuditEvery != 0 && b.LastAudited.Before(a.LastAudited) {
		a.AuditEvery, a.LastAudited = b.AuditEvery, b.LastAudited
	}
	if a.Redelivery == nil {
		a.Redelivery = b.Redelivery
	}
	if a.ResumedTime.IsZero() {
		a.ResumedFrom, a.ResumedTime = b.ResumedFrom, b.ResumedTime
	}
	a.Counts = a.Counts.Plus(b.Counts)
	a.Condition = report.Worse(a.Condition, b.Condition)
	return a
}

// far is how far an informer is that is in a phase.
func far(p Phase) int {
	return slices.Index([]Phase{PhaseStopped, PhaseIdle, PhaseBackoff, PhaseListing, PhaseWatching}, p)
}
