package report

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/rvinformer/informer/internal/moment"
)

// Condition is what holds an informer up. informer.Condition describes it.
type Condition struct {
	Reason  ConditionReason
	Message string
	Since   time.Time
}

// ConditionReason names a condition.
type ConditionReason string

// The reasons. informer.ConditionReason describes them.
const (
	ReasonStopped            ConditionReason = "Stopped"
	ReasonStopping           ConditionReason = "Stopping"
	ReasonUnauthorized       ConditionReason = "Unauthorized"
	ReasonForbidden          ConditionReason = "Forbidden"
	ReasonNotFound           ConditionReason = "NotFound"
	ReasonServerUnreachable  ConditionReason = "ServerUnreachable"
	ReasonThrottled          ConditionReason = "Throttled"
	ReasonStalled            ConditionReason = "Stalled"
	ReasonFailing            ConditionReason = "Failing"
	ReasonExpiredLoop        ConditionReason = "ExpiredLoop"
	ReasonHandlerFailing     ConditionReason = "HandlerFailing"
	ReasonHandlerSlow        ConditionReason = "HandlerSlow"
	ReasonBudgetFull         ConditionReason = "BudgetFull"
	ReasonCheckpointFailing  ConditionReason = "CheckpointFailing"
	ReasonNotStarted         ConditionReason = "NotStarted"
	ReasonListing            ConditionReason = "Listing"
	ReasonUndecodableObjects ConditionReason = "UndecodableObjects"
	ReasonCurrent            ConditionReason = "Current"
)

// precedence has the reasons, the first to act on first.
var precedence = []ConditionReason{
	ReasonStopped, ReasonStopping, ReasonUnauthorized, ReasonForbidden, ReasonNotFound, ReasonServerUnreachable, ReasonThrottled, ReasonStalled,
	ReasonFailing, ReasonExpiredLoop, ReasonHandlerFailing, ReasonHandlerSlow, ReasonBudgetFull, ReasonCheckpointFailing,
	ReasonNotStarted, ReasonListing, ReasonUndecodableObjects, ReasonCurrent,
}

// Worse returns the one of two conditions that is to be acted on first; of two with one reason, the
// older.
func Worse(a, b Condition) Condition {
	rankA, rankB := slices.Index(precedence, a.Reason), slices.Index(precedence, b.Reason)
	if rankB < rankA || rankB == rankA && b.Since.Before(a.Since) {
		return b
	}
	return a
}

// Condition returns what holds the informer up.
func (p *Progress) Condition() Condition {
	p.GivenBack() // a list may have repaired what was passed over, without a call
	d, pending := p.Delivery(), p.pending()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.observations.stage == stopping {
		return p.observations.stopping(pending)
	}
	return Worded(p.observations.condition(d, p.counters.listed.Load(), textOf(p.reading.told().err), moment.Now()))
}

// Worded returns a condition with words in place of a missing message: an error may have no text.
func Worded(c Condition) Condition {
	if strings.TrimSpace(c.Message) == "" {
		c.Message = words[c.Reason]
	}
	return c
}

// words say what a reason means where nothing else is known.
var words = map[ConditionReason]string{
	ReasonStopped:            "Run has returned",
	ReasonUnauthorized:       "the server does not accept the credentials",
	ReasonForbidden:          "the permission to list or watch is missing",
	ReasonNotFound:           "the server does not have the resource",
	ReasonServerUnreachable:  "the server cannot be reached",
	ReasonThrottled:          "the server asks to be left alone",
	ReasonStalled:            "the server was silent for too long",
	ReasonFailing:            "requests fail, and the error has no text",
	ReasonExpiredLoop:        "the server forgets versions too soon",
	ReasonHandlerFailing:     "the handler fails, and its error has no text",
	ReasonCheckpointFailing:  "the checkpoint is not in use, and the error has no text",
	ReasonUndecodableObjects: "an object could not be read, and the error has no text",
	ReasonCurrent:            "changes are delivered as they come",
}

// pending says what a run that ends waits for; empty for nothing, and for a run that goes on.
func (p *Progress) pending() string {
	if p.Consumer == nil || !p.isStopping() {
		return ""
	}
	return p.Consumer.Pending()
}

func (p *Progress) isStopping() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.observations.stage == stopping
}

func textOf(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// condition returns the first reason that holds.
func (s *observations) condition(d Delivery, listed int64, lastError string, now moment.Moment) Condition {
	a := &incidents{}
	if s.incidents != nil {
		a = s.incidents
		s.calm(now)
	}
	s.noteSlow(d, now)
	reading := a.reading.holds()
	switch waits := now.Since(moment.Moment(s.starving.Load())); {
	case s.stage == notStarted:
		return Condition{Reason: ReasonNotStarted, Message: "Run was not called"}
	case s.stage == stopped:
		return Condition{ReasonStopped, lastError, s.since.Time()}
	case reading && a.reading.reason != ReasonHandlerFailing:
		return a.reading.condition(a.reading.text)
	case a.expiries >= maxExpiries:
		return a.expiry.condition(fmt.Sprintf("%d times in a row: %s", a.expiries, a.expiry.text))
	case reading:
		return a.reading.condition(a.reading.text)
	case a.handling.holds():
		return a.handling.condition(d.passedOver(a.handling.text))
	case s.slow != 0:
		return Condition{ReasonHandlerSlow, fmt.Sprintf("%d changes wait, the oldest for %v", d.Queued, now.Since(d.Oldest).Round(time.Second)), s.slow.Time()}
	case s.starving.Load() != 0 && waits >= starvedAfter:
		return Condition{ReasonBudgetFull, fmt.Sprintf("reading waits for %v for its share of the Budget", waits.Round(time.Second)), moment.Moment(s.starving.Load()).Time()}
	case a.checkpoint.holds():
		return a.checkpoint.condition(a.checkpoint.text)
	case s.stage == starting:
		return Condition{ReasonNotStarted, "Run looks for where to go on from", s.since.Time()}
	case s.stage == listing:
		return Condition{ReasonListing, s.tally.Load().progress(listed, now), s.since.Time()}
	case !d.Synced:
		message := fmt.Sprintf("the list was read; %d changes wait for the handler", d.Queued)
		return Condition{ReasonListing, message, s.since.Time()}
	case a.undecodable.holds():
		return a.undecodable.condition(a.undecodable.text)
	}
	current := Condition{Reason: ReasonCurrent, Since: max(s.since, s.cleared).Time()}
	if s.cut != 0 {
		current.Message = fmt.Sprintf("something on the way, such as a proxy, ends watches that bring nothing for little more than %v; they are asked to end before, "+
			"with the bookmark that renews CurrentAsOf", s.cut.Round(time.Second))
	}
	return current
}

// stopping is the condition of a run that ends.
func (s *observations) stopping(pending string) Condition {
	message := "Run is about to return"
	if pending != "" {
		message = "Run waits for " + pending
	}
	return Condition{ReasonStopping, message, s.since.Time()}
}

func (s *incident) condition(message string) Condition {
	return Condition{s.reason, message, s.began.Time()}
}
