package server

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rvinformer/informer/internal/leaf/moment"
	"github.com/rvinformer/informer/internal/leaf/redact"
)

// presence is whether a server is there. The requests that find it away wait for it together, and
// one of them asks it: the one that has the turn. If its context ends, another one takes the turn.
//
// Its standing decides. A presence has no goroutine: its waiters wait, and ask.
type presence struct {
	// turn has room for the waiter that asks.
	turn chan struct{}
	// answered is when the server has answered last, a moment.Moment.
	answered atomic.Int64
	// eager is false while the standing is quiet.
	eager atomic.Bool

	mu       sync.Mutex
	standing standing
	// news is closed, and nil again, when there is news. It is nil if no waiter listens.
	news chan struct{}
	// bulletin logs outages.
	bulletin bulletin
}

func newPresence(server string) *presence {
	return &presence{
		turn:     make(chan struct{}, 1),
		standing: standing{condition: there{}},
		bulletin: bulletin{server: redact.Text(server)},
	}
}

// step takes the standing to what it is after an event, and returns the result of that.
func step[T any](p *presence, event func(standing, time.Time) (standing, T)) T {
	p.mu.Lock()
	defer p.mu.Unlock()
	is, result := event(p.standing, time.Now())
	p.become(is)
	return result
}

// update is step for an event that has no result, and may have to be logged.
func (p *presence) update(ctx context.Context, event func(standing, time.Time) standing) {
	p.change(ctx, event).log(ctx)
}

// change is update without the log. Ctx is that of the request whose event it is.
func (p *presence) change(ctx context.Context, event func(standing, time.Time) standing) notice {
	p.mu.Lock()
	defer p.mu.Unlock() // the errors of callers may panic
	was := p.standing
	p.become(event(was, time.Now()))
	return p.bulletin.change(ctx, was, p.standing)
}

// become replaces the standing, and wakes the waiters if there is news.
func (p *presence) become(is standing) {
	if p.news != nil && is.news != p.standing.news {
		close(p.news)
		p.news = nil
	}
	p.standing = is
	p.eager.Store(!is.isQuiet())
}

// heard notes that a request was answered, or a question.
func (p *presence) heard(ctx context.Context, question bool) {
	p.answered.Store(int64(moment.Now()))
	if p.eager.Load() {
		p.update(ctx, func(s standing, now time.Time) standing { return s.answered(now, question) })
	}
}

// unanswered notes that a question has failed. The server asks to be left alone for retryAfter.
func (p *presence) unanswered(ctx context.Context, reason error, how symptom, retryAfter time.Duration) {
	p.update(ctx, func(s standing, now time.Time) standing { return s.unanswered(now, reason, how, retryAfter) })
}

// failed notes that an attempt got no connection. The next question logs that.
func (p *presence) failed(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.become(p.standing.failed(time.Now(), err))
}

// mayConnect begins an attempt, or returns why the newest one has failed, if another one has to
// wait.
func (p *presence) mayConnect() error { return step(p, standing.connecting) }

// away reports whether the server was found away, and has not answered since.
func (p *presence) away() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	_, is := p.standing.condition.(away)
	return is
}
