package server

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/rvinformer/informer/internal/leaf/moment"
)

// attemptJitter is added to the time of a question at random, at most.
const attemptJitter = 200 * time.Millisecond

// lately is for how long an answer shows that the server is there.
const lately = time.Second

// waiter is a request that has failed, and waits.
type waiter struct {
	*presence
	// pause is how long it waits while the server is there.
	pause time.Duration
	// answered tells that what has failed was an answer.
	answered bool
	// ask asks the server. What it learns is told by heard or unanswered.
	ask func(ctx context.Context)
	// note is told why the server is away.
	note func(reason error)
	// returns is that of the standing when the waiter has joined, and noted is news when note was
	// told.
	returns, noted int
}

// await waits for the end of the pause, or, while the server is away, for its return. It returns
// early when ctx ends.
//
// The result tells that the server was away, so that the pause does not count: what has failed is
// to be tried again as though it had not. Others go on at about that time as well.
func (w *waiter) await(ctx context.Context) (outage bool) {
	began := time.Now()
	if step(w.presence, w.join) {
		if spread := w.untilBack(ctx); spread > 0 {
			return sleep(ctx, rand.N(spread), true)
		}
	}
	return sleep(ctx, w.pause-time.Since(began), false)
}

func (w *waiter) join(s standing, now time.Time) (next standing, waits bool) {
	w.returns = s.returns
	silent := moment.Of(now).Since(moment.Moment(w.presence.answered.Load())) > lately
	return s.joining(now, w.answered, silent)
}

// asking begins a question, unless the server is back.
func (w *waiter) asking(s standing, now time.Time) (standing, error) {
	if s.returns != w.returns {
		return s, errEarly
	}
	return s.asking(now)
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

// untilBack waits for the server, and asks it while the waiter has the turn. The result is within
// which time all go on after an outage, zero if there was none or if it is not over.
func (w *waiter) untilBack(ctx context.Context) (spread time.Duration) {
	turn := w.turn // nil while the waiter has it
	defer func() {
		if turn == nil {
			<-w.turn
		}
		w.update(ctx, standing.leaving)
	}()
	paused, tried := time.NewTimer(w.pause), false
	defer paused.Stop()
	for {
		s, news := w.look()
		if s.returns != w.returns {
			return s.spread
		}
		var next <-chan time.Time
		if turn == nil {
			next = time.After(time.Until(s.next) + rand.N(attemptJitter))
		}
		select {
		case <-ctx.Done():
			return 0
		case <-news:
		case turn <- struct{}{}:
			turn = nil
		case <-next:
			if step(w.presence, w.asking) == nil {
				w.ask(ctx)
			}
		case <-paused.C:
			again := step(w.presence, func(s standing, now time.Time) (standing, time.Duration) { return s.trying(now, tried) })
			if again == 0 {
				return 0
			}
			tried = true
			paused.Reset(again/2 + rand.N(again))
		}
	}
}

// look returns the standing, and a channel that is closed when there is other news. It tells why
// the server is away, if that is news.
func (w *waiter) look() (standing, <-chan struct{}) {
	w.mu.Lock()
	if w.news == nil {
		w.news = make(chan struct{})
	}
	s, news := w.standing, w.news
	w.mu.Unlock()
	if a, isAway := s.condition.(away); isAway && s.returns == w.returns && s.news != w.noted {
		w.noted = s.news
		w.note(fmt.Errorf("the server is away: %w", a.told))
	}
	return s, news
}
