package informer

import (
	"sync"
	"sync/atomic"
	"time"
)

// Phase is what an informer is doing.
type Phase int

const (
	// PhaseIdle: Run was not called yet, or looks for a checkpoint.
	PhaseIdle Phase = iota
	// PhaseListing: a list is being read.
	PhaseListing
	// PhaseWatching: a list was read, and changes are followed.
	PhaseWatching
	// PhaseBackoff: the last request failed; it will be tried again.
	PhaseBackoff
	// PhaseStopped: Run has returned.
	PhaseStopped
)

func (p Phase) String() string {
	switch p {
	case PhaseIdle:
		return "idle"
	case PhaseListing:
		return "listing"
	case PhaseWatching:
		return "watching"
	case PhaseBackoff:
		return "backoff"
	case PhaseStopped:
		return "stopped"
	}
	return "unknown"
}

// ListMode is how an informer reads a complete set.
type ListMode int

const (
	// ListModeAuto is ListModeWatchList, and ListModePaged where a watch-list does
	// not work; that is remembered for an hour, for the resource and the server of a
	// DynamicListerWatcherFactory.
	ListModeAuto ListMode = iota
	// ListModePaged lists consistent pages: the newest state, from resource
	// version "", in pages that all show it.
	ListModePaged
	// ListModeFull lists in one response, which the server may serve from its
	// cache, but not older than what is known.
	ListModeFull
	// ListModeWatchList opens a watch that begins with the set, object by object
	// from the server's cache, and goes on with it (sendInitialEvents, which a server
	// has from 1.32 on). It needs a ListerWatcher of a DynamicListerWatcherFactory.
	// Where the server refuses it, does not say for 10 s of silence that the set is
	// complete, or ends two of them before it is, that set is read as in
	// ListModePaged. So it is where only the newest state will do, after a restore of the
	// server from a backup for instance; that is no Fallback.
	ListModeWatchList
)

// fieldsDecide is the mode of a Reflector whose fields say how it lists.
const fieldsDecide ListMode = -1

func (m ListMode) String() string {
	switch m {
	case ListModeAuto:
		return "auto"
	case ListModePaged:
		return "paged"
	case ListModeFull:
		return "full"
	case ListModeWatchList:
		return "watch-list"
	}
	return "unknown"
}

// Status is a snapshot of an informer.
type Status struct {
	Phase Phase
	// ListMode is the mode in use. It is the configured one until Run has decided.
	ListMode ListMode
	// Fallback is why ListMode is ListModePaged although a watch-list was to be
	// tried; nil where it is not a fallback.
	Fallback error
	// Listed tells that a complete list was read, whether or not its handler has returned,
	// or that Run has resumed without one. It stays true.
	Listed bool
	// Synced tells that the first complete list was delivered to the handler,
	// every call returned, deletions included. It stays true.
	Synced bool
	// ResourceVersion is the one up to which everything is acknowledged that could be
	// read; empty until that is true of the first list.
	ResourceVersion string
	// Objects is the number of objects acknowledged and not deleted.
	Objects int
	// Queued is the number of keys with deltas that are not acknowledged, and
	// QueuedBytes the size of the objects in them: about that of their encoding.
	Queued      int
	QueuedBytes int64
	// Skipped counts the items that could not be read.
	Skipped int64
	// Stale counts the watch events that were not newer than what was known of
	// their object, and were dropped.
	Stale int64
	// LastContact is when the server last answered, bookmarks included.
	LastContact time.Time
	// LastError is the newest failure, and LastErrorTime when it was. One of the
	// reading is forgotten at the next list or watch that succeeds, one of the handler
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
}

// progress is what a Reflector tells of itself while it runs.
type progress struct {
	mu sync.Mutex
	// lastResourceVersion is the newest that the store was told.
	lastResourceVersion string
	// read is true once a complete list was read to its end, and listed once it was stored.
	read, listed bool
	// left counts the objects that could not be read, and that nothing waits for any more.
	left atomic.Int64
	// cluster is the UID of the namespace kube-system of the server whose objects are known,
	// empty if that is not known; and replaced counts how often it was found to be another.
	cluster  string
	replaced atomic.Int64
	// missed tells that the object of an event could not be decoded since the last list
	// began: nothing else tells of it again, if it does not change.
	missed atomic.Bool
	// handling is how the handler fails, and failing tells that it does: a handler is
	// called too often for a lock.
	failing  atomic.Bool
	handling trouble
	// reading is how everything else does.
	reading trouble
	// skipped is why the newest item was skipped, and atSkipped the number of items that were
	// skipped before the generation under way.
	skippedError error
	atSkipped    int64
	// The rest is told as it is in Status.
	checkpoint                  string
	checkpointError             error
	resumedFrom                 string
	resumedTime                 time.Time
	phase                       Phase
	listMode                    ListMode
	fallback                    error
	skippedItems, staleEvents   int64
	lastContact, checkpointTime time.Time
}

// trouble is a row of failures, none if err is nil.
type trouble struct {
	err         error // the newest
	since, last time.Time
}

func (t *trouble) add(err error) {
	now := time.Now()
	if t.err == nil {
		t.since = now
	}
	t.err, t.last = err, now
}

// use notes how complete sets are read, and why not with a watch-list.
func (p *progress) use(mode ListMode, fallback error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.listMode, p.fallback = mode, fallback
}

func (p *progress) enter(phase Phase) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.phase = phase
}

// contact notes that the server answered.
func (p *progress) contact() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lastContact = time.Now()
}

func (p *progress) succeeded() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.reading = trouble{}
}

func (p *progress) failed(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.reading.add(err)
}

// forget forgets a failure, nil for none, if it is the newest one.
func (p *progress) forget(failure error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if failure != nil && p.reading.err == failure {
		p.reading = trouble{}
	}
}

// handled notes that the handler took something in.
func (p *progress) handled() {
	if p.failing.Load() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.failing.Store(false)
		p.handling = trouble{}
	}
}

// handlingFailed notes that the handler did not take something in.
func (p *progress) handlingFailed(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.failing.Store(true)
	p.handling.add(err)
}

// skipped notes that an item was skipped.
func (p *progress) skipped(why error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.skippedItems++
	p.skippedError = why
}

// generationBegins notes that a list begins, and generationEnds that it is complete: what was
// skipped before does not count if the list had nothing of that kind.
func (p *progress) generationBegins() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.atSkipped = p.skippedItems
}

func (p *progress) generationEnds() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.skippedItems == p.atSkipped {
		p.skippedError = nil
	}
}

// runBegins notes that a run begins, which has not resumed.
func (p *progress) runBegins() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.resumedFrom, p.resumedTime = "", time.Time{}
}

// resumed notes that the server has accepted the version that the run goes on from.
func (p *progress) resumed(resourceVersion string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.resumedFrom, p.resumedTime = resourceVersion, time.Now()
}

// checkpointUnused notes why the checkpoint is not in use, nil if it is.
func (p *progress) checkpointUnused(why error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.checkpointError = why
}

// checkpointed notes that the checkpoint was saved.
func (p *progress) checkpointed(at time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.checkpointTime, p.checkpointError = at, nil
}

func (p *progress) stale() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.staleEvents++
}

func (p *progress) reached(resourceVersion string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lastResourceVersion = resourceVersion
}

// knownCluster is the UID of the namespace kube-system, empty if it is not known.
func (p *progress) knownCluster() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.cluster
}

// learnCluster notes the UID of the namespace kube-system, unless it is empty.
func (p *progress) learnCluster(uid string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if uid != "" {
		p.cluster = uid
	}
}

// clusterReplaced notes that what is known is of another cluster than the server, whose
// UID is empty if it is not known. Whoever has read the new UID finds it counted.
func (p *progress) clusterReplaced(uid string) {
	p.replaced.Add(1)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cluster = uid
}

func (p *progress) listRead() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.read = true
}

func (p *progress) listCompleted() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.listed = true
}

func (p *progress) snapshot() Status {
	p.mu.Lock()
	defer p.mu.Unlock()
	newest := p.reading
	if p.handling.err != nil && !p.handling.last.Before(newest.last) {
		newest = p.handling
	}
	return Status{
		Phase:           p.phase,
		Listed:          p.read,
		ListMode:        p.listMode,
		Fallback:        p.fallback,
		Skipped:         p.skippedItems,
		Stale:           p.staleEvents,
		LastContact:     p.lastContact,
		SkippedError:    p.skippedError,
		Checkpoint:      p.checkpoint,
		CheckpointTime:  p.checkpointTime,
		CheckpointError: p.checkpointError,
		ResumedFrom:     p.resumedFrom,
		ResumedTime:     p.resumedTime,
		LastError:       newest.err,
		LastErrorTime:   newest.last,
		FailingSince:    newest.since,
	}
}
