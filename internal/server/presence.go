package server

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rvinformer/informer/internal/moment"
	"github.com/rvinformer/informer/internal/redact"
)

const (
	// attemptEvery is the least time between two attempts to reach a server that is away. Up to
	// attemptJitter is added at random.
	attemptEvery, attemptJitter = time.Second, 200 * time.Millisecond
	// askAfter is when a question follows a suspicion. What else is lost with a connection is
	// noticed by then.
	askAfter = 200 * time.Millisecond
	// askAgain is the least time from a question that the server has answered to the next one.
	askAgain = 5 * time.Second
	// askPatience is how long the answer to a question may take, the connection included.
	askPatience = 2500 * time.Millisecond
	// lately is for how long an answer shows that the server is there.
	lately = time.Second
	// trialEvery is about how often one of the waiters makes its own request while the server is
	// away. The question may be what fails.
	trialEvery = 5 * time.Second
	// tellEvery is how often waiters are told why the server is away, if the reason changes.
	tellEvery = 30 * time.Second
	// grantLasts is how soon the trial has to begin.
	grantLasts = 100 * time.Millisecond
	// outageLeast is how long a server has to be away so that its return ends the pauses of all.
	outageLeast = 2 * time.Second
	// spreadLeast is the time over which waiters go on when the server is back. It is longer if
	// more than spreadRate of them a second would go on, and spreadMost at most.
	spreadLeast, spreadMost = 600 * time.Millisecond, 7 * time.Second
	spreadRate              = 400
)

// presence is whether a server is there. The requests that find it away wait for it together, and
// one of them asks it: the one that has the turn. If its context ends, another one takes the turn.
//
// A server is away when it does not answer a question (see Server.ask), or when two attempts in a
// row get no connection. It is back with the first answer to any request. Before a question,
// requests have to fail in a way that raises suspicion. So one broken API group leads to a
// question, and to no more.
//
// A presence has no goroutine: its callers wait, and ask.
type presence struct {
	// turn has room for the waiter that asks.
	turn chan struct{}
	// answered is when the server has answered last, a moment.Moment.
	answered atomic.Int64
	// eager tells that the next answer changes something below.
	eager atomic.Bool

	mu sync.Mutex
	// suspicions counts what has failed since the last answer, and failures the attempts to
	// connect. Failure is why the newest of them has failed.
	suspicions, failures int
	failure              error
	// reason is why the server is away, nil while it is there, and since is when that began.
	reason error
	since  time.Time
	// unconnected tells that there was no connection either.
	unconnected bool
	// doubted tells that another request was answered since the newest question.
	doubted bool
	// newest is the newest attempt, a question or a request that may have to connect, and former
	// the one before. Each is the time at which it has ended, or has begun if it takes longer than
	// attemptEvery: it may reach the server at any time until then.
	newest, former time.Time
	// next is when the server may be asked, and, while it is unconnected, when a connection may be
	// attempted.
	next time.Time
	// granted is when one request may connect before that.
	granted time.Time
	// bulletin logs outages.
	bulletin bulletin
	// crowd are those that wait now, nil if none do.
	crowd *crowd
}

// crowd are waiters that wait for the same answer.
type crowd struct {
	size int // belongs to the lock of the presence
	// reason is why the server is away, as the waiters are told. When it changes, left is closed,
	// and replaced. All of them belong to the lock of the presence.
	left   chan struct{}
	reason error
	told   time.Time
	// back is closed when the server has answered. Outage and spread do not change after that.
	back chan struct{}
	// outage tells that the server was away for long enough to end all pauses, and spread over
	// which time the waiters go on then.
	outage bool
	spread time.Duration
}

func newPresence(server string) *presence {
	return &presence{turn: make(chan struct{}, 1), bulletin: bulletin{server: redact.Text(server)}}
}

// sign is what shows that the server is there.
type sign int

const (
	// requestAnswered: a request was answered that is no question.
	requestAnswered sign = iota
	questionAnswered
	// othersAnswered: requests were answered since the newest question, which was not. It is the
	// question that fails.
	othersAnswered
)

// heard notes that a request was answered, or a question.
func (p *presence) heard(ctx context.Context, s sign) {
	p.answered.Store(int64(moment.Now()))
	if p.eager.Load() {
		p.conclude(s).log(ctx)
	}
}

// conclude notes what follows from a sign, and returns what to log of it.
func (p *presence) conclude(s sign) *notice {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.reason != nil && s == requestAnswered && !p.unconnected && p.crowd != nil {
		// A load balancer may have answered what failed, and others not. The next question tells.
		p.doubted = true
		return nil
	}
	return p.back(s)
}

// back notes that the server is there, and returns what to log of it.
func (p *presence) back(s sign) (n *notice) {
	if p.reason != nil {
		n = p.bulletin.over("Server is back", p.since, p.waiting())
	}
	p.eager.Store(false)
	now := time.Now()
	outage := s != othersAnswered && p.reason != nil && now.Sub(p.since) >= outageLeast
	p.doubted = false
	p.suspicions, p.failures, p.failure, p.reason, p.unconnected = 0, 0, nil, nil, false
	if s == questionAnswered {
		p.next = now.Add(askAgain)
	}
	if c := p.crowd; c != nil {
		c.outage = outage
		c.spread = min(max(spreadLeast, time.Duration(c.size)*time.Second/spreadRate), spreadMost)
		p.crowd = nil
		close(c.back)
	}
	return n
}

// away reports whether the server was found away, and has not answered since.
func (p *presence) away() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.reason != nil
}

// waiting is how many wait now.
func (p *presence) waiting() int {
	if p.crowd == nil {
		return 0
	}
	return p.crowd.size
}

// unanswered notes that a question has failed. The server asks to be left alone for retryAfter.
func (p *presence) unanswered(ctx context.Context, err error, unconnected bool, retryAfter time.Duration) {
	p.concludeFailure(err, unconnected, retryAfter).log(ctx)
}

func (p *presence) concludeFailure(err error, unconnected bool, retryAfter time.Duration) *notice {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.attemptEnded(time.Now())
	if p.doubted {
		return p.back(othersAnswered)
	}
	p.leave(err, unconnected, retryAfter)
	return p.bulletin.goneFor(p.since, err, p.waiting())
}

// failed notes that an attempt got no connection.
func (p *presence) failed(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.eager.Store(true)
	p.attemptEnded(time.Now())
	p.failure = err
	if p.failures++; p.failures >= 2 {
		p.leave(err, true, 0)
	}
}

// leave notes that the server is away.
func (p *presence) leave(err error, unconnected bool, retryAfter time.Duration) {
	p.eager.Store(true)
	now := time.Now()
	if p.reason == nil {
		p.since = now
	}
	p.reason, p.unconnected = err, unconnected
	p.next = p.newest.Add(attemptEvery + rand.N(attemptJitter))
	p.mayAskAt(now.Add(retryAfter))
	if c := p.crowd; c != nil && (c.reason == nil || now.Sub(c.told) >= tellEvery && c.reason.Error() != err.Error()) {
		c.reason, c.told = err, now
		close(c.left)
		c.left = make(chan struct{})
	}
}

// mayAskAt puts off the next question until a time.
func (p *presence) mayAskAt(at time.Time) {
	if at.After(p.next) {
		p.next = at
	}
}

// mayConnect begins an attempt, or returns why the newest one has failed, if another one has to
// wait.
func (p *presence) mayConnect() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	switch {
	case p.failure != nil && p.untilAttempt(now) > 0:
		return p.failure
	case p.unconnected && now.Before(p.next) && now.Sub(p.granted) > grantLasts:
		return p.reason
	}
	p.attempt(now)
	return nil
}

// untilAttempt is how long to wait before another attempt, so that there are at most two within
// attemptEvery.
func (p *presence) untilAttempt(now time.Time) time.Duration {
	return attemptEvery - now.Sub(p.former)
}

// attemptEnded notes that an attempt has failed. Of two, either may be it.
func (p *presence) attemptEnded(now time.Time) {
	for _, at := range []*time.Time{&p.newest, &p.former} {
		if now.Sub(*at) < attemptEvery {
			*at = now
		}
	}
}

func (p *presence) attempt(now time.Time) {
	p.former, p.newest, p.granted = p.newest, now, time.Time{}
	if p.reason != nil {
		p.next = now.Add(attemptEvery + rand.N(attemptJitter))
	}
}

// wait is how a request waits that has failed.
type wait struct {
	// pause is how long it waits while the server is there.
	pause time.Duration
	// answered tells that what has failed was an answer.
	answered bool
	// ask asks the server. What it learns is told by heard or unanswered.
	ask func(ctx context.Context)
	// note is told why the server is away.
	note func(reason error)
}

// await waits for the end of the pause, or, while the server is away, for its return. It returns
// early when ctx ends.
//
// The result tells that the server was away, so that the pause does not count: what has failed is
// to be tried again as though it had not. Others go on at about that time as well.
func (p *presence) await(ctx context.Context, how wait) (outage bool) {
	began := time.Now()
	c := p.join(how.answered)
	if c == nil {
		return sleep(ctx, how.pause, false)
	}
	defer func() { p.quit(ctx, c).log(ctx) }()
	w := waiter{presence: p, wait: how, crowd: c, paused: time.NewTimer(how.pause)}
	defer w.paused.Stop()
	w.look()
	if !w.untilBack(ctx) {
		return false
	}
	if c.outage {
		return sleep(ctx, rand.N(c.spread), true)
	}
	return sleep(ctx, how.pause-time.Since(began), false)
}

// sleep waits until ctx ends at the latest, and returns result.
func sleep(ctx context.Context, duration time.Duration, result bool) bool {
	timer := time.NewTimer(duration)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
	return result
}

// join joins the crowd, and returns it. It returns nil if there is not enough suspicion.
func (p *presence) join(answered bool) *crowd {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.eager.Store(true)
	now := time.Now()
	quiet := moment.Of(now).Since(moment.Moment(p.answered.Load())) > lately
	if p.suspicions++; p.reason == nil && p.suspicions < 2 && (answered || !quiet) {
		return nil
	}
	if p.crowd == nil {
		p.crowd = &crowd{left: make(chan struct{}), back: make(chan struct{})}
		p.mayAskAt(now.Add(askAfter))
	}
	p.crowd.size++
	return p.crowd
}

// quit leaves the crowd, and returns what to log if all have left it for good.
func (p *presence) quit(ctx context.Context, c *crowd) *notice {
	p.mu.Lock()
	defer p.mu.Unlock()
	if c.size--; ctx.Err() == nil || c != p.crowd || c.size > 0 || !p.bulletin.told {
		return nil
	}
	return p.bulletin.over("Server is not waited for any more", p.since, 0)
}

// waiter is one of a crowd.
type waiter struct {
	*presence
	wait
	crowd *crowd
	// known is the reason that the waiter was told, and left is closed when there is another one.
	known error
	left  chan struct{}
	// paused fires when the pause is over, and while the server is away when the waiter makes its
	// own request.
	paused *time.Timer
	// tries tells that it does so the next time.
	tries bool
}

// untilBack returns true when the server has answered, and false if the waiter is to go on for
// another reason.
func (w *waiter) untilBack(ctx context.Context) bool {
	for {
		select {
		case <-ctx.Done():
			return false
		case <-w.crowd.back:
			return true
		case <-w.left:
			w.look()
		case <-w.paused.C:
			if w.goesOn() {
				return false
			}
		case w.turn <- struct{}{}:
			on, back := w.lead(ctx)
			<-w.turn
			if on {
				return back
			}
		}
	}
}

// look tells why the server is away, if the waiter does not know.
func (w *waiter) look() {
	w.mu.Lock()
	reason := w.crowd.reason
	if reason == nil {
		reason = w.reason
	}
	w.left = w.crowd.left
	w.mu.Unlock()
	if reason != nil && reason != w.known {
		w.known = reason
		w.note(fmt.Errorf("the server is away: %w", reason))
	}
}

// goesOn is called when paused has fired, and reports whether the waiter is to make its request.
func (w *waiter) goesOn() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	now, all := time.Now(), time.Duration(w.crowd.size)*trialEvery
	switch {
	case w.reason == nil:
		return true
	case !w.tries:
		w.tries = true
		w.paused.Reset(all/2 + rand.N(all))
		return false
	case now.Sub(w.newest) < attemptEvery/2 || w.untilAttempt(now) > 0 || now.Sub(w.granted) < attemptEvery:
		w.paused.Reset(attemptEvery/2 + rand.N(attemptEvery))
		return false
	}
	w.granted = now
	return true
}

// lead asks the server until it answers. The caller has the turn. On is false if the waiter is to
// go on waiting, and otherwise back is the result of untilBack.
func (w *waiter) lead(ctx context.Context) (on, back bool) {
	for {
		w.mu.Lock()
		next := time.NewTimer(time.Until(w.next))
		w.mu.Unlock()
		select {
		case <-ctx.Done():
			on = true
		case <-w.crowd.back:
			on, back = true, true
		case <-w.left:
			w.look()
		case <-w.paused.C:
			on = w.goesOn()
		case <-next.C:
			if w.claim() {
				w.ask(ctx)
			}
		}
		next.Stop()
		if on {
			return on, back
		}
	}
}

// claim begins an attempt, unless another one was begun meanwhile, or the server has answered.
func (w *waiter) claim() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := time.Now()
	if w.presence.crowd != w.crowd || now.Before(w.next) {
		return false
	}
	if wait := w.untilAttempt(now); wait > 0 && (w.failure != nil || w.reason != nil) {
		w.next = now.Add(wait)
		return false
	}
	w.attempt(now)
	w.next = now.Add(attemptEvery + rand.N(attemptJitter))
	return true
}
