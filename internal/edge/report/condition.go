package report

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/rvinformer/informer/api"
	"github.com/rvinformer/informer/internal/leaf/moment"
)

// precedence has the reasons, the first to act on first.
var precedence = []api.ConditionReason{
	api.ReasonStopped, api.ReasonStopping, api.ReasonUnauthorized, api.ReasonForbidden, api.ReasonNotFound, api.ReasonServerUnreachable, api.ReasonThrottled, api.ReasonStalled,
	api.ReasonFailing, api.ReasonExpiredLoop, api.ReasonHandlerFailing, api.ReasonHandlerSlow, api.ReasonBudgetFull, api.ReasonCheckpointFailing,
	api.ReasonNotStarted, api.ReasonListing, api.ReasonDeadLetters, api.ReasonUndecodableObjects, api.ReasonNotWatchable, api.ReasonCurrent,
}

// Worse returns the one of two conditions that is to be acted on first; of two with one reason, the
// older.
func Worse(a, b api.Condition) api.Condition {
	rankA, rankB := slices.Index(precedence, a.Reason), slices.Index(precedence, b.Reason)
	if rankB < rankA || rankB == rankA && b.Since.Before(a.Since) {
		return b
	}
	return a
}

// Condition returns what holds the informer up.
func (p *Progress) Condition() api.Condition {
	p.GivenBack() // what failed may have become a dead letter
	d, pending := p.Delivery(), p.pending()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.observations.stage == stopping {
		return p.observations.stopping(pending)
	}
	return Worded(p.observations.condition(d, p.counters.listed.Load(), textOf(p.reading.told().err), moment.Now()))
}

// Worded returns a condition with words in place of a missing message: an error may have no text.
func Worded(c api.Condition) api.Condition {
	if strings.TrimSpace(c.Message) == "" {
		c.Message = words[c.Reason]
	}
	return c
}

// words say what a reason means where nothing else is known.
var words = map[api.ConditionReason]string{
	api.ReasonStopped:            "Run has returned",
	api.ReasonUnauthorized:       "the server does not accept the credentials",
	api.ReasonForbidden:          "the permission to list or watch is missing",
	api.ReasonNotFound:           "the server does not have the resource",
	api.ReasonServerUnreachable:  "the server cannot be reached",
	api.ReasonThrottled:          "the server asks to be left alone",
	api.ReasonStalled:            "the server was silent for too long",
	api.ReasonFailing:            "requests fail, and the error has no text",
	api.ReasonExpiredLoop:        "the server forgets versions too soon",
	api.ReasonHandlerFailing:     "the handler fails, and its error has no text",
	api.ReasonCheckpointFailing:  "the checkpoint is not in use, and the error has no text",
	api.ReasonUndecodableObjects: "an object could not be read, and the error has no text",
	api.ReasonNotWatchable:       "watches are refused, and lists take their place",
	api.ReasonCurrent:            "changes are delivered as they come",
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
func (s *observations) condition(d Delivery, listed int64, lastError string, now moment.Moment) api.Condition {
	a := &incidents{}
	if s.incidents != nil {
		a = s.incidents
		s.calm(now)
	}
	s.noteSlow(d, now)
	s.noteDead(d, now)
	reading := a.reading.holds()
	switch waits := now.Since(moment.Moment(s.starving.Load())); {
	case s.stage == notStarted:
		return api.Condition{Reason: api.ReasonNotStarted, Message: "Run was not called"}
	case s.stage == stopped:
		return api.Condition{Reason: api.ReasonStopped, Message: lastError, Since: s.since.Time()}
	case reading && a.reading.reason != api.ReasonHandlerFailing:
		return a.reading.condition(a.reading.text)
	case a.expiries >= maxExpiries:
		return a.expiry.condition(fmt.Sprintf("%d times in a row: %s", a.expiries, a.expiry.text))
	case reading:
		return a.reading.condition(a.reading.text)
	case a.handling.holds():
		return a.handling.condition(a.handling.text + d.noMoreDeadLetters())
	case s.slow != 0:
		return api.Condition{Reason: api.ReasonHandlerSlow, Message: fmt.Sprintf("%d changes wait, the oldest for %v", d.Queued, now.Since(d.Oldest).Round(time.Second)), Since: s.slow.Time()}
	case s.starving.Load() != 0 && waits >= starvedAfter:
		return api.Condition{Reason: api.ReasonBudgetFull, Message: fmt.Sprintf("reading waits for %v for its share of the Budget", waits.Round(time.Second)), Since: moment.Moment(s.starving.Load()).Time()}
	case a.checkpoint.holds():
		return a.checkpoint.condition(a.checkpoint.text)
	case s.stage == starting:
		return api.Condition{Reason: api.ReasonNotStarted, Message: "Run looks for where to go on from", Since: s.since.Time()}
	case s.stage == listing:
		return api.Condition{Reason: api.ReasonListing, Message: s.tally.Load().progress(listed, now), Since: s.since.Time()}
	case !d.Synced:
		message := fmt.Sprintf("the list was read; %d changes wait for the handler", d.Queued)
		return api.Condition{Reason: api.ReasonListing, Message: message, Since: s.since.Time()}
	case d.DeadLetters > 0:
		return api.Condition{Reason: api.ReasonDeadLetters, Message: d.deadLetters(), Since: d.DeadLetter.Since}
	case a.undecodable.holds():
		return a.undecodable.condition(a.undecodable.text)
	case a.unwatchable.holds():
		return a.unwatchable.condition(a.unwatchable.text)
	}
	current := api.Condition{Reason: api.ReasonCurrent, Since: max(s.since, s.cleared).Time()}
	if s.cut != 0 {
		current.Message = s.cutting()
	}
	return current
}

// cutting says what ends watches.
func (s *observations) cutting() string {
	text := fmt.Sprintf("something on the way, such as a proxy or a timeout of the client, ends watches after %v; ", s.cut.Round(time.Second))
	if s.cutAvoided {
		return text + "they are asked to end before, with the bookmark that renews CurrentAsOf"
	}
	return text + "that is too soon for the bookmark that renews CurrentAsOf"
}

// stopping is the condition of a run that ends.
func (s *observations) stopping(pending string) api.Condition {
	message := "Run is about to return"
	if pending != "" {
		message = "Run waits for " + pending
	}
	return api.Condition{Reason: api.ReasonStopping, Message: message, Since: s.since.Time()}
}

func (s *incident) condition(message string) api.Condition {
	return api.Condition{Reason: s.reason, Message: message, Since: s.began.Time()}
}
