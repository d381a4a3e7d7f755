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

// errNoEndBookmark says that a watch-list does not end its initial events.
var errNoEndBookmark = errors.New("a bookmark came that does not end the initial events")

// watchList reads the initial events of a watch-list into the generation under
// way. The watch that follows them stays open.
func (s *session) watchList(ctx context.Context, state listwatch.Start) (listwatch.Outcome, error) {
	timeout := s.watchTimeout()
	s.watchDue = time.Now().Add(timeout)
	changes, err := s.openFeed(ctx, s.policy.WatchListOptions(state, timeout), s.listPatience())
	var stalled *report.StallError
	switch {
	case errors.As(err, &stalled):
		// What stands between may hold the head back until there is more.
		return listwatch.Outcome{Kind: listwatch.EndedEarly, ResourceVersion: state.Known}, watchListError(err)
	case err != nil:
		return listwatch.Outcome{Kind: listwatch.ClassifyWatchList(err)}, watchListError(err)
	}
	changes.expect(stallInInitialEvents)
	outcome, err := s.initialEvents(ctx, changes, state.Known)
	if err != nil {
		changes.close()
		return outcome, watchListError(err)
	}
	changes.expect(s.bookmarkPatience())
	s.opened = changes
	return outcome, nil
}

func watchListError(err error) error { return fmt.Errorf("watch-list: %w", err) }

func (s *session) initialEvents(ctx context.Context, changes feed, known string) (listwatch.Outcome, error) {
	var c change
	newest := known
	for index := 0; ; index++ {
		err := changes.next(ctx, &c)
		switch {
		case ctx.Err() != nil:
			return listwatch.Outcome{Kind: listwatch.Failed}, ctx.Err()
		case errors.Is(err, errResyncDue): // what is shown must not be mixed with what is repeated
			s.resync.Reset(s.resyncPeriod)
			continue
		case err != nil:
			outcome, err := classifyInitialEvents(err)
			outcome.ResourceVersion, outcome.Shown = newest, index > 0
			return outcome, err
		}
		switch rv.Compare(c.it.Version.ResourceVersion, newest) {
		case rv.Newer, rv.Unordered:
			newest = rv.Newest(newest, strings.Clone(c.it.Version.ResourceVersion))
		}
		c.it.Place = object.Place{Watch: true, Index: index}
		switch {
		case c.event == watch.Bookmark && c.initialEnd:
			return listwatch.Outcome{Kind: listwatch.PageRead, ResourceVersion: c.bookmark}, nil
		case c.event == watch.Bookmark:
			return listwatch.Outcome{Kind: listwatch.NoWatchList}, errNoEndBookmark
		case c.event == watch.Added || c.unreadable != nil:
			s.show(ctx, c.it, c.unreadable)
		default:
			// What changes while the set is read comes between it.
			if err := s.changeBetween(ctx, c); err != nil {
				return listwatch.Outcome{Kind: listwatch.Failed}, err
			}
		}
	}
}

// changeBetween hands on a change of an object that was shown before.
func (s *session) changeBetween(ctx context.Context, c change) error {
	stale, err := s.into.put(ctx, c.event, c.it)
	if stale {
		s.report.Stale()
	}
	if err != nil && s.refused(ctx, err) {
		s.keep(c.it.Key)
		if c.event != watch.Deleted && object.IsUndecodable(err) { // nothing shows it again
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
