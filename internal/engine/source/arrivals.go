package source

import (
	"time"

	"github.com/rvinformer/informer/internal/leaf/moment"
)

const (
	// reallyWaited is how long a read has to wait to show that nothing had been there before: what
	// it returns has just arrived. Shorter ones may have waited for a processor only.
	reallyWaited = time.Millisecond
	// caughtUp is how long a read has to wait to show that the server has sent all that it had.
	caughtUp = time.Second
	// awayFor is how long the reader may be away. What has arrived meanwhile waits in buffers, of
	// the connection and of the server.
	awayFor = time.Second
	// settled is how long after a pause of the process a bookmark may still be one from before its
	// end.
	settled = 10 * time.Second
)

// arrivals tells what the reads of a watch prove: that everything that the server had sent at a
// moment has been read.
//
// The moment of a read proves nothing by itself. What it returns may have waited in the buffers of
// a connection, because the reader was held up. Or the watch began with an old version, and what it
// brings happened long ago. So only a read that had to wait tells when its bytes arrived, and only
// in a watch that has caught up. It proves its moment as soon as all the bytes have been taken that
// had arrived with it.
//
// A bookmark of a watch that has not caught up proves the moment at which the watch was asked for:
// the server has made the bookmark since.
//
// A read that was waiting while the process stood still proves nothing: its bytes may have come at
// any time in between, and others behind them.
type arrivals struct {
	// opened is when the watch was asked for.
	opened moment.Moment
	// arrived is when the newest read returned that had to wait, and since is how many bytes were
	// read after it. Arrived is zero when it has been told.
	arrived moment.Moment
	since   int
	// held tells that more may have come with what the newest read has returned: it has filled its
	// memory, or compressed bytes are left.
	held bool
	// resumed is when a read returned during which the process stood still, zero for never.
	resumed moment.Moment
	// caughtUp tells that nothing but what happens now is to come.
	caughtUp bool
}

// returned notes a read of n bytes, which began and returned at these moments. Last is when the one
// before it returned, more tells that more may have come with them, and ran that the process has run
// since the beginning of the read.
func (a *arrivals) returned(last, began, at moment.Moment, n int, more, ran bool) {
	if !a.held { // or they may have come before
		a.since += n
	}
	a.held = more
	waited := at.Since(began)
	switch {
	case !ran:
		a.caughtUp, a.arrived, a.resumed = false, 0, at
		return
	case waited >= caughtUp:
		a.caughtUp = true
	case began.Since(last) >= awayFor:
		a.caughtUp = false
	}
	if waited >= reallyWaited {
		a.arrived, a.since = at, 0
	}
}

// ran reports whether the process has run during a read that has just returned.
func ran(began, returned moment.Moment) bool {
	return returned.Since(began) < reallyWaited || moment.Ran(began)
}

// behind notes that the server has more to send than what happens now.
func (a *arrivals) behind() { a.caughtUp, a.arrived = false, 0 }

// proven returns the moment for which an event proves that everything that the server had then has
// been read, zero if it proves none. Unread is how many bytes have been read behind the event.
func (a *arrivals) proven(bookmark bool, unread int) moment.Moment {
	fresh := a.arrived != 0 && !a.held && unread <= a.since
	arrived := a.arrived
	if fresh {
		a.arrived = 0
	}
	switch {
	case fresh && a.caughtUp:
		return arrived
	case bookmark:
		a.caughtUp = a.caughtUp || fresh && (a.resumed == 0 || arrived.Since(a.resumed) >= settled)
		return a.opened
	}
	return 0
}
