package follower

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/rvinformer/informer/api"
	"github.com/rvinformer/informer/internal/engine/listwatch"
	"github.com/rvinformer/informer/internal/engine/object"
	"github.com/rvinformer/informer/internal/engine/source"
	"github.com/rvinformer/informer/internal/leaf/rv"
)

// chooseMode decides, before a generation begins, whether to read it with a
// watch-list, and says so in the status.
func (f *Follower) chooseMode(state listwatch.Start) {
	why := f.noWatchList()
	defer func() { f.noteFallback(why) }()
	if !f.triesWatchLists() {
		return
	}
	f.Policy.WatchList = why == nil
	switch {
	case why != nil:
		f.Report.UseListMode(api.ListModePaged, why)
	case f.Policy.Streams(state):
		f.Report.UseListMode(api.ListModeWatchList, nil)
	case state.Lists:
		why = f.refusal
		f.Report.UseListMode(api.ListModePaged, why)
	default:
		f.Report.UseListMode(api.ListModePaged, nil)
	}
}

// noWatchList returns why sets are not read with a watch-list where one was to be tried.
func (f *Follower) noWatchList() error {
	switch {
	case !f.triesWatchLists():
		return nil
	case !f.Source.HasWatchLists():
		return errNoWire
	case f.ListMode == api.ListModeAuto: // else it is tried for each set
		return f.Source.WatchListFailure()
	}
	return nil
}

// errNoWire is why the objects of others' ListerWatchers are listed.
var errNoWire = errors.New("the ListerWatcher is not one of a DynamicListerWatcherFactory")

// rememberFallback notes that a list has worked where a watch-list did not. An error that is due
// to the caller or its request, and not to the resource, is not remembered for others. Nor is one of
// a server that is busy, and has said when to come again.
func (f *Follower) rememberFallback() {
	switch why := f.refusal; {
	case apierrors.IsUnauthorized(why), apierrors.IsForbidden(why), apierrors.IsBadRequest(why):
	case listwatch.RetryAfter(why) > 0:
	default:
		f.Source.WatchListFailed(why)
	}
}

// watchList reads the initial events of a watch-list into the generation under
// way. The watch that follows them stays open.
func (f *Follower) watchList(ctx context.Context, state listwatch.Start, opts metav1.ListOptions, timeout time.Duration) (listwatch.Outcome, error) {
	opened, err := f.openFeed(ctx, opts, timeout)
	var stalled *api.StallError
	switch {
	case errors.As(err, &stalled):
		// What stands between may hold the head back until there is more.
		return listwatch.Outcome{Kind: listwatch.EndedEarly, ResourceVersion: state.Known}, watchListError(err)
	case err != nil:
		return listwatch.Outcome{
			Kind: listwatch.ClassifyWatchList(err), Refused: true, RetryAfter: listwatch.RetryAfter(err), At: time.Now(),
		}, watchListError(err)
	}
	opened.shown = true
	f.opened = opened
	opened.feed.Expect(source.InitialPatience)
	outcome, err := f.initialEvents(ctx, opened.feed, state.Known)
	if err != nil {
		f.closeOpened()
		return outcome, watchListError(err)
	}
	opened.feed.Expect(f.Source.Patience.Bookmarked())
	return outcome, nil
}

func watchListError(err error) error { return fmt.Errorf("watch-list: %w", err) }

func (f *Follower) initialEvents(ctx context.Context, changes source.Feed, known string) (listwatch.Outcome, error) {
	var c source.Change
	newest := []byte(known) // no string, which each object would allocate
	ended := func(kind listwatch.Kind, index int) listwatch.Outcome {
		return listwatch.Outcome{Kind: kind, ResourceVersion: string(newest), Shown: index > 0}
	}
	for index := 0; ; index++ {
		err := changes.Next(ctx, &c)
		switch {
		case ctx.Err() != nil:
			return listwatch.Outcome{Kind: listwatch.Failed}, ctx.Err()
		case err != nil:
			outcome, err := classifyInitialEvents(err)
			outcome.ResourceVersion, outcome.Shown, outcome.RetryAfter = string(newest), index > 0, listwatch.RetryAfter(err)
			return outcome, err
		case index == 0:
			f.Report.Succeed() // the rest may wait for the handler for long
		}
		switch v := c.Item.Version.ResourceVersion; rv.Compare(v, object.LentString(newest)) {
		case rv.Newer:
			newest = append(newest[:0], v...)
		case rv.Unordered:
			newest = []byte(rv.Newest(string(newest), v))
		}
		c.Item.Place = object.Place{Watch: true, Index: index}
		switch {
		case c.InitialEnd:
			return listwatch.Outcome{Kind: listwatch.PageRead, ResourceVersion: c.Bookmark}, nil
		case c.Outside:
		case errors.Is(c.Unreadable, source.ErrUnversioned):
			f.Report.Skip(c.Item.Unreadable(c.Unreadable))
			return ended(listwatch.NoWatchList, index), c.Unreadable
		case c.Event == watch.Added || c.Unreadable != nil:
			f.show(ctx, c.Item, c.Unreadable)
		case f.passesOver(&c):
		default: // a change while the set is read comes between its objects
			if _, unreadable := f.put(ctx, &c); unreadable {
				f.pass.keep(c.Item.Key)
			}
			if ctx.Err() != nil {
				return listwatch.Outcome{Kind: listwatch.Failed}, ctx.Err()
			}
		}
	}
}

func classifyInitialEvents(err error) (listwatch.Outcome, error) {
	var stalled *api.StallError
	var noEnd source.NoEnd
	switch {
	case errors.As(err, &stalled), errors.As(err, &noEnd):
		return listwatch.Outcome{Kind: listwatch.NoWatchList}, err
	default:
		return listwatch.Outcome{Kind: listwatch.ClassifyInitialEvents(err)}, err
	}
}
