package informer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"github.com/rvinformer/informer/internal/listwatch"
	"github.com/rvinformer/informer/internal/object"
	"github.com/rvinformer/informer/internal/report"
	"github.com/rvinformer/informer/internal/rv"
	"github.com/rvinformer/informer/internal/server"
	"github.com/rvinformer/informer/internal/source"
	"github.com/rvinformer/informer/internal/wire"
)

// confirmAfter is how long a server may take to refuse, within a watch that it has
// opened, the version that it is to begin from. One that has said meanwhile that it has the
// version may have forgotten the changes since: the refusal has come by then, and confirmSaid
// is the time to read it.
const confirmAfter, confirmSaid = 2 * time.Second, 50 * time.Millisecond

// dueMargin is how much before its time a watch may end and still have lasted for it: it
// is asked for whole seconds.
const dueMargin = 2 * time.Second

// unprovenPatience is how long a watch may stay silent when the server did not say that it has
// the version. Bookmarks come each minute.
const unprovenPatience = 75 * time.Second

// following is a watch under way.
type following struct {
	*session
	// at is where it is. The state of the session is where it began.
	at listwatch.Watching
	opening
	// unconfirm ends what confirms the watch after a while; nil if there is nothing.
	unconfirm func()
	began     time.Time
	ordered   bool
	events    int
	// moved tells that an event could be read.
	moved bool
	// told is the newest change.
	told source.Change
	// outcome is what ended the watch.
	outcome listwatch.Outcome
}

// newFollowing is for the watch of the state; nil where that lists.
func (s *session) newFollowing() *following {
	at, watching := s.state.(listwatch.Watching)
	if !watching {
		return nil
	}
	s.report.Enter(PhaseWatching)
	return &following{session: s, at: at}
}

// conclude decides what follows the watch, which has ended with err, and returns err.
func (f *following) conclude(err error) error {
	f.at.Lost = f.at.Lost || f.missed.Load()
	f.outcome.Doubtful, f.outcome.Moved = f.doubtful(err), f.moved
	f.outcome.RetryAfter = listwatch.RetryAfter(err)
	if !f.outcome.Refused {
		f.outcome.Lasted = time.Since(f.began)
	}
	f.next = f.policy.Next(f.at, f.outcome)
	return err
}

// watch follows the changes since the state, and moves it. It notes what ended
// the watch, and returns the error to report.
func (f *following) watch(ctx context.Context) error {
	defer f.close()
	over, err := f.open(ctx)
	for !over {
		f.resync.lend()
		err = f.feed.Next(f.ctx, &f.told)
		over, err = f.handle(ctx, err)
	}
	return err
}

// open opens the watch.
func (f *following) open(ctx context.Context) (over bool, err error) {
	f.began = time.Now()
	if f.opening, err = f.openWatch(ctx, f.at); err != nil {
		kind := listwatch.Classify(err)
		if kind == listwatch.Expired && f.at.Unsure { // perhaps by another cluster
			if _, err := f.ask(ctx); errors.Is(err, ErrClusterReplaced) {
				f.report.Fail(err)
			}
		}
		return f.over(listwatch.Outcome{Kind: kind, Refused: true}, err)
	}
	patience := confirmAfter
	if f.at.Unsure {
		has, err := f.verify(ctx)
		switch has {
		case hasNot:
			return f.over(listwatch.Outcome{Kind: listwatch.TooLarge}, err)
		case hasVersion:
			patience = confirmSaid
		}
	}
	f.report.Succeed()
	f.report.Handler(nil)

	if f.confirmed != nil {
		// A server that refuses the version says so at once, in an event.
		done, confirmed := make(chan struct{}), f.confirmed
		timer := time.AfterFunc(patience, func() {
			defer close(done)
			confirmed()
		})
		f.unconfirm = func() {
			if !timer.Stop() {
				<-done
			}
		}
	}
	// A watch from no version, or from any, begins with the objects that there
	// are, in no order of their versions.
	f.ordered = f.at.ResourceVersion != "" && f.at.ResourceVersion != "0"
	return false, nil
}

func (f *following) close() {
	if f.unconfirm != nil {
		f.unconfirm()
	}
	if f.feed != nil {
		f.feed.Close()
		f.resync.closeWatch()
	}
}

// over notes what ended the watch.
func (f *following) over(outcome listwatch.Outcome, err error) (bool, error) {
	f.outcome = outcome
	return true, err
}

// handle handles the change that was told, or err, which was instead.
func (f *following) handle(ctx context.Context, err error) (over bool, _ error) {
	resyncing := f.resync.take()
	switch {
	case ctx.Err() != nil:
		return f.over(listwatch.Outcome{Kind: listwatch.WatchEnded}, nil)
	case resyncing && isStall(err): // a slow store is not the server's silence
		return false, nil
	case err != nil:
		return f.over(f.ended(err))
	}
	if f.told.Event == watch.Bookmark {
		f.feed.Expect(f.source.Patience.Bookmarked())
	}
	if outcome, err := f.change(ctx); err != nil {
		return f.over(outcome, err)
	}
	return false, nil
}

func isStall(err error) bool {
	var stalled *report.StallError
	return errors.As(err, &stalled)
}

// standing is what a server has of the version that a watch goes on from.
type standing int

const (
	// unproven: the server did not say.
	unproven standing = iota
	hasVersion
	hasNot
)

// verify asks whether the server still is the one, in the state, that the watch goes on from.
// It is asked once the watch is open, which ends if the server is restored or replaced later.
// Where it does not answer, the watch has to prove itself.
func (f *following) verify(ctx context.Context) (standing, error) {
	f.at.Unsure = false
	a, err := f.ask(ctx)
	switch {
	case ctx.Err() != nil:
		return unproven, nil
	case a.Identity == server.Another || a.Identity == server.Doubtful || listwatch.Classify(err) == listwatch.TooLarge:
		return hasNot, err
	case err != nil:
		f.report.Fail(err)
		f.feed.Expect(min(unprovenPatience, f.source.Patience.Watch(unprovenPatience)))
		return unproven, nil
	case a.HasVersion:
		return hasVersion, nil
	}
	return unproven, nil
}

// ask asks the server which cluster it is of, and whether it has the version that the watch
// begins from, and notes what is learnt of the cluster. That it is another one is an error.
func (f *following) ask(ctx context.Context) (server.Answer, error) {
	known := f.cluster.UID()
	a, err := f.identifier.Ask(ctx, server.Inquiry{Cluster: known, ResourceVersion: f.at.ResourceVersion, Objects: f.objects})
	switch {
	case known == "" || a.Cluster == known:
		f.cluster.Learn(a.Cluster)
	case a.Cluster != "":
		f.cluster.Replace(a.Cluster, &f.report.Gaps)
		return a, fmt.Errorf("%w: the UID of its namespace kube-system is %q, not %q", ErrClusterReplaced, a.Cluster, known)
	}
	if a.Identity == server.Doubtful || a.Identity == server.Another {
		// What it is the list will show; until then, no known UID is its own.
		f.cluster.Replace(a.Cluster, &f.report.Gaps)
	}
	if err != nil {
		err = fmt.Errorf("whether the server was restored: %w", err)
	}
	return a, err
}

// ended tells what the end of a watch means, and what to report.
func (f *following) ended(err error) (listwatch.Outcome, error) {
	if failed, ok := errors.AsType[*resyncError](err); ok {
		return listwatch.Outcome{Kind: listwatch.Failed}, failed.reason()
	}
	outcome := listwatch.Outcome{Kind: listwatch.WatchEnded}
	if errors.Is(err, source.ErrUnread) {
		return outcome, nil
	}
	if err == io.EOF {
		err = nil
	} else {
		outcome = source.ClassifyEnd(err, time.Now())
	}
	if outcome.Kind != listwatch.WatchEnded || f.moved || time.Since(f.began) >= time.Second {
		return outcome, err
	}
	short := error(&cache.VeryShortWatchError{Name: f.name})
	if err != nil {
		short = fmt.Errorf("%w: %w", short, err)
	}
	return listwatch.Outcome{Kind: listwatch.WatchTooShort, At: time.Now()}, short
}

// change handles what was told. An error ends the watch, with outcome.
func (f *following) change(ctx context.Context) (listwatch.Outcome, error) {
	f.confirm()
	c := &f.told
	c.Item.Place = object.Place{Watch: true, Index: f.events}
	f.events++
	if c.Unreadable != nil {
		f.lose(c.Unreadable)
		f.report.Skip(c.Item.Unreadable(c.Unreadable))
		return listwatch.Outcome{}, nil
	}
	if c.Event == watch.Bookmark {
		f.advance(c.Bookmark, c.Event)
		return listwatch.Outcome{}, nil
	}
	resourceVersion := strings.Clone(c.Item.Version.ResourceVersion)
	stale, err := f.into.Put(ctx, c.Event, c.Item)
	switch {
	case ctx.Err() != nil:
		// What was not put must not move the resource version on.
		return listwatch.Outcome{Kind: listwatch.WatchEnded}, ctx.Err()
	case err != nil:
		if c.Event != watch.Deleted && object.IsUndecodable(err) { // a deletion counts
			f.at.Lost = true
		}
		f.refused(ctx, err)
	case stale:
		f.report.Stale()
		return listwatch.Outcome{}, nil
	}
	f.advance(resourceVersion, c.Event)
	return listwatch.Outcome{}, nil
}

// lose notes that what an event told is lost, if the reader could not read it: it
// may have been a deletion. A list will tell.
func (f *following) lose(unreadable error) {
	var lost *wire.ItemError
	if errors.As(unreadable, &lost) {
		f.at.Lost = true
	}
}

// advance moves the state on to the resource version of an event.
func (f *following) advance(resourceVersion string, event watch.EventType) {
	f.moved, f.at.Strikes = true, 0
	f.ordered = f.ordered || event != watch.Added
	if !f.ordered || resourceVersion == "" {
		return
	}
	if rv.Compare(resourceVersion, f.at.ResourceVersion) == rv.Older {
		return // out of order: what the watch told before stays told
	}
	f.at.ResourceVersion = resourceVersion
	f.report.Reach(resourceVersion)
	if err := f.into.Observed(resourceVersion, event == watch.Bookmark); err != nil {
		f.report.Fail(err)
	}
}

// opening is a watch that was opened, and is to be followed.
type opening struct {
	feed source.Feed
	// ctx is the context of the feed.
	ctx context.Context
	// due is when the watch is to end.
	due time.Time
}

// openWatch opens a watch, or returns the one that a watch-list has opened.
func (s *session) openWatch(ctx context.Context, state listwatch.Watching) (opening, error) {
	if opened := s.opened; opened.feed != nil {
		s.opened = opening{}
		return opened, nil
	}
	timeout := s.source.WatchTimeout()
	return s.openFeed(ctx, s.policy.WatchOptions(state, timeout), timeout)
}

// openFeed opens a watch that is to last for timeout.
func (s *session) openFeed(ctx context.Context, opts metav1.ListOptions, timeout time.Duration) (opening, error) {
	due := time.Now().Add(timeout)
	ctx = s.resync.beginWatch(ctx)
	feed, err := s.source.Watch(ctx, opts)
	if err != nil {
		s.resync.closeWatch()
	}
	return opening{feed: feed, ctx: ctx, due: due}, err
}

// doubtful reports whether the server may have been restored since the watch, which has
// ended with err, told its last: if something went wrong, and also if it showed nothing,
// as one from a version does that the server does not have any more, or ended before it
// was due, as at a server that stops.
func (f *following) doubtful(err error) bool {
	return err != nil && listwatch.Down(err) || !f.moved || time.Now().Before(f.due.Add(-dueMargin))
}
