package server

import (
	"cmp"
	"errors"
	"time"
)

const (
	// attemptEvery is the least time between two attempts to reach a server that is away.
	attemptEvery = time.Second
	// askAfter is when a question follows a suspicion. What else is lost with a connection is
	// noticed by then.
	askAfter = 200 * time.Millisecond
	// askAgain is the least time from a question that the server has answered to the next one.
	askAgain = 5 * time.Second
	// trialEvery is about how often one of the waiters makes its own request while the server is
	// away. The question may be what fails.
	trialEvery = 5 * time.Second
	// tellEvery is how often waiters are told why the server is away, if the reason changes.
	tellEvery = 30 * time.Second
	// outageLeast is how long a server has to be away so that its return ends the pauses of all.
	outageLeast = 2 * time.Second
	// spreadLeast is the time over which waiters go on when the server is back. It is longer if
	// more than spreadRate of them a second would go on, and spreadMost at most.
	spreadLeast, spreadMost = 600 * time.Millisecond, 7 * time.Second
	spreadRate              = 400
)

// standing is what is known of a server. It is a value: a method that is named for an event returns
// the standing after it, and what the event may do then. Nothing here waits, or knows the time.
//
// A server is away when it does not answer a question (see Server.ask), or when two attempts in a
// row get no connection. It is back with the first answer to any request, but see contested.
//
// Before a question, requests have to fail in a way that raises suspicion. So one broken API group
// leads to a question, and to no more.
type standing struct {
	condition condition
	// waiting counts the requests that wait for an answer. News counts what they are to hear: why
	// the server is away, or that it is back. Returns counts the latter.
	waiting, news, returns int
	// spread is the time over which those that have waited until the newest return go on as though
	// nothing had failed. It is 0 if the outage was too short for that: they wait for the end of
	// their pauses.
	spread time.Duration
	// next is when the server may be asked, and, while it is unconnected, when a connection may be
	// attempted.
	next time.Time
	// newest is the newest attempt, a question or a request that may have to connect, and former
	// the one before. Each is the time at which it has ended, or has begun if it takes longer than
	// attemptEvery: it may reach the server at any time until then.
	//
	// Invariant: while failure is set, attempts reach the server twice in attemptEvery at most. While
	// it is away, no question is a third attempt.
	newest, former time.Time
	// failure is why the newest attempt without a connection has failed, nil if none has since the
	// last answer.
	failure error
}

// condition is there, suspected or away.
type condition interface{ isCondition() }

// there is a server that has answered, and since then no request has failed in a way that raises
// suspicion.
type there struct{}

// suspected is a server that was there, until such a request. Due tells that a request has waited
// since then, so that next is when a question is due.
type suspected struct{ due bool }

// away is a server that was found away.
type away struct {
	since   time.Time
	symptom symptom
	// reason is why it is away, and told the reason that waiters are told since toldAt.
	reason, told error
	toldAt       time.Time
}

func (there) isCondition()     {}
func (suspected) isCondition() {}
func (away) isCondition()      {}

// symptom is how it shows that a server is away.
type symptom uint8

const (
	// unanswered: the newest question was not answered.
	unanswered symptom = iota
	// contested: another request was answered since that question. A load balancer may have
	// answered what failed, and others not. The next question tells.
	contested
	// unconnected: there was no connection either.
	unconnected
)

// isQuiet reports whether nothing has failed since the last answer, so that another one changes
// nothing.
func (s standing) isQuiet() bool { return s.condition == there{} && s.failure == nil }

// answered follows an answer to a request, or to a question.
func (s standing) answered(now time.Time, question bool) standing {
	var spread time.Duration
	a, isAway := s.condition.(away)
	switch {
	case isAway && !question && a.symptom != unconnected && s.waiting > 0:
		a.symptom = contested
		s.condition, s.failure = a, nil
		return s
	case isAway && now.Sub(a.since) >= outageLeast:
		spread = min(max(spreadLeast, time.Duration(s.waiting)*time.Second/spreadRate), spreadMost)
	}
	if question {
		s.next = now.Add(askAgain)
	}
	return s.back(spread)
}

func (s standing) back(spread time.Duration) standing {
	s.condition, s.failure, s.spread = there{}, nil, spread
	s.news++
	s.returns++
	return s
}

// unanswered follows a question that has failed. The server asks to be left alone for retryAfter.
func (s standing) unanswered(now time.Time, reason error, how symptom, retryAfter time.Duration) standing {
	s = s.ended(now)
	if a, _ := s.condition.(away); a.symptom == contested { // it is the question that fails
		return s.back(0)
	}
	s = s.leave(now, reason, how)
	s.next = later(s.next, now.Add(retryAfter))
	return s
}

// failed follows an attempt that got no connection.
func (s standing) failed(now time.Time, err error) standing {
	s = s.ended(now)
	if s.failure != nil {
		s = s.leave(now, err, unconnected)
	}
	s.failure = err
	return s
}

// ended follows an attempt that has failed. Of two, either may be it.
func (s standing) ended(now time.Time) standing {
	for _, at := range []*time.Time{&s.newest, &s.former} {
		if now.Sub(*at) < attemptEvery {
			*at = now
		}
	}
	return s
}

func (s standing) leave(now time.Time, reason error, how symptom) standing {
	a, isAway := s.condition.(away)
	if !isAway {
		a.since = now
	}
	if !isAway || now.Sub(a.toldAt) >= tellEvery && a.told.Error() != reason.Error() {
		a.told, a.toldAt = reason, now
		s.news++
	}
	a.reason, a.symptom = reason, how
	s.condition, s.next = a, s.newest.Add(attemptEvery)
	return s
}

// connecting begins an attempt of a request. The error is why the newest one has failed, if it is
// too early for another one.
func (s standing) connecting(now time.Time) (standing, error) { return s.attempt(now, false) }

// asking begins a question, unless it is too early for it.
func (s standing) asking(now time.Time) (standing, error) { return s.attempt(now, true) }

// errEarly is the error of a question where nothing has failed yet.
var errEarly = errors.New("too early for a question")

func (s standing) attempt(now time.Time, question bool) (standing, error) {
	a, isAway := s.condition.(away)
	var at time.Time
	if s.failure != nil || question && isAway {
		at = s.former.Add(attemptEvery)
	}
	if question || a.symptom == unconnected {
		at = later(at, s.next)
	}
	if now.Before(at) {
		s.next = later(s.next, at)
		return s, cmp.Or(s.failure, a.reason, errEarly)
	}
	if question || isAway {
		s.next = now.Add(attemptEvery)
	}
	s.newest, s.former = now, s.newest
	return s, nil
}

// joining follows a request that has failed. It waits for an answer if there is enough suspicion.
// Answered tells that what has failed was an answer, and silent that none has come lately.
func (s standing) joining(now time.Time, answered, silent bool) (next standing, waits bool) {
	if _, isThere := s.condition.(there); isThere {
		s.condition = suspected{}
		if answered || !silent {
			return s, false
		}
	}
	s.waiting++
	if is, _ := s.condition.(suspected); s.condition == is && !is.due {
		s.condition, s.next = suspected{due: true}, later(s.next, now.Add(askAfter))
	}
	return s, true
}

// leaving follows a request that waits no more.
func (s standing) leaving(time.Time) standing {
	s.waiting--
	return s
}

// trying follows the end of the pause of a request that waits. It may be made if again is 0, or
// else its pause ends again after about that time. Tried tells that it has ended before.
func (s standing) trying(now time.Time, tried bool) (next standing, again time.Duration) {
	a, isAway := s.condition.(away)
	switch {
	case !isAway:
	case !tried:
		return s, time.Duration(s.waiting) * trialEvery
	case now.Sub(s.newest) < attemptEvery/2 || now.Sub(s.former) < attemptEvery:
		return s, attemptEvery
	case a.symptom == unconnected:
		s.next = now // it may connect
	}
	return s, 0
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}
