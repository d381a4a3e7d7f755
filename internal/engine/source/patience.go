package source

import (
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// Patience is how long an answer may be silent. If it is set, it holds for every answer; zero is
// the default of each.
type Patience time.Duration

const (
	// stallAfterBookmark is how long a watch may be silent that has sent a
	// bookmark: two and a half of the minutes that lie between two of them.
	stallAfterBookmark = 150 * time.Second
	// stallMargin is how long a server may take to end a watch that is over.
	stallMargin = 30 * time.Second
	// listPatience is how long a list may be silent. A server gives a request a
	// minute by default.
	listPatience = 75 * time.Second
	// InitialPatience is how long the initial events of a watch-list may pause.
	InitialPatience = 10 * time.Second
)

func (p Patience) or(standard time.Duration) time.Duration {
	if p > 0 {
		return time.Duration(p)
	}
	return standard
}

// List is how long a list may be silent.
func (p Patience) List() time.Duration { return p.or(listPatience) }

// Watch is how long a watch may be silent that was asked to last for a time and that has sent no
// bookmark yet.
func (p Patience) Watch(asked time.Duration) time.Duration { return p.or(asked + stallMargin) }

// Bookmarked is how long a watch may be silent that has sent a bookmark.
func (p Patience) Bookmarked() time.Duration { return p.or(stallAfterBookmark) }

// opening is how long a watch may be silent that is opened with opts.
func (p Patience) opening(opts metav1.ListOptions) time.Duration {
	if startsWithObjects(opts) {
		return p.List()
	}
	return p.Watch(time.Duration(ptr.Deref(opts.TimeoutSeconds, 0)) * time.Second)
}

// startsWithObjects reports whether opts ask for a watch-list.
func startsWithObjects(opts metav1.ListOptions) bool { return ptr.Deref(opts.SendInitialEvents, false) }

// silence notices that the channel of a watch has gone quiet. Its timer is not
// set again by each event; when it fires, over looks how long ago the last one
// was.
type silence struct {
	timer *time.Timer
	limit time.Duration
	since time.Time
	// interrupted says that whoever waits for the timer is to end.
	interrupted atomic.Bool
}

func newSilence(limit time.Duration) *silence {
	return &silence{timer: time.NewTimer(limit), limit: limit, since: time.Now()}
}

// interrupt has the timer fire.
func (s *silence) interrupt() {
	s.interrupted.Store(true)
	s.timer.Reset(0)
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

// over is called when the timer fires, at now. It returns how long it has been quiet, and whether
// that is too long.
func (s *silence) over(now time.Time) (time.Duration, bool) {
	quiet := now.Sub(s.since)
	if quiet >= s.limit {
		s.timer.Reset(s.limit)
		return quiet, true
	}
	s.timer.Reset(s.limit - quiet)
	return quiet, false
}

func (s *silence) stop() { s.timer.Stop() }
