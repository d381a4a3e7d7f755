package report

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rvinformer/informer/api"
	"github.com/rvinformer/informer/internal/leaf/failure"
	"github.com/rvinformer/informer/internal/leaf/moment"
	"github.com/rvinformer/informer/internal/leaf/redact"
)

// Snapshot has the fields of informer.Status, which is converted from it and describes them. A
// Progress does not know Synced, ResourceVersion, Objects, Queued, QueuedBytes, CurrentAsOf,
// OldestQueued, DeadLetters and Condition: they stay zero, as Counts.StoredBytes does.
type Snapshot struct {
	Phase           api.Phase
	ListMode        api.ListMode
	Fallback        error
	Listed          bool
	Synced          bool
	ResourceVersion string
	CurrentAsOf     time.Time
	Objects         int
	Queued          int
	QueuedBytes     int64
	OldestQueued    time.Time
	Skipped         int64
	Stale           int64
	DeadLetters     int
	LastContact     time.Time
	LastError       error
	LastErrorTime   time.Time
	FailingSince    time.Time
	SkippedError    error
	Checkpoint      string
	CheckpointTime  time.Time
	CheckpointError error
	ResumedFrom     string
	ResumedTime     time.Time
	Shard           api.Shard
	Counts          api.Counts
	Condition       api.Condition
	LastAudit       *api.AuditResult
	AuditEvery      time.Duration
	LastAudited     time.Time
	Redelivery      *api.RedeliveryStatus
}

// state has what a Progress tells of every informer.
type state struct {
	phase       api.Phase
	listMode    api.ListMode
	fallback    error
	stale       int64
	lastContact moment.Moment
	lastAudit   *api.AuditResult
	// saved, skips and audits are nil for most informers.
	saved  *saved
	skips  *skips
	audits *audits
	// listed tells that a complete list was read, stored that it was stored, and auditing that an
	// audit is under way.
	listed, stored, auditing bool
}

// saved is what is told of a checkpoint, and of a run that goes on from a resource version.
type saved struct {
	name        string
	time        time.Time
	err         error
	resumedFrom string
	resumedTime time.Time
}

// savedLocked returns what is told of a checkpoint, to change it.
func (p *Progress) savedLocked() *saved {
	if p.now.saved == nil {
		p.now.saved = &saved{}
	}
	return p.now.saved
}

// skips are the items that were skipped.
type skips struct {
	count int64
	// err is why the newest was skipped, nil after a generation in which none was.
	err error
	// before is the count before the generation under way.
	before int64
}

// Progress is how far an informer has come, for people. An informer decides by two of its parts
// only: LastResourceVersion, which a list must reach, and Stored.
type Progress struct {
	// Consumer, if set, is what the changes go to. It is set before the first run. Without one,
	// they are delivered when they are stored.
	Consumer Deliverer
	// Whole, if set, also counts the received bytes: it is the Progress of a shared informer, and this
	// is that of one of its handlers. It is set before the first run.
	Whole *Progress

	mu  sync.Mutex
	now state
	// lastResourceVersion is the newest that was handed to the store.
	lastResourceVersion string
	// handling is how the handler fails, and failing tells that it does: a handler is
	// called too often for a lock.
	failing atomic.Bool
	// retrying tells that something waits, or may wait, to be handed over again that the handler
	// has failed for.
	retrying atomic.Bool
	handling row
	// reading is how everything else does.
	reading row
	// began is when the first run began, zero before.
	began    moment.Moment
	counters counters
	// observations are for the Condition.
	observations observations
	// ctx has the logger of the run under way, and conditionLog logs to it; both are nil at other
	// times.
	ctx          context.Context
	conditionLog *conditionLog
	// looking are the calls of look that are under way or to come.
	looking sync.WaitGroup
}

// row is a row of failures. It is small without one, as that of most informers is.
type row struct{ *trouble }

// trouble is what is told of a row of failures, none if err is nil.
type trouble struct {
	err         error // the newest
	since, last time.Time
}

func (r *row) add(err error) {
	now := time.Now()
	if r.trouble == nil {
		r.trouble = &trouble{since: now}
	}
	r.err, r.last = err, now
}

// Earliest returns the earlier one of two times that are not zero.
func Earliest(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// told is what is told of the row.
func (r row) told() trouble {
	if r.trouble == nil {
		return trouble{}
	}
	return *r.trouble
}

// UseListMode notes how complete sets are read, and why not with a watch-list.
func (p *Progress) UseListMode(mode api.ListMode, fallback error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.now.listMode, p.now.fallback = mode, redact.Error(fallback)
}

// FallBack notes why sets are read in another way, or more often, than they would be; nil if they are
// not.
func (p *Progress) FallBack(why error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.now.fallback = redact.Error(why)
}

// Enter notes what the informer does from now on.
func (p *Progress) Enter(phase api.Phase) {
	if phase == api.PhaseStopped {
		p.stopLog()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.now.phase = phase
	p.observations.enter(phase, moment.Now())
}

// Stop notes that the context of the run has ended, and that the run waits for what is under way.
// Enter(Stopped) follows.
func (p *Progress) Stop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.observations.move(stopping, moment.Now())
	p.armLocked()
	if p.conditionLog != nil {
		p.conditionLog.lookIn(stopEach)
	}
}

// Contact notes that the server answered.
func (p *Progress) Contact(at time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.now.lastContact = moment.Of(at)
}

// CountListBytes counts bytes of the list under way.
func (p *Progress) CountListBytes(bytes int) {
	if t := p.observations.tally.Load(); t != nil {
		t.bytes.Add(int64(bytes))
	}
}

// Succeed ends a row of failures of anything but the handler.
func (p *Progress) Succeed() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.reading = row{}
	p.observations.succeeded(moment.Now())
}

// WatchOpened notes that the server has opened a watch.
func (p *Progress) WatchOpened() {
	p.Succeed()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.observations.opened(moment.Now())
	if p.observations.incidents != nil {
		p.armLocked() // to forget them
	}
}

// WatchesAreCut notes after which time something on the way ends watches, zero for no such thing,
// and whether they are asked to end before.
func (p *Progress) WatchesAreCut(after time.Duration, asked bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.observations.cut, p.observations.cutAvoided = after, asked
}

// Starved notes whether reading waits for the budget. It takes no lock, because a reader that waits
// often calls it often.
func (p *Progress) Starved(is bool) {
	if is {
		p.observations.starving.Store(int64(moment.Now()))
		return
	}
	began := moment.Moment(p.observations.starving.Swap(0))
	if now := moment.Now(); began != 0 && now.Since(began) >= starvedAfter {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.observations.cleared = now
	}
}

// NoteFailure notes a failure of anything but the handler.
func (p *Progress) NoteFailure(err error) { p.noteFailure(redact.Error(err), false) }

// NoteServerAway notes that the server is away, which is logged once for all its informers.
func (p *Progress) NoteServerAway(err error) { p.noteFailure(redact.Error(err), true) }

func (p *Progress) noteFailure(err error, away bool) {
	if failure.IsExcused(err) {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.reading.add(err)
	p.observations.failed(err, moment.Now())
	p.observations.away = away
	p.armLocked()
}

// Forget forgets a failure, nil for none, if it is the newest one.
func (p *Progress) Forget(failure error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if failure != nil && redact.Same(p.reading.told().err, failure) {
		p.reading = row{}
		p.observations.succeeded(moment.Now())
	}
}

// Handled notes that the handler took something in.
func (p *Progress) Handled() {
	if p.failing.Load() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.failing.Store(false)
		p.handling = row{}
	}
}

// GivenBack notes that the queue has back what the handler took in.
func (p *Progress) GivenBack() {
	if !p.retrying.Load() {
		return
	}
	d := p.Delivery()
	if d.Retrying {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if (p.handling.trouble == nil || d.DeadLetters > 0) && p.retrying.Swap(false) && p.observations.incidents != nil && p.observations.incidents.handling.end(moment.Now()) {
		p.observations.cleared = moment.Now()
	}
}

// Delivery returns how far the consumer has come.
func (p *Progress) Delivery() Delivery {
	if p.Consumer == nil {
		return Delivery{Synced: p.Stored()}
	}
	return p.Consumer.Delivery()
}

// handlingFailed notes that the handler did not take something in.
func (p *Progress) handlingFailed(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.failing.Store(true)
	p.handling.add(err)
	if p.observations.stage < stopping {
		p.retrying.Store(true)
		now := moment.Now()
		p.observations.writableIncidents().handling.fail(api.ReasonHandlerFailing, err.Error(), now, now)
		p.armLocked()
	}
}

// skipped notes that an item was skipped.
func (p *Progress) skipped(why error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.now.skips == nil {
		p.now.skips = &skips{}
	}
	p.now.skips.count++
	p.now.skips.err = why
	p.observations.lasting(ofUndecodable, api.ReasonUndecodableObjects, why, moment.Now())
	p.armLocked()
}

// BeginGeneration notes that a list begins, and EndGeneration that it is complete: if no item of
// the list was skipped, SkippedError is over.
func (p *Progress) BeginGeneration() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if s := p.now.skips; s != nil {
		s.before = s.count
	}
	p.observations.tally.Store(&tally{began: moment.Now(), before: p.counters.listed.Load()})
}

// EndGeneration notes that the list that began last is complete and stored.
func (p *Progress) EndGeneration() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.now.stored = true
	p.observations.tally.Store(nil)
	if s := p.now.skips; s != nil && s.count == s.before {
		s.err = nil
		p.observations.lasting(ofUndecodable, api.ReasonUndecodableObjects, nil, moment.Now())
	}
}

// BeginRun notes that a run begins, which has not resumed.
func (p *Progress) BeginRun() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if s := p.now.saved; s != nil {
		s.resumedFrom, s.resumedTime = "", time.Time{}
	}
	if p.began == 0 {
		p.began = moment.Now()
	}
	p.observations.begin(moment.Now())
}

// Resumed notes that the server has accepted the version that the run goes on from.
func (p *Progress) Resumed(resourceVersion string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if s := p.savedLocked(); s.resumedFrom == "" { // the first event says so again
		s.resumedFrom, s.resumedTime = resourceVersion, time.Now()
	}
	p.observations.move(following, moment.Now())
}

// NameCheckpoint notes that there is a checkpoint, and its name.
func (p *Progress) NameCheckpoint(name string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.savedLocked().name = redact.Text(name)
}

// CheckpointUnused notes why the checkpoint is not in use, nil if it is.
func (p *Progress) CheckpointUnused(why error) {
	why = redact.Error(why)
	p.mu.Lock()
	defer p.mu.Unlock()
	if why != nil || p.now.saved != nil {
		p.savedLocked().err = why
	}
	p.observations.lasting(ofCheckpoint, api.ReasonCheckpointFailing, why, moment.Now())
	if why != nil {
		p.armLocked()
	}
}

// Checkpointed notes that the checkpoint was saved, and how long it took.
func (p *Progress) Checkpointed(at time.Time, took time.Duration) {
	p.counters.saves.Add(1)
	p.counters.saving.Store(int64(took))
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.savedLocked()
	s.time, s.err = at, nil
	p.observations.lasting(ofCheckpoint, api.ReasonCheckpointFailing, nil, moment.Now())
}

// Stale counts a watch event that was not newer than what was known.
func (p *Progress) Stale() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.now.stale++
}

// Reach notes the newest resource version that was handed to the store.
func (p *Progress) Reach(resourceVersion string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lastResourceVersion = resourceVersion
}

// LastResourceVersion returns the version that Reach was called with last.
func (p *Progress) LastResourceVersion() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.lastResourceVersion
}

// ListRead notes that a complete list was read to its end.
func (p *Progress) ListRead() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.now.listed = true
}

// Stored reports whether a complete list was read and stored.
func (p *Progress) Stored() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.now.stored
}

// Snapshot returns how far the informer has come.
func (p *Progress) Snapshot() Snapshot {
	p.mu.Lock()
	defer p.mu.Unlock()
	newest := p.reading.told()
	if other := p.handling.told(); other.err != nil {
		since := Earliest(newest.since, other.since)
		if !other.last.Before(newest.last) {
			newest = other
		}
		newest.since = since
	}
	var skipped skips
	if p.now.skips != nil {
		skipped = *p.now.skips
	}
	var saved saved
	if p.now.saved != nil {
		saved = *p.now.saved
	}
	var audits audits
	if p.now.audits != nil {
		audits = *p.now.audits
	}
	return Snapshot{
		Phase:           p.now.phase,
		ListMode:        p.now.listMode,
		Fallback:        p.now.fallback,
		Listed:          p.now.listed,
		Skipped:         skipped.count,
		Stale:           p.now.stale,
		LastContact:     p.now.lastContact.Time(),
		LastError:       newest.err,
		LastErrorTime:   newest.last,
		FailingSince:    newest.since,
		SkippedError:    skipped.err,
		Checkpoint:      saved.name,
		CheckpointTime:  saved.time,
		CheckpointError: saved.err,
		ResumedFrom:     saved.resumedFrom,
		ResumedTime:     saved.resumedTime,
		Counts:          p.counters.counts(),
		LastAudit:       p.now.lastAudit,
		AuditEvery:      audits.every,
		LastAudited:     audits.complete,
	}
}
