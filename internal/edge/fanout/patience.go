package fanout

import "time"

// patience is that of a trunk with readers that are behind and hold up others. It ends when others
// have been held up for Options.Patience, and for half of the time since that began: a reader that
// is a little slower than the others slows them down, and one that is much slower lapses. The zero
// value is that of a trunk without such readers.
type patience struct {
	// began is when a reader began to be held up, ended is when that was so last, and held is for
	// how long it was so between the two.
	began, ended time.Time
	held         time.Duration
}

// forgotten is the time without a reader that is held up after which patience is full again.
const forgotten = time.Second

// left is for how long, from now on, others may be held up.
func (p *patience) left(most time.Duration, now time.Time) time.Duration {
	if now.Sub(p.ended) > forgotten {
		*p = patience{began: now, ended: now}
	}
	return max(most-p.held, now.Sub(p.began)-2*p.held)
}

// spend notes that others were held up.
func (p *patience) spend(from, to time.Time) {
	p.held += to.Sub(from)
	p.ended = to
}
