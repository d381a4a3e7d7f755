package report

import (
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/rvinformer/informer/api"
	"github.com/rvinformer/informer/internal/leaf/failure"
	"github.com/rvinformer/informer/internal/leaf/moment"
)

// Delivery is how far a consumer has come, which a Progress does not know.
type Delivery struct {
	// Synced tells that the first complete list was delivered.
	Synced bool
	// Queued is the number of keys with changes that are not acknowledged.
	Queued int
	// Retrying tells that some of them were handed over, and failed.
	Retrying bool
	// DeadLetters is how many there are, and DeadLetter the oldest of them. DeadLettersFull tells
	// that there may be no more.
	DeadLetters     int
	DeadLetter      api.DeadLetter
	DeadLettersFull bool
	// Oldest is when the oldest of these changes came; zero if there is none.
	Oldest moment.Moment
}

// Deliverer tells how far its consumer has come.
type Deliverer interface {
	Delivery() Delivery
	// Subject is the name of the informer.
	Subject() string
	// Pending says what a run whose context has ended waits for before it returns; empty for
	// nothing that takes long.
	Pending() string
}

const (
	// slowAfter is how long a change may wait until its handler counts as slow.
	slowAfter = 10 * time.Second
	// starvedAfter is how long reading may wait for the budget until that holds it up.
	starvedAfter = time.Second
	// relapse is how soon a failure may follow a success to be one of the same row: a watch that
	// opens and breaks at once is no recovery.
	relapse = 10 * time.Second
	// maxExpiries is the number of expired versions in a row from which they are a loop, and
	// steadyWatch is how long a watch lasts that ends the row.
	maxExpiries = 3
	steadyWatch = time.Minute
)

// stage is what a run is about, apart from what goes wrong.
type stage uint8

const (
	notStarted stage = iota
	starting         // it looks for where to go on from
	listing
	following
	stopping // its context has ended, and it waits for what is under way
	stopped
)

// observations are what a Condition is made of. They belong to the lock of Progress.
type observations struct {
	// starving is when reading began to wait for the budget, zero while it does not. It needs no
	// lock.
	starving atomic.Int64
	// since is when the stage began, or the list that it follows, and cleared when the newest
	// condition ended.
	since, cleared moment.Moment
	// slow is when the change came with which the handler began to be slow, zero while it is not.
	slow moment.Moment
	// tally counts the list under way, nil without one. It needs no lock either.
	tally atomic.Pointer[tally]
	// incidents is nil if nothing was wrong in this run.
	incidents *incidents
	// cut is after which time something on the way ends watches, zero for no such thing. CutAvoided
	// tells that they are asked to end before.
	cut        time.Duration
	cutAvoided bool
	stage      stage
	// away tells that the newest failure is that the server is away, and dead that there are dead
	// letters.
	away, dead bool
}

// tally counts what was read of a list.
type tally struct {
	began moment.Moment
	// before is the number of objects that were listed before.
	before int64
	bytes  atomic.Int64
}

// incidents are what is wrong, or was.
type incidents struct {
	reading, handling, checkpoint, undecodable, unwatchable incident
	// expiry is that of expired versions, expiries their number in a row, and watched when the
	// watch was opened that is under way; zero without one.
	expiry   incident
	expiries int
	watched  moment.Moment
}

// incident is a row of failures. It is over if ended is set, and there was none if began is not.
type incident struct {
	reason       api.ConditionReason
	text         string // of the newest failure
	began, ended moment.Moment
}

func (s *incident) holds() bool { return s.began != 0 && s.ended == 0 }

// fail begins the row at began, or goes on with it.
func (s *incident) fail(reason api.ConditionReason, text string, began, now moment.Moment) {
	if s.reason != reason || s.began == 0 || s.ended != 0 && now.Since(s.ended) > relapse {
		s.reason, s.began = reason, began
	}
	s.text, s.ended = text, 0
}

// end ends the row, and reports whether there was one.
func (s *incident) end(now moment.Moment) bool {
	held := s.holds()
	if held {
		s.ended = now
	}
	return held
}

// begin notes that a run begins.
func (s *observations) begin(now moment.Moment) {
	s.stage, s.since, s.cleared = starting, now, 0
}

// enter notes that the informer does something else from now on.
func (s *observations) enter(phase api.Phase, now moment.Moment) {
	switch phase {
	case api.PhaseListing:
		if s.stage != following || !s.isUnwatchable() { // lists that take the place of watches are no news
			s.move(listing, now)
		}
		if s.incidents != nil {
			s.calm(now)
			s.incidents.watched = 0
		}
	case api.PhaseWatching:
		if s.stage == listing {
			s.stage, s.cleared = following, now // the list is not delivered yet: since stays
		}
	case api.PhaseStopped:
		s.move(stopped, now)
		s.incidents, s.slow, s.cleared = nil, 0, 0
		s.tally.Store(nil)
	}
}

func (s *observations) move(to stage, now moment.Moment) {
	if s.stage != to {
		s.stage, s.since = to, now
	}
}

// writableIncidents returns the incidents, to be written to.
func (s *observations) writableIncidents() *incidents {
	if s.incidents == nil {
		s.incidents = &incidents{}
	}
	return s.incidents
}

// noteSlow notes whether the handler is slow.
func (s *observations) noteSlow(d Delivery, now moment.Moment) {
	switch isSlow := d.Oldest != 0 && now.Since(d.Oldest) >= slowAfter; {
	case isSlow && s.slow == 0:
		s.slow = d.Oldest
	case !isSlow && s.slow != 0:
		s.slow, s.cleared = 0, now
	}
}

// noteDead notes whether there are dead letters.
func (s *observations) noteDead(d Delivery, now moment.Moment) {
	if s.dead && d.DeadLetters == 0 {
		s.cleared = now
	}
	s.dead = d.DeadLetters > 0
}

// failed notes a failure of anything but the handler.
func (s *observations) failed(err error, now moment.Moment) {
	if s.stage >= stopping {
		return
	}
	began := now
	switch reason := failure.ReasonOf(err); reason {
	case "":
	case api.ReasonExpiredLoop:
		s.expired(err.Error(), now)
	case api.ReasonNotWatchable:
		s.lasting(ofWatches, reason, err, now)
	default:
		if reason == api.ReasonStalled {
			began = now - moment.Moment(silenceOf(err))
		}
		s.writableIncidents().reading.fail(reason, err.Error(), began, now)
	}
}

// isUnwatchable reports whether lists take the place of watches.
func (s *observations) isUnwatchable() bool {
	return s.incidents != nil && s.incidents.unwatchable.holds()
}

// isServerAway reports whether the informer is held up because the server is away.
func (s *observations) isServerAway() bool {
	return s.away && s.incidents != nil && s.incidents.reading.holds()
}

// expired counts a version that the server has forgotten.
func (s *observations) expired(text string, now moment.Moment) {
	a := s.writableIncidents()
	if s.steady(now) {
		a.expiries = 0
	}
	a.watched = 0
	if a.expiries++; a.expiries == 1 {
		a.expiry = incident{reason: api.ReasonExpiredLoop, began: now}
	}
	a.expiry.text = text
}

// steady reports whether the watch under way has lasted for long enough to end a row of expiries.
func (s *observations) steady(now moment.Moment) bool {
	return s.incidents.watched != 0 && now.Since(s.incidents.watched) >= steadyWatch
}

// succeeded notes that a request has succeeded, and opened that it has opened a watch.
func (s *observations) succeeded(now moment.Moment) {
	s.away = false
	if s.incidents != nil && s.incidents.reading.end(now) {
		s.cleared = now
	}
}

func (s *observations) opened(now moment.Moment) {
	s.lasting(ofWatches, api.ReasonNotWatchable, nil, now)
	if s.incidents != nil {
		s.calm(now)
		s.incidents.watched = now
	}
}

// calm forgets the expiries if the watch under way has lasted.
func (s *observations) calm(now moment.Moment) {
	if a := s.incidents; a.expiries > 0 && s.steady(now) {
		if a.expiries >= maxExpiries {
			s.cleared = max(s.cleared, a.watched+moment.Moment(steadyWatch))
		}
		a.expiries = 0
	}
}

// lasting notes whether a condition holds that lasts until it is said to be over.
func (s *observations) lasting(which func(*incidents) *incident, reason api.ConditionReason, err error, now moment.Moment) {
	switch {
	case err != nil && s.stage < stopping:
		if sp := which(s.writableIncidents()); sp.holds() {
			sp.text = err.Error()
		} else {
			*sp = incident{reason: reason, text: err.Error(), began: now}
		}
	case err == nil && s.incidents != nil && which(s.incidents).end(now):
		s.cleared = now
	}
}

// deadLetters says which changes the handler has refused too often.
func (d *Delivery) deadLetters() string {
	text := fmt.Sprintf("%q is a dead letter, after %d attempts", d.DeadLetter.Key, d.DeadLetter.Attempts)
	if d.DeadLetters > 1 {
		text = fmt.Sprintf("%d dead letters; the oldest is %q, after %d attempts", d.DeadLetters, d.DeadLetter.Key, d.DeadLetter.Attempts)
	}
	text += ": " + d.DeadLetter.LastError
	return text + d.noMoreDeadLetters()
}

// noMoreDeadLetters says that there are as many as there may be, so that what fails is never one.
func (d *Delivery) noMoreDeadLetters() string {
	if !d.DeadLettersFull {
		return ""
	}
	return fmt.Sprintf("; there may be no more dead letters than the %d that there are, so what else fails is tried for ever", d.DeadLetters)
}

// progress says how far a list has come.
func (t *tally) progress(listed int64, now moment.Moment) string {
	if t == nil {
		return "a list is asked for"
	}
	objects, bytes, spent := listed-t.before, float64(t.bytes.Load()), now.Since(t.began)
	text := fmt.Sprintf("%d objects", objects)
	if bytes > 0 {
		text += fmt.Sprintf(", %s", megabytes(bytes))
	}
	text += fmt.Sprintf(" read in %v", spent.Round(100*time.Millisecond))
	if seconds := spent.Seconds(); seconds >= 1 {
		text += fmt.Sprintf(": %.0f objects/s", float64(objects)/seconds)
		if bytes > 0 {
			text += fmt.Sprintf(", %s/s", megabytes(bytes/seconds))
		}
	}
	return text
}

func megabytes(bytes float64) string { return fmt.Sprintf("%.1f MB", bytes/1e6) }

func ofCheckpoint(a *incidents) *incident  { return &a.checkpoint }
func ofWatches(a *incidents) *incident     { return &a.unwatchable }
func ofUndecodable(a *incidents) *incident { return &a.undecodable }

// silenceOf is how long a server was silent, if err is a *StallError.
func silenceOf(err error) time.Duration {
	var stall *api.StallError
	if errors.As(err, &stall) {
		return stall.Silence
	}
	return 0
}
