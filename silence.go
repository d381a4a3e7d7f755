package informer

import "time"

const (
	// stallAfterBookmark is how long a watch may be silent that has sent a
	// bookmark: two and a half of the minutes that lie between two of them.
	stallAfterBookmark = 150 * time.Second
	// stallMargin is how long a server may take to end a watch that is over.
	stallMargin = 30 * time.Second
)

// silence notices that a watch has gone quiet. Its timer is not set again by
// each event; when it fires, over looks how long ago the last one was.
type silence struct {
	timer *time.Timer
	// limit is how long it may last, fixed where the user has set it.
	limit time.Duration
	fixed bool
	since time.Time
}

func newSilence(fixed, watchTimeout time.Duration) *silence {
	limit := fixed
	if limit <= 0 {
		limit = watchTimeout + stallMargin
	}
	return &silence{timer: time.NewTimer(limit), limit: limit, fixed: fixed > 0, since: time.Now()}
}

// heard notes that something came.
func (s *silence) heard(bookmark bool) {
	s.since = time.Now()
	if bookmark && !s.fixed && s.limit != stallAfterBookmark {
		s.limit = stallAfterBookmark
		s.timer.Reset(s.limit)
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
