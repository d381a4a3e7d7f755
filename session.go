package informer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"github.com/rvinformer/informer/internal/listwatch"
	"github.com/rvinformer/informer/internal/wire"
)

// session is one Run of a reflector: the shell around the decisions of
// internal/listwatch. It belongs to one goroutine.
type session struct {
	*Reflector
	into   sink
	policy listwatch.Policy
	waits  *backoff
	// wire is the source if objects are read off the wire, else nil; and form is how.
	wire wireSource
	form form
	// current is the generation under way, nil between generations; partial tells
	// that it has an object of which not even the key is known.
	current generation
	partial bool
	// lists are the readers of list bodies, by format. They keep their buffers from
	// page to page, and are dropped at the end of a generation, for a watch may last.
	lists [wire.Formats]wire.ListReader
	// opened is the watch that follows the initial events of a watch-list, until it
	// is followed.
	opened feed
	// lent and key are what the item under way lends.
	lent   lentObject
	key    []byte
	resync *time.Timer
}

func (r *Reflector) newSession(into sink) *session {
	s := &session{Reflector: r, into: into, policy: r.policy(), waits: newBackoff(r.Backoff)}
	if source, ok := r.source.(wireSource); ok {
		s.wire, s.form = source, r.wireForm()
	}
	if r.resyncPeriod > 0 {
		s.resync = time.NewTimer(r.resyncPeriod)
	}
	return s
}

func (s *session) close() {
	s.abandon()
	s.closeOpened()
	if s.resync != nil {
		s.resync.Stop()
	}
}

func (s *session) abandon() {
	clear(s.lists[:])
	if s.current != nil {
		s.current.abandon()
		s.current = nil
	}
}

func (s *session) closeOpened() {
	if s.opened != nil {
		s.opened.close()
		s.opened = nil
	}
}

// step does the request of a state and returns what follows, and the error to
// report, if there was one.
//
// It, and what it calls for a watch, is on the stack while a watch is idle: what is
// large stands in functions that have returned by then.
func (s *session) step(ctx context.Context, state listwatch.State) (listwatch.Step, error) {
	if watching, ok := state.(listwatch.Watching); ok {
		return s.watchStep(ctx, watching)
	}
	return s.listStep(ctx, state)
}

func (s *session) watchStep(ctx context.Context, state listwatch.Watching) (listwatch.Step, error) {
	s.enter(PhaseWatching)
	follow := &following{session: s, state: state}
	outcome, err := follow.watch(ctx)
	return s.policy.Next(follow.state, outcome), err
}

func (s *session) listStep(ctx context.Context, state listwatch.State) (listwatch.Step, error) {
	if start, ok := state.(listwatch.Start); ok {
		s.chooseMode(start)
	}
	s.enter(PhaseListing)
	outcome, err := s.list(ctx, state)
	next := s.policy.Next(state, outcome)
	if next.Fallback {
		s.fallBack(err)
	}
	switch next.Effect {
	case listwatch.AbandonGeneration:
		s.abandon()
	case listwatch.CompleteGeneration:
		if err := s.complete(ctx, outcome.ResourceVersion); err != nil {
			s.closeOpened()
			return listwatch.Step{State: listwatch.Start{Known: s.LastSyncResourceVersion()}, Pause: listwatch.BackoffPause}, err
		}
	}
	return next, err
}

// pause waits as next demands and returns its state. Err is what the last
// request failed with, if it did.
func (s *session) pause(ctx context.Context, next listwatch.Step, err error) listwatch.State {
	if next.Pause == listwatch.NoPause {
		return next.State
	}
	s.enter(PhaseBackoff)
	timer := time.NewTimer(s.waits.delay(listwatch.RetryAfter(err)))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
	return next.State
}

// list does one request for the generation under way: a page, or a watch-list.
func (s *session) list(ctx context.Context, state listwatch.State) (listwatch.Outcome, error) {
	if s.current == nil {
		g, err := s.into.begin(ctx)
		if err != nil {
			return listwatch.Outcome{Kind: listwatch.Failed}, err
		}
		s.current, s.partial = g, false
	}
	if s.policy.Streams(state) {
		return s.watchList(ctx, state.(listwatch.Start))
	}
	opts := s.policy.ListOptions(state)
	shown := false
	page, err := s.listPage(ctx, opts, func(it item, unreadable error) error {
		shown = true
		s.show(ctx, it, unreadable)
		return ctx.Err()
	})
	if err != nil {
		return listwatch.Outcome{Kind: listwatch.Classify(err), Shown: shown}, err
	}
	if opts.ResourceVersion == "0" && page.next != "" {
		s.policy.CachePaged = true
	}
	return listwatch.Outcome{Kind: listwatch.PageRead, ResourceVersion: page.resourceVersion, Continue: page.next}, nil
}

// show hands an object on to the generation under way, or what is wrong with it.
func (s *session) show(ctx context.Context, it item, unreadable error) {
	if unreadable != nil {
		s.skip(it.unreadable(unreadable))
		s.keep(it.key)
	} else if err := s.current.show(ctx, it); err != nil && s.refused(ctx, err) {
		s.keep(it.key)
	}
}

// keep takes an object that could not be read for shown.
func (s *session) keep(key string) {
	if key == "" {
		s.partial = true
	} else {
		s.current.keep(strings.Clone(key))
	}
}

// complete ends the generation under way, which was read to its end.
func (s *session) complete(ctx context.Context, resourceVersion string) error {
	current := s.current
	s.current = nil
	clear(s.lists[:])
	// Who waits for the end may ask for the version then.
	before := s.LastSyncResourceVersion()
	s.reached(resourceVersion)
	if err := current.end(ctx, resourceVersion, !s.partial); err != nil {
		s.reached(before)
		return err
	}
	s.listCompleted()
	s.succeeded()
	return s.into.observed(resourceVersion, false)
}

// openWatch opens a watch, or returns the one that a watch-list has opened.
func (s *session) openWatch(ctx context.Context, state listwatch.Watching) (feed, error) {
	if opened := s.opened; opened != nil {
		s.opened = nil
		return opened, nil
	}
	timeout := s.watchTimeout()
	return s.openFeed(ctx, s.policy.WatchOptions(state, timeout), s.watchPatience(timeout))
}

// classifyOpening names why a watch could not be opened.
func classifyOpening(err error) listwatch.Kind {
	var stalled *StallError
	if errors.As(err, &stalled) {
		return listwatch.Failed
	}
	return listwatch.Classify(err)
}

func (s *session) resyncDue() <-chan time.Time {
	if s.resync == nil {
		return nil
	}
	return s.resync.C
}

func (s *session) doResync(ctx context.Context) error {
	s.resync.Reset(s.resyncPeriod)
	if s.ShouldResync != nil && !s.ShouldResync() {
		return nil
	}
	return s.into.resync(ctx)
}

// following is a watch under way.
type following struct {
	*session
	state   listwatch.Watching
	ordered bool
	events  int
	// moved tells that an event could be read.
	moved bool
	// told is the newest change.
	told change
}

// watch follows the changes since the state, and moves it. It returns what ended
// the watch, and the error to report.
func (f *following) watch(ctx context.Context) (listwatch.Outcome, error) {
	start := time.Now()
	changes, err := f.openWatch(ctx, f.state)
	if err != nil {
		return listwatch.Outcome{Kind: classifyOpening(err)}, err
	}
	defer changes.close()
	f.succeeded()
	f.onError(f.Reflector, nil)

	// A watch from no version, or from any, begins with the objects that there
	// are, in no order of their versions.
	f.ordered = f.state.ResourceVersion != "" && f.state.ResourceVersion != "0"
	for {
		err := changes.next(ctx, &f.told)
		switch {
		case ctx.Err() != nil:
			return listwatch.Outcome{Kind: listwatch.WatchEnded}, nil
		case errors.Is(err, errResyncDue):
			if err := f.doResync(ctx); err != nil {
				return listwatch.Outcome{Kind: listwatch.Failed}, err
			}
			continue
		case err != nil:
			return f.ended(start, err)
		}
		if f.told.event == watch.Bookmark {
			changes.expect(f.bookmarkPatience())
		}
		if outcome, err := f.change(ctx); err != nil {
			return outcome, err
		}
	}
}

// ended tells what the end of a watch means, and what to report.
func (f *following) ended(start time.Time, err error) (listwatch.Outcome, error) {
	outcome := listwatch.Outcome{Kind: listwatch.WatchEnded}
	if err == io.EOF {
		err = nil
	} else {
		outcome = classifyFeed(err, time.Now())
	}
	switch {
	case outcome.Kind != listwatch.WatchEnded || time.Since(start) >= time.Second:
		return outcome, err
	case !f.moved:
		short := error(&cache.VeryShortWatchError{Name: f.name})
		if err != nil {
			short = fmt.Errorf("%w: %w", short, err)
		}
		return listwatch.Outcome{Kind: listwatch.WatchTooShort, At: time.Now()}, short
	default:
		// It got somewhere, but a server that goes on like this must not be asked
		// again at once.
		return listwatch.Outcome{Kind: listwatch.Failed}, err
	}
}

// change handles what was told. An error ends the watch, with outcome.
func (f *following) change(ctx context.Context) (listwatch.Outcome, error) {
	c := &f.told
	c.it.place = place{watch: true, index: f.events}
	f.events++
	if c.unreadable != nil {
		f.skip(c.it.unreadable(c.unreadable))
		return listwatch.Outcome{}, nil
	}
	if c.event == watch.Bookmark {
		f.advance(c.bookmark, c.event)
		return listwatch.Outcome{}, nil
	}
	resourceVersion := strings.Clone(c.it.version.ResourceVersion)
	stale, err := f.into.put(ctx, c.event, c.it)
	switch {
	case ctx.Err() != nil:
		// What was not put must not move the resource version on.
		return listwatch.Outcome{Kind: listwatch.WatchEnded}, ctx.Err()
	case err != nil:
		f.refused(ctx, err)
	case stale:
		f.stale()
		return listwatch.Outcome{}, nil
	}
	f.advance(resourceVersion, c.event)
	return listwatch.Outcome{}, nil
}

// advance moves the state on to the resource version of an event.
func (f *following) advance(resourceVersion string, event watch.EventType) {
	f.moved, f.state.Quiet, f.state.Strikes = true, false, 0
	f.ordered = f.ordered || event != watch.Added
	if !f.ordered || resourceVersion == "" {
		return
	}
	f.state.ResourceVersion = resourceVersion
	f.reached(resourceVersion)
	if err := f.into.observed(resourceVersion, event == watch.Bookmark); err != nil {
		f.fail(err)
	}
}

// refused reports what the store, or what stands before it, said to an item, and
// whether the item counts as one that could not be read.
func (s *session) refused(ctx context.Context, err error) (unreadable bool) {
	var skipped *ItemError
	switch {
	case ctx.Err() != nil:
		return false
	case errors.As(err, &skipped):
		s.skip(skipped)
		return true
	default:
		s.fail(err)
		return false
	}
}
