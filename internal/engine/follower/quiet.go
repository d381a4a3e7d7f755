package follower

import (
	"math/rand/v2"
	"time"

	"github.com/rvinformer/informer/internal/engine/listwatch"
)

// endQuietWithin is within how long quiet watches end. Servers send bookmarks to many watches at a
// time.
const endQuietWithin = 20 * time.Second

// quiet ends a watch that began as a watch-list and has become quiet, since its connection keeps
// memory of the initial events. Another watch goes on from the version reached, as after a watch
// that the server has ended. The zero value waits for a bookmark.
type quiet struct {
	// told is how many events the watch had told with its newest bookmark.
	told int
	// cancel prevents the end; nil if none is ahead.
	cancel func()
	// ended tells that the end has come. It is written before stop returns.
	ended bool
	// unread tells that the watch was given up on this side.
	unread bool
}

// endWhenQuiet notes an event. The watch is to end some time after a bookmark with no other event
// before it, if no event comes until then.
func (w *watching) endWhenQuiet(bookmark bool) {
	q := &w.quiet
	before := w.events - 1 - q.told // other events since the bookmark before
	if bookmark {
		q.told = w.events
	}
	switch {
	case !bookmark:
		q.stop()
	case q.cancel == nil && before == 0 && w.feed.KeepsInitial() && w.at.HasPlace() && !w.needsList():
		q.cancel = later(listwatch.Steady+rand.N(endQuietWithin), w.endQuiet)
	}
}

// endQuiet ends the watch. It is called by a timer that has ended when the watch is closed.
func (w *watching) endQuiet() {
	w.quiet.ended = true
	w.relist.interrupt()
}

// stop prevents the end that is ahead, unless it has come.
func (q *quiet) stop() {
	if q.cancel != nil {
		q.cancel()
		q.cancel = nil
	}
}

// ownEnd reports whether the watch, which is closed, was ended because it was quiet. The server had
// no part in that.
func (w *watching) ownEnd() bool {
	return w.quiet.ended && w.quiet.unread
}
