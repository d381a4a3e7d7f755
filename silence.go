package informer

import "time"

const (
	// stallAfterBookmark is how long a watch may be silent that has sent a
	// bookmark: two and a half of the minutes that lie between two of them.
	stallAfterBookmark = 150 * time.Second
	// stallMargin is how long a server may take to end a watch that is over.
	stallMargin = 30 * time.Second
	// stallInInitialEvents is how long the initial events of a watch-list may pause.
	stallInInitialEvents = 10 * time.Second
	// listPatience is how long a list may be silent. A server gives a request a
	// minute by default.
	listPatience = 75 * time.Second
)

// listPatience is how long a list may be silent.
func (r *Reflector) listPatience() time.Duration {
	if r.StallTimeout > 0 {
		return r.StallTimeout
	}
	return listPatience
}

// watchPatience is how long a watch may be silent that was asked to last for a
// time and that has sent no bookmark yet.
func (r *Reflector) watchPatience(asked time.Duration) time.Duration {
	if r.StallTimeout > 0 {
		return r.StallTimeout
	}
	return asked + stallMargin
}

// bookmarkPatience is how long a watch may be silent that has sent a bookmark.
func (r *Reflector) bookmarkPatience() time.Duration {
	if r.StallTimeout > 0 {
		return r.StallTimeout
	}
	return stallAfterBookmark
}

// silence notices that the channel of a watch has gone quiet. Its timer is not
// set again by each event; when it fires, over looks how long ago the last one
// was.
type silence struct {
	timer *time.Timer
	limit time.Duration
	since time.Time
}

func newSilence(limit time.Duration) *silence {
	return &silence{timer: time.NewTimer(limit), limit: limit, since: time.Now()}
}

// heard notes that something came.
func (s *silence) heard() { s.since = time.Now() }

// expect sets how long it may last.
func (s *silence) expect(limit time.Duration) {
	if limit != s.limit {
		s.limit = limit
		s.timer.Reset(limit)
	}
}

// over is asked when the timer fires: how long has it been quiet, and is that
// too long?
func (s *silence) over(now time.Time) (time.Duration, bool) {
	quiet := now.Sub(s.since)
	if quiet >= s.limit {
		return quiet, true
	}
	s.timer.Reset(s.limit - quiet)
	return quiet, false
}

func (s *silence) stop() { s.timer.Stop() }
