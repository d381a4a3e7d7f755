package listwatch

import (
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

// Pace says how long to wait after each step. Its backoffs grow with each wait: one for requests
// that fail, and one for lists that follow each other.
type Pace struct {
	first, retry, list wait.Backoff
	// before is retry before the newest RetryPause.
	before wait.Backoff
}

// turnJitter is how much longer a TurnPause may be, as a part of it.
const turnJitter = 0.5

// NewPace returns a Pace whose backoffs begin with first.
func NewPace(first wait.Backoff) *Pace {
	return &Pace{first: first, retry: first, list: first}
}

// After is how long to wait after s.
func (p *Pace) After(s Step) time.Duration {
	switch s.Progress {
	case RequestProgress:
		p.retry = p.first
	case WatchProgress:
		p.retry, p.list = p.first, p.first
	}
	switch s.Pause {
	case RetryPause:
		p.before = p.retry
		return max(p.retry.Step(), s.RetryAfter)
	case AskedPause:
		return s.RetryAfter
	case TurnPause: // the watches of many informers end together
		return wait.Jitter(s.RetryAfter, turnJitter)
	case ListPause:
		return max(p.list.Step(), s.RetryAfter)
	}
	return 0
}

// Forgive takes back that the backoff of requests has grown with the newest RetryPause, because the
// failure was not the request's own.
func (p *Pace) Forgive() { p.retry = p.before }
