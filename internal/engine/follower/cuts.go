package follower

import (
	"time"

	"github.com/rvinformer/informer/internal/leaf/moment"
)

const (
	// shortestCut and longestCut are how long a watch lasts that something on the way may have cut.
	// One that lasts longer has had a bookmark: servers send one about each minute.
	shortestCut, longestCut = time.Second, 90 * time.Second
	// mostSlack is how far two cuts that have the same reason may differ, and how much sooner
	// shorter watches end. It is less for watches of less than four times as long.
	mostSlack = 5 * time.Second
	// leastAsked is the shortest time to ask a watch for: a kube-apiserver sends no bookmark in a
	// shorter one.
	leastAsked = 3 * time.Second
	// shortenedFor is how long shorter watches are asked for.
	shortenedFor = time.Hour
)

// cuts notices that something on the way ends watches before a bookmark comes: a proxy that bounds
// requests, or silence, by less than a minute, or a timeout of the client. Then nothing proves how
// new the state is. A kube-apiserver also sends a bookmark two seconds before the end that a watch
// was asked for (nextBookmarkTime in its cache_watcher.go), so that watches which end before they
// are cut bring one.
type cuts struct {
	// last is how long the newest watch lasted, zero unless it was cut.
	last time.Duration
	// after is how long watches last until they are cut, zero if they are not. It holds until a
	// moment.
	after time.Duration
	until moment.Moment
}

// slack is how far from a cut another one may be that has the same reason.
func slack(lasted time.Duration) time.Duration { return min(mostSlack, lasted/4) }

// note notes how long a watch has lasted, and whether it ended before its time without having
// proven how new the state is. It reports whether watches are cut, and were not before.
func (c *cuts) note(lasted time.Duration, unproven bool, now moment.Moment) (begins bool) {
	before := c.last
	if c.last = 0; !unproven || lasted < shortestCut || lasted > longestCut {
		return false
	}
	c.last = lasted
	shorter := min(lasted, before)
	if (lasted - before).Abs() > slack(shorter) {
		return false
	}
	begins = c.after == 0
	c.after, c.until = shorter, now+moment.Moment(shortenedFor)
	return begins
}

// asked is how long watches are asked to last because they would be cut, zero for no such time.
func (c *cuts) asked() time.Duration {
	if asked := c.after - slack(c.after); asked >= leastAsked {
		return asked
	}
	return 0
}

// timeout is how long the next watch is to last.
func (c *cuts) timeout(usual time.Duration, now moment.Moment) time.Duration {
	if c.after != 0 && now >= c.until {
		c.after, c.last = 0, c.after // one more cut is enough to shorten them again
	}
	if asked := c.asked(); asked != 0 {
		return min(usual, asked)
	}
	return usual
}
