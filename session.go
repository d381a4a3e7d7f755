package informer

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/rvinformer/informer/internal/backoff"
	"github.com/rvinformer/informer/internal/listwatch"
	"github.com/rvinformer/informer/internal/object"
	"github.com/rvinformer/informer/internal/report"
	"github.com/rvinformer/informer/internal/rv"
	"github.com/rvinformer/informer/internal/sink"
	"github.com/rvinformer/informer/internal/source"
)

// session is one Run of a reflector: the shell around the decisions of
// internal/listwatch. It belongs to one goroutine.
type session struct {
	*Reflector
	into   sink.Sink
	policy listwatch.Policy
	// state is what is requested, and next what follows it, once the request is done.
	state listwatch.State
	next  listwatch.Step
	// pace is nil until something has to wait.
	pace   *listwatch.Pace
	source *source.Source
	// current is the generation under way, nil between generations; partial tells
	// that it has an object of which not even the key is known.
	current sink.Generation
	partial bool
	// opened is the watch that follows the initial events of a watch-list, until it
	// is followed.
	opened opening
	resync *resync
	// floor is the newest resource version known before the session, until it has
	// read a complete set: what it lists must not be older.
	floor string
	// shown is where the shared watches were when the generation began.
	shown string
	// confirmed, if set, is to be called when the server has accepted the resource
	// version that the session resumes from.
	confirmed func()
	// objects are those of the origin.
	objects func() []object.Known
}

func (r *Reflector) newSession(into sink.Sink) *session {
	return &session{Reflector: r, source: r.newSource(), into: into, policy: r.policy(), resync: newResync(r.resyncPeriod, func(ctx context.Context) error {
		if r.ShouldResync != nil && !r.ShouldResync() {
			return nil
		}
		return into.Resync(ctx)
	})}
}

func (s *session) close() {
	s.resync.close()
	s.abandon()
	s.closeOpened()
}

func (s *session) abandon() {
	s.source.Rest()
	if s.current != nil {
		s.current.Abandon()
		s.current = nil
	}
}

func (s *session) closeOpened() {
	if s.opened.feed != nil {
		s.opened.feed.Close()
		s.resync.closeWatch()
		s.opened = opening{}
	}
}

// step does the request of the state and decides what is next. It returns the error to
// report, if there was one.
//
// It, what calls it, and what it calls for a watch, is on the stack while a watch is
// idle: what is large stands in functions that have returned by then.
func (s *session) step(ctx context.Context) error {
	if follow := s.newFollowing(); follow != nil {
		return follow.conclude(follow.watch(ctx))
	}
	return s.listStep(ctx)
}

// begin begins with the first state of a run.
func (s *session) begin(from *origin) {
	s.objects = from.objects
	if from.resume == "" {
		s.state = listwatch.Start{Known: from.known}
		return
	}
	s.report.Reach(from.resume)
	s.report.ListRead()
	s.floor, s.confirmed = from.known, from.resumed
	s.state = listwatch.Watching{ResourceVersion: from.resume, Unsure: true}
}

// reportAndGoOn reports what a step has met with, and goes on.
func (s *session) reportAndGoOn(ctx context.Context, err error) {
	if err != nil {
		s.report.Fail(err)
	}
	s.goOn(ctx)
}

func (s *session) listStep(ctx context.Context) error {
	if start, ok := s.state.(listwatch.Start); ok {
		s.chooseMode(start)
		s.confirmed = nil
		start.Known = rv.AtLeast(start.Known, s.floor)
		if s.shared != nil { // nor than what others were told
			s.shown = s.shared.ResourceVersion()
			start.Known = rv.AtLeast(start.Known, s.shown)
		}
		s.state = start
	}
	s.report.Enter(PhaseListing)
	outcome, err := s.list(ctx, s.state)
	s.next = s.policy.Next(s.state, outcome)
	if s.next.Fallback {
		s.fallBack(err)
	}
	switch s.next.Effect {
	case listwatch.AbandonGeneration:
		s.abandon()
	case listwatch.CompleteGeneration:
		if err := s.complete(ctx, outcome.ResourceVersion); err != nil {
			s.closeOpened()
			s.next = listwatch.Step{State: listwatch.Start{Known: s.LastSyncResourceVersion()}, Pause: listwatch.ListPause}
			return err
		}
	}
	return err
}

// goOn moves to what is next, after the pause before it.
func (s *session) goOn(ctx context.Context) {
	if wait := s.pause(); wait > 0 {
		s.report.Enter(PhaseBackoff)
		_ = backoff.Sleep(ctx, wait) // who goes on sees that ctx has ended
	}
	s.state = s.next.State
}

// pause is how long to wait before what is next.
func (s *session) pause() time.Duration {
	if s.next.Progress == listwatch.WatchProgress { // all backoffs start again
		s.pace = nil
	}
	if s.pace == nil {
		if s.next.Pause == listwatch.NoPause {
			return 0
		}
		s.pace = listwatch.NewPace(backoff.OrDefault(s.Backoff))
	}
	return s.pace.After(s.next)
}

// list does one request for the generation under way: a page, or a watch-list.
func (s *session) list(ctx context.Context, state listwatch.State) (listwatch.Outcome, error) {
	if s.current == nil {
		g, err := s.into.Begin(ctx)
		if err != nil {
			return listwatch.Outcome{Kind: listwatch.Failed}, err
		}
		s.current, s.partial = g, false
		s.report.BeginGeneration()
		s.missed.Store(false)
	}
	if err := s.beginList(ctx); err != nil {
		return listwatch.Outcome{Kind: listwatch.Failed}, err
	}
	defer s.endList()
	outcome, err := s.request(ctx, state)
	if errors.Is(err, source.ErrUnread) {
		s.source.Narrow, err = true, nil
	}
	return outcome, err
}

func (s *session) request(ctx context.Context, state listwatch.State) (listwatch.Outcome, error) {
	if s.policy.Streams(state) {
		return s.watchList(ctx, state.(listwatch.Start))
	}
	opts := s.policy.ListOptions(state)
	shown, first := false, ""
	page, err := s.source.Page(ctx, opts, func(it object.Item, unreadable error) error {
		if !shown {
			shown, first = true, strings.Clone(it.Key)
		}
		s.show(ctx, it, unreadable)
		return ctx.Err()
	})
	if err != nil {
		return failedList(err, shown), err
	}
	if at, ok := state.(listwatch.Listing); ok && page.Continue != "" && at.Circular(page.Continue, first) {
		return listwatch.Outcome{Kind: listwatch.Circular, Shown: shown}, errCircularPages
	}
	if opts.ResourceVersion == "0" && page.Continue != "" {
		s.cachePaged.Store(true)
		s.policy.CachePaged = true
	}
	return listwatch.Outcome{Kind: listwatch.PageRead, ResourceVersion: page.ResourceVersion, Continue: page.Continue, First: first, Shown: shown}, nil
}

// errCircularPages says that the pages of a list have no end.
var errCircularPages = errors.New("a page has the continue token or the first object of an earlier page")

// failedList is the outcome of a list that failed, after it has shown objects or before.
func failedList(err error, shown bool) listwatch.Outcome {
	return listwatch.Outcome{
		Kind: listwatch.Classify(err), Shown: shown, Refused: !shown, RetryAfter: listwatch.RetryAfter(err), At: time.Now(),
	}
}

// beginList waits until the budget has room for another list, and endList gives it back.
func (s *session) beginList(ctx context.Context) (err error) {
	if s.budget != nil {
		s.under, err = s.budget.Begin(ctx, s.server())
		s.source.Turn = s.under
	}
	return err
}

func (s *session) endList() {
	s.under.End()
	s.under, s.source.Turn = nil, nil
}

// show hands an object on to the generation under way, or what is wrong with it.
func (s *session) show(ctx context.Context, it object.Item, unreadable error) {
	if unreadable != nil {
		s.report.Skip(it.Unreadable(unreadable))
		s.keep(it.Key)
	} else if err := s.current.Show(ctx, it); err != nil && s.refused(ctx, err) {
		s.keep(it.Key)
	}
}

// keep takes an object that could not be read for shown.
func (s *session) keep(key string) {
	if key == "" {
		s.partial = true
	} else {
		s.current.Keep(strings.Clone(key))
	}
}

// complete ends the generation under way, which was read to its end.
func (s *session) complete(ctx context.Context, resourceVersion string) error {
	current := s.current
	s.current = nil
	s.source.Rest()
	// Who waits for the end may ask for the version then.
	before := s.LastSyncResourceVersion()
	s.report.Reach(resourceVersion)
	s.report.ListRead()
	if err := current.End(ctx, resourceVersion, !s.partial); err != nil {
		s.report.Reach(before)
		return err
	}
	s.floor, s.source.Narrow = "", false
	if s.shared != nil && rv.Compare(resourceVersion, s.shown) == rv.Older {
		// The shared watch tells of what was before the server was restored.
		s.shared.WentBack(resourceVersion)
	}
	s.report.EndGeneration()
	s.report.Succeed()
	return s.into.Observed(resourceVersion, false)
}

// confirm notes that the server has accepted the version that a watch began from.
func (s *session) confirm() {
	if s.confirmed != nil {
		s.confirmed()
		s.confirmed = nil
	}
}

// refused reports what the store, or what stands before it, said to an item, and
// whether the item counts as one that could not be read.
func (s *session) refused(ctx context.Context, err error) (unreadable bool) {
	var skipped *report.ItemError
	switch {
	case ctx.Err() != nil:
		return false
	case errors.As(err, &skipped):
		s.report.Skip(skipped)
		return true
	default:
		s.report.Fail(err)
		return false
	}
}
