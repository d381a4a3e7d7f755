package shards

import (
	"context"
	"errors"
	"sync"
	"time"
)

// errTermOver is the cause with which contexts end at the renewal deadline.
var errTermOver = errors.New("the member lease was not renewed in time")

// terms is the present term of a replica, if there is one.
//
// Invariant: the context of a term ends no later than deadline after a successful renewal was sent.
// Other replicas count LeaseDuration, which is longer, from an observation that is later.
// client-go's own deadline counts from the answer, which may be late.
type terms struct {
	deadline time.Duration
	// base has the values of the contexts of terms. It is set before the first renewal.
	base    context.Context
	changed func() // a term has begun or ended; called with mu held

	mu      sync.Mutex
	current *term
	moved   time.Time // when a term has begun or ended last
}

// term is the time for which a replica may work.
type term struct {
	ctx   context.Context
	end   context.CancelCauseFunc
	timer *time.Timer
	since time.Time
	until time.Time // guarded by terms.mu
}

// renewed extends the term, or begins one. The renewal was sent at a time, and has succeeded.
func (t *terms) renewed(sent time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now, until := time.Now(), sent.Add(t.deadline)
	if t.current != nil && !now.Before(t.current.until) {
		// The process was paused, and the timer comes later.
		t.current.end(errTermOver)
		t.current, t.moved = nil, now
	}
	switch c := t.current; {
	case !now.Before(until): // the answer came too late
	case c == nil:
		c = &term{since: now, until: until}
		c.ctx, c.end = context.WithCancelCause(t.base)
		c.timer = time.AfterFunc(until.Sub(now), func() { t.expire(c) })
		t.current, t.moved = c, now
		t.changed()
	case until.After(c.until):
		c.until = until
		c.timer.Reset(until.Sub(now))
	}
}

// expire ends a term unless it was extended while its timer fired.
func (t *terms) expire(c *term) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if left := time.Until(c.until); left > 0 {
		c.timer.Reset(left)
		return
	}
	c.end(errTermOver)
	if t.current == c {
		t.current, t.moved = nil, time.Now()
		t.changed()
	}
}

// get returns the present term; nil if there is none.
func (t *terms) get() *term {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.current != nil && !time.Now().Before(t.current.until) {
		return nil
	}
	return t.current
}

// until is when the present term ends, zero if there is none, and when the last one has begun or
// ended.
func (t *terms) until() (until, moved time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.current == nil {
		return time.Time{}, t.moved
	}
	return t.current.until, t.moved
}

// close ends the present term.
func (t *terms) close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.current != nil {
		t.current.timer.Stop()
		t.current.end(context.Canceled)
		t.current = nil
	}
}
