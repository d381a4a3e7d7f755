package follower

import (
	"time"

	"github.com/rvinformer/informer/internal/moment"
)

const (
	// shortestCut and longestCut are how long a watch lasts that something on the way may have cut
	// because nothing came. One that lasts longer has had a bookmark: servers send one about each
	// minute.
	shortestCut, longestCut = 15 * time.Second, 90 * time.Second
	// cutSlack is how far two cuts that have the same reason may differ, and how much sooner
	// shorter watches end.
	cutSlack = 5 * time.Second
	// shortenedFor is how long shorter watches are asked for.
	shortenedFor = time.Hour
)

// cuts notices that something on the way, such as a proxy, ends watches in which nothing comes for
// less than a minute. Then no bookmark ever comes, and nothing proves how new the state is. A
// kube-apiserver also sends a bookmark two seconds before the end that a watch was asked for
// (nextBookmarkTime in its cache_watcher.go), so that watches which end before they are cut bring
// one.
type cuts struct {
	// last is how long the newest watch lasted, zero unless it was cut.
	last time.Duration
	// limit is how long watches are asked to last until a moment; zero: as long as ever.
	limit time.Duration
	until moment.Moment
}

// note notes how long a watch has lasted, and whether it ended before its time without having
// brought anything. It reports whether shorter watches are asked for from now on, and were not
// before.
func (c *cuts) note(lasted time.Duration, silent bool, now moment.Moment) (shortens bool) {
	before := c.last
	if c.last = 0; !silent || lasted < shortestCut || lasted > longestCut {
		return false
	}
	c.last = lasted
	if before == 0 || (lasted-before).Abs() > cutSlack {
		return false
	}
	shortens = c.limit == 0
	c.limit, c.until = min(lasted, before)-cutSlack, now+moment.Moment(shortenedFor)
	return shortens
}

// timeout is how long the next watch is to last.
func (c *cuts) timeout(usual time.Duration, now moment.Moment) time.Duration {
	if c.limit != 0 && now >= c.until {
		c.limit, c.last = 0, c.limit+cutSlack // one more cut is enough to shorten them again
	}
	if c.limit == 0 {
		return usual
	}
	return min(usual, c.limit)
}
