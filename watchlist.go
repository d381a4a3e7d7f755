package informer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/rvinformer/informer/internal/listwatch"
	"github.com/rvinformer/informer/internal/object"
	"github.com/rvinformer/informer/internal/report"
	"github.com/rvinformer/informer/internal/rv"
	"github.com/rvinformer/informer/internal/source"
)

// chooseMode decides, before a generation begins, whether to read it with a
// watch-list, and says so in the status.
func (s *session) chooseMode(state listwatch.Start) {
	var why error
	switch {
	case s.mode != ListModeAuto && s.mode != ListModeWatchList:
		return
	case s.resource == nil:
		why = errNoWire
	case s.mode == ListModeAuto:
		why = s.resource.WatchListFailure()
	}
	s.policy.WatchList = why == nil
	switch {
	case why != nil:
		s.report.UseListMode(ListModePaged, why)
	case s.policy.Streams(state):
		s.report.UseListMode(ListModeWatchList, nil)
	case !state.Lists:
		s.report.UseListMode(ListModePaged, nil)
	}
}

// errNoWire is why the objects of others' ListerWatchers are listed.
var errNoWire = errors.New("the ListerWatcher is not one of a DynamicListerWatcherFactory")

// fallBack has pages listed where a watch-list did not work. What says more of who
// asks, or of what was asked for, than of the resource is not remembered for others.
func (s *session) fallBack(why error) {
	if !apierrors.IsForbidden(why) && !apierrors.IsBadRequest(why) {
		s.resource.WatchListFailed(why)
	}
	s.report.UseListMode(ListModePaged, why)
}

// stallInInitialEvents is how long the initial events of a watch-list may pause.
const stallInInitialEvents = 10 * time.Second

// errNoEndBookmark says that a watch-list does not end its initial events.
var errNoEndBookmark = errors.New("a bookmark came that does not end the initial events")

// watchList reads the initial events of a watch-list into the generation under
// way. The watch that follows them stays open.
func (s *session) watchList(ctx context.Context, state listwatch.Start) (listwatch.Outcome, error) {
	timeout := s.source.WatchTimeout()
	opened, err := s.openFeed(ctx, s.policy.WatchListOptions(state, timeout), timeout)
	var stalled *report.StallError
	switch {
	case errors.As(err, &stalled):
		// What stands between may hold the head back until there is more.
		return listwatch.Outcome{Kind: listwatch.EndedEarly, ResourceVersion: state.Known}, watchListError(err)
	case err != nil:
		return listwatch.Outcome{Kind: listwatch.ClassifyWatchList(err)}, watchListError(err)
	}
	changes := opened.feed
	changes.Expect(stallInInitialEvents)
	outcome, err := s.initialEvents(ctx, changes, state.Known)
	if err != nil {
		changes.Close()
		s.resync.closeWatch()
		return outcome, watchListError(err)
	}
	changes.Expect(s.source.Patience.Bookmarked())
	s.opened = opened
	return outcome, nil
}

func watchListError(err error) error { return fmt.Errorf("watch-list: %w", err) }

func (s *session) initialEvents(ctx context.Context, changes source.Feed, known string) (listwatch.Outcome, error) {
	var c source.Change
	newest := known
	for index := 0; ; index++ {
		err := changes.Next(ctx, &c)
		switch {
		case ctx.Err() != nil:
			return listwatch.Outcome{Kind: listwatch.Failed}, ctx.Err()
		case err != nil:
			outcome, err := classifyInitialEvents(err)
			outcome.ResourceVersion, outcome.Shown = newest, index > 0
			return outcome, err
		}
		switch rv.Compare(c.Item.Version.ResourceVersion, newest) {
		case rv.Newer, rv.Unordered:
			newest = rv.Newest(newest, strings.Clone(c.Item.Version.ResourceVersion))
		}
		c.Item.Place = object.Place{Watch: true, Index: index}
		switch {
		case c.Event == watch.Bookmark && c.InitialEnd:
			return listwatch.Outcome{Kind: listwatch.PageRead, ResourceVersion: c.Bookmark}, nil
		case c.Event == watch.Bookmark:
			return listwatch.Outcome{Kind: listwatch.NoWatchList}, errNoEndBookmark
		case c.Event == watch.Added || c.Unreadable != nil:
			s.show(ctx, c.Item, c.Unreadable)
		default:
			// What changes while the set is read comes between it.
			if err := s.changeBetween(ctx, c); err != nil {
				return listwatch.Outcome{Kind: listwatch.Failed}, err
			}
		}
	}
}

// changeBetween hands on a change of an object that was shown before.
func (s *session) changeBetween(ctx context.Context, c source.Change) error {
	stale, err := s.into.Put(ctx, c.Event, c.Item)
	if stale {
		s.report.Stale()
	}
	if err != nil && s.refused(ctx, err) {
		s.keep(c.Item.Key)
		if c.Event != watch.Deleted && object.IsUndecodable(err) { // nothing shows it again
			s.missed.Store(true)
		}
	}
	return ctx.Err()
}

func classifyInitialEvents(err error) (listwatch.Outcome, error) {
	var stalled *report.StallError
	switch {
	case errors.As(err, &stalled):
		return listwatch.Outcome{Kind: listwatch.NoWatchList}, err
	case err == io.EOF:
		return listwatch.Outcome{Kind: listwatch.EndedEarly}, io.ErrUnexpectedEOF
	default:
		return listwatch.Outcome{Kind: listwatch.ClassifyInitialEvents(err)}, err
	}
}
