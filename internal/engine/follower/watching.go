package follower

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"github.com/rvinformer/informer/api"
	"github.com/rvinformer/informer/internal/engine/listwatch"
	"github.com/rvinformer/informer/internal/engine/object"
	"github.com/rvinformer/informer/internal/engine/sink"
	"github.com/rvinformer/informer/internal/engine/source"
	"github.com/rvinformer/informer/internal/leaf/failure"
	"github.com/rvinformer/informer/internal/leaf/moment"
	"github.com/rvinformer/informer/internal/leaf/wire"
)

// dueMargin is how much before its time a watch may end and still have lasted for it: it
// is asked for whole seconds.
const dueMargin = 2 * time.Second

// watching is a watch under way.
type watching struct {
	*Follower
	// at is where it is. The state of the Follower is where it began.
	at listwatch.Watching
	opening
	// unconfirm ends what confirms the watch after a while; nil if there is nothing.
	unconfirm func()
	quiet     quiet
	began     time.Time
	events    int
	// moved tells that an event could be read, and proven that one has proven how new the state is.
	moved, proven bool
	// replayed tells that the watch has told what it would not if it went on from a version, and changed
	// that it has begun to tell what changes.
	replayed, changed bool
	own               ownStore
	// outcome is what ended the watch; nil until then.
	outcome *listwatch.Outcome
}

// changes are for watches that have one to handle, because many watches wait without.
var changes = sync.Pool{New: func() any { return new(source.Change) }}

// opening is a watch that was opened, and is to be followed.
type opening struct {
	feed source.Feed
	// ctx is the context of the feed.
	ctx context.Context
	// due is when the watch is to end.
	due moment.Moment
	// shown tells that the watch has begun with the initial events of a watch-list.
	shown bool
}

// isEarly reports whether the watch is to go on for a while, if nothing ends it.
func (o *opening) isEarly() bool { return moment.Now().Since(o.due) < -dueMargin }

// newWatching is for the watch of the state; nil where that lists.
func (f *Follower) newWatching() *watching {
	at, ok := f.state.(listwatch.Watching)
	if !ok {
		return nil
	}
	f.Report.Enter(api.PhaseWatching)
	if !at.Shared && f.Memory.VersionsAreShared() { // else the state would take memory of its own
		at.Shared = true
		f.state = at
	}
	return &watching{Follower: f, at: at}
}

// follow follows the changes since the state, and moves it. It notes what ended
// the watch, and returns the error to report.
func (w *watching) follow(ctx context.Context) error {
	defer w.close()
	over, err := w.open(ctx)
	for !over {
		w.resync.lend()
		w.feed.Wait()
		over, err = w.receive(ctx)
	}
	return err
}

// receive handles the next change. It is not to be on the stack of follow while that waits.
//
//go:noinline
func (w *watching) receive(ctx context.Context) (over bool, err error) {
	c := changes.Get().(*source.Change)
	defer func() {
		*c = source.Change{}
		changes.Put(c)
	}()
	err = w.feed.Next(w.ctx, c)
	return w.handle(ctx, c, err)
}

// conclude decides what follows the watch, which has ended with err, and returns err.
func (w *watching) conclude(err error) error {
	w.at.Lost = w.needsList()
	w.at.Distrusted = w.relist.take()
	w.outcome.Doubtful, w.outcome.Moved = !w.ownEnd() && w.doubtful(err), w.moved
	w.outcome.RetryAfter = listwatch.RetryAfter(err)
	if !w.outcome.Refused {
		w.outcome.Lasted = time.Since(w.began)
	}
	w.outcome.Forgotten = w.events == 0 && err != nil && listwatch.Classify(err) == listwatch.Expired
	w.noteCut()
	w.noteResume()
	w.noteBookmarks()
	w.next = w.Policy.Next(w.at, *w.outcome)
	w.why = w.whyNext()
	if _, goesOn := w.next.State.(listwatch.Watching); goesOn && w.outcome.Kind == listwatch.Expired {
		return nil // the version before was asked for to be careful
	}
	if w.next.Polls {
		return failure.NotWatchable(err)
	}
	return err
}

// noteCut notes whether something on the way may have ended the watch.
func (w *watching) noteCut() {
	unproven := w.outcome.Kind == listwatch.WatchEnded && w.isEarly() && !w.proven && !w.ownEnd() && !w.at.Lost && !w.at.Distrusted
	if w.cuts.note(w.outcome.Lasted, unproven, moment.Now()) {
		w.Report.Logger().Info("Watches end on the way, before a bookmark comes", "informer", w.Name, "after", w.outcome.Lasted.Round(time.Second).String())
	}
}

// doubtful reports whether the server may have been restored since the watch, which has
// ended with err, told its last: if something went wrong, and also if it showed nothing,
// as one from a version does that the server does not have any more, or ended before it
// was due, as at a server that stops.
func (w *watching) doubtful(err error) bool {
	return err != nil && listwatch.Down(err) || !w.moved || w.isEarly()
}

// open opens the watch.
func (w *watching) open(ctx context.Context) (over bool, err error) {
	w.began = time.Now()
	if w.opening, err = w.openWatch(ctx, w.at); err != nil {
		kind := listwatch.ClassifyWatch(err)
		if kind == listwatch.Expired && w.at.Unsure {
			w.reportReplacement(ctx)
		}
		return w.end(listwatch.Outcome{Kind: kind, Refused: true, At: time.Now()}, err)
	}
	patience := confirmAfter
	if address := w.Server.Address(); address != w.address { // it may be that of another cluster
		w.at.Unsure, w.address = true, address
	}
	if w.at.Unsure {
		has, err := w.verify(ctx)
		switch has {
		case hasNot:
			w.Report.CountRestore()
			return w.end(listwatch.Outcome{Kind: listwatch.TooLarge}, err)
		case hasOther:
			w.Report.CountRestore()
			w.Relist()
			return w.end(listwatch.Outcome{Kind: listwatch.WatchEnded}, err)
		case hasVersion:
			patience = confirmSaid
		}
	}
	if w.at.Silent {
		w.at.Silent = false
		if over, err := w.askOwn(ctx); over {
			return true, err
		}
	}
	w.Cluster.Reached(w.address)
	if w.relist.begin(w.feed) {
		return w.end(listwatch.Outcome{Kind: listwatch.WatchEnded}, nil)
	}
	w.Report.WatchOpened()
	w.Report.Handler(nil)
	w.confirmLater(patience)
	return false, nil
}

func (w *watching) close() {
	if w.unconfirm != nil {
		w.unconfirm()
	}
	w.quiet.stop()
	w.relist.end()
	w.closeFeed(&w.opening)
}

// end notes what ended the watch.
func (w *watching) end(outcome listwatch.Outcome, err error) (over bool, _ error) {
	w.outcome = &outcome
	return true, err
}

// handle handles the change c, or err, which came instead.
func (w *watching) handle(ctx context.Context, c *source.Change, err error) (over bool, _ error) {
	resyncing, failed := w.resync.take()
	switch {
	case ctx.Err() != nil:
		return w.end(listwatch.Outcome{Kind: listwatch.WatchEnded}, nil)
	case failed != nil:
		return w.end(listwatch.Outcome{Kind: listwatch.Failed}, failed)
	case resyncing && failure.IsStall(err): // a slow store is not the server's silence
		return false, nil
	case err != nil:
		return w.end(w.ended(err))
	}
	w.take(ctx, c)
	if ctx.Err() != nil {
		return w.end(listwatch.Outcome{Kind: listwatch.WatchEnded}, ctx.Err())
	}
	return w.noteOwn(ctx, c)
}

// ended returns what the end of a watch means, and what to report.
func (w *watching) ended(err error) (listwatch.Outcome, error) {
	outcome := listwatch.Outcome{Kind: listwatch.WatchEnded}
	if errors.Is(err, source.ErrUnread) {
		w.quiet.unread = true
		return outcome, nil
	}
	if errors.Is(err, source.ErrNotResumed) {
		return outcome, nil
	}
	if err == io.EOF {
		err = nil
	} else {
		outcome = source.ClassifyEnd(err, time.Now())
	}
	if outcome.Kind != listwatch.WatchEnded || w.moved || w.shown || time.Since(w.began) >= time.Second {
		return outcome, err
	}
	short := error(&cache.VeryShortWatchError{Name: w.Name})
	if err != nil {
		short = fmt.Errorf("%w: %w", short, err)
	}
	return listwatch.Outcome{Kind: listwatch.WatchTooShort, At: time.Now()}, short
}

// take hands a change on and moves the state.
func (w *watching) take(ctx context.Context, c *source.Change) {
	w.resuming.confirm()
	c.Item.Place = object.Place{Watch: true, Index: w.events}
	w.events++
	w.Report.CountEvent(c.Event)
	w.endWhenQuiet(c.Event == watch.Bookmark)
	w.hear(c)
	switch {
	case w.isToldAgain(c):
		w.Report.Stale()
	case c.Outside:
		w.advance(strings.Clone(c.Item.Version.ResourceVersion), c)
	case c.Unreadable != nil:
		w.lose(c.Unreadable)
		w.Report.Skip(c.Item.Unreadable(c.Unreadable))
	case c.Event == watch.Bookmark:
		w.changed = true
		w.feed.Expect(w.Source.Patience.Bookmarked())
		w.advance(c.Bookmark, c)
	default:
		resourceVersion := strings.Clone(c.Item.Version.ResourceVersion)
		other, ended := w.doubles.takes(c)
		if other {
			w.advance(resourceVersion, c)
			return
		}
		w.at.Lost = w.at.Lost || ended
		verdict, _ := w.put(ctx, c)
		if !verdict.IsStale() && ctx.Err() == nil { // what was not put must not move the resource version on
			w.advance(resourceVersion, c)
		}
		w.noteReplay(c, verdict)
	}
}

// lose notes that the change is lost, if the reader could not read it: it may have been a deletion.
// A list will tell. A watch without versions tells nothing, so the list follows at once.
func (w *watching) lose(unreadable error) {
	var lost *wire.ItemError
	switch {
	case errors.Is(unreadable, source.ErrUnversioned):
		w.at.Lost = true
		w.Relist()
	case errors.As(unreadable, &lost):
		w.at.Lost = true
	}
}

// needsList reports whether something is lost that only a list can tell.
func (w *watching) needsList() bool { return w.at.Lost || w.Report.Gaps.Missed() }

// advance moves the state on to the resource version of an event, if that is a place to go on from.
func (w *watching) advance(resourceVersion string, c *source.Change) {
	if !w.repeats(resourceVersion, c) {
		w.moved, w.at.Strikes = true, 0
	}
	at, moved := w.at.Moved(resourceVersion, c.Event == watch.Bookmark)
	if !moved {
		return // what the watch told before stays told, and nothing more is proven
	}
	w.at = at
	w.told.note(c)
	if w.at.Shared {
		w.Memory.ShareVersions()
	}
	w.Report.Reach(resourceVersion)
	w.miss(c)
	progress := sink.Progress{Reached: w.at.Reached(), Bookmark: c.Event == watch.Bookmark, Current: w.current(c)}
	if err := w.Sink.Observed(progress); err != nil {
		w.Report.Fail(err)
	}
}

// repeats reports whether the change may have been told before the watch, which began from an older
// version because more events were expected.
func (w *watching) repeats(resourceVersion string, c *source.Change) bool {
	began := w.state.(listwatch.Watching).Reached()
	return c.Event == watch.Deleted && began.IsExpected() && resourceVersion == began.ResourceVersion
}

// isToldAgain reports whether the change is the newest one that was told before the watch, which began
// from an older version because there may be more of its version.
func (w *watching) isToldAgain(c *source.Change) bool {
	began := w.state.(listwatch.Watching)
	return began.Repeats() && c.Unreadable == nil && c.Event != watch.Bookmark &&
		c.Item.Version.ResourceVersion == began.ResourceVersion && w.told.is(c)
}

// current returns the moment that a change proves. While something is lost that only a list can
// tell, it proves none.
func (w *watching) current(c *source.Change) moment.Moment {
	if c.Current == 0 || w.needsList() {
		return 0
	}
	w.proven = true
	return c.Current
}

// openWatch opens a watch, or returns the one that a watch-list has opened.
func (f *Follower) openWatch(ctx context.Context, state listwatch.Watching) (opening, error) {
	if opened := f.opened; opened.feed != nil {
		f.opened = opening{}
		return opened, nil
	}
	f.Report.CountWatch(f.why)
	timeout := f.watchTimeout()
	return f.openFeed(ctx, f.Policy.WatchOptions(state, timeout), timeout)
}

// watchTimeout is how long the next watch is to last.
func (f *Follower) watchTimeout() time.Duration {
	timeout := f.cuts.timeout(f.Source.WatchTimeout(), moment.Now())
	f.Report.WatchesAreCut(f.cuts.after, f.cuts.asked() != 0)
	return timeout
}

// openFeed opens a watch that is to last for timeout.
func (f *Follower) openFeed(ctx context.Context, opts metav1.ListOptions, timeout time.Duration) (opening, error) {
	due := moment.Of(time.Now().Add(timeout))
	ctx = f.resync.beginWatch(ctx)
	feed, err := f.Source.Watch(ctx, opts)
	if err != nil {
		f.resync.closeWatch()
	}
	return opening{feed: feed, ctx: ctx, due: due}, err
}

// closeFeed closes a watch, if it is open.
func (f *Follower) closeFeed(o *opening) {
	if o.feed != nil {
		o.feed.Close()
		f.resync.closeWatch()
		o.feed = nil // due stays: conclude asks whether the watch ended before
	}
}

// closeOpened closes the watch that follows the initial events, if it is not followed.
func (f *Follower) closeOpened() { f.closeFeed(&f.opened) }
