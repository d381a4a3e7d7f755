package informer

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
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
	// current is the generation under way, nil between generations; partial tells
	// that it has an object of which not even the key is known.
	current generation
	partial bool
	// reader reads list bodies. It keeps its buffers from page to page, and is
	// dropped at the end of a generation, for a watch may last.
	reader wire.ListReader
	resync *time.Timer
}

func (r *Reflector) newSession(into sink) *session {
	s := &session{Reflector: r, into: into, policy: r.policy(), waits: newBackoff(r.Backoff)}
	if r.resyncPeriod > 0 {
		s.resync = time.NewTimer(r.resyncPeriod)
	}
	return s
}

func (s *session) close() {
	s.abandon()
	if s.resync != nil {
		s.resync.Stop()
	}
}

func (s *session) abandon() {
	s.reader = nil
	if s.current != nil {
		s.current.abandon()
		s.current = nil
	}
}

// step does the request of a state and returns what follows, and the error to
// report, if there was one.
func (s *session) step(ctx context.Context, state listwatch.State) (listwatch.Step, error) {
	if watching, ok := state.(listwatch.Watching); ok {
		s.enter(PhaseWatching)
		watching, outcome, err := s.watch(ctx, watching)
		return s.policy.Next(watching, outcome), err
	}
	s.enter(PhaseListing)
	outcome, err := s.list(ctx, state)
	next := s.policy.Next(state, outcome)
	switch next.Effect {
	case listwatch.AbandonGeneration:
		s.abandon()
	case listwatch.CompleteGeneration:
		if err := s.complete(ctx, outcome.ResourceVersion); err != nil {
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

// list reads one page into the generation under way.
func (s *session) list(ctx context.Context, state listwatch.State) (listwatch.Outcome, error) {
	if s.current == nil {
		g, err := s.into.begin(ctx)
		if err != nil {
			return listwatch.Outcome{Kind: listwatch.Failed}, err
		}
		s.current, s.partial = g, false
	}
	opts := s.policy.ListOptions(state)
	page, err := s.listPage(ctx, opts, func(index int, it item, unreadable error) error {
		if unreadable != nil {
			s.skip(&ItemError{Index: index, Key: it.key, Err: unreadable})
			s.keep(it.key)
		} else if err := s.current.show(ctx, it); err != nil && s.refused(ctx, err, ItemError{Index: index}) {
			s.keep(it.key)
		}
		return ctx.Err()
	})
	if err != nil {
		return listwatch.Outcome{Kind: listwatch.Classify(err)}, err
	}
	if opts.ResourceVersion == "0" && page.next != "" {
		s.policy.CachePaged = true
	}
	return listwatch.Outcome{Kind: listwatch.PageRead, ResourceVersion: page.resourceVersion, Continue: page.next}, nil
}

// keep takes an object that could not be read for shown.
func (s *session) keep(key string) {
	if key == "" {
		s.partial = true
	} else {
		s.current.keep(key)
	}
}

// complete ends the generation under way, which was read to its end.
func (s *session) complete(ctx context.Context, resourceVersion string) error {
	current := s.current
	s.current, s.reader = nil, nil
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

// watch follows the changes since a state and returns the state that it got to,
// what ended it, and the error to report.
func (s *session) watch(ctx context.Context, state listwatch.Watching) (listwatch.Watching, listwatch.Outcome, error) {
	timeout := s.watchTimeout()
	start := time.Now()
	w, err := s.source.WatchWithContext(ctx, s.policy.WatchOptions(state, timeout))
	if err == nil && w == nil {
		err = errors.New("the watch is nil")
	}
	if err != nil {
		return state, listwatch.Outcome{Kind: listwatch.Classify(err)}, err
	}
	defer s.stopWatch(w)
	s.contact()
	s.succeeded()
	s.onError(s.Reflector, nil)

	// A watch from no version, or from any, begins with the objects that there
	// are, in no order of their versions.
	follow := following{session: s, state: state, ordered: state.ResourceVersion != "" && state.ResourceVersion != "0"}
	quiet := newSilence(s.StallTimeout, timeout)
	defer quiet.stop()
	for {
		select {
		case <-ctx.Done():
			return follow.state, listwatch.Outcome{Kind: listwatch.WatchEnded}, nil
		case event, ok := <-w.ResultChan():
			if !ok {
				return follow.ended(start)
			}
			if outcome, err := follow.event(ctx, event); err != nil {
				return follow.state, outcome, err
			}
			// A slow store holds up the reader; that is not the server's silence.
			quiet.heard(event.Type == watch.Bookmark)
		case now := <-quiet.timer.C:
			if lasted, stalled := quiet.over(now); stalled {
				return follow.state, listwatch.Outcome{Kind: listwatch.Stalled}, &StallError{Silence: lasted}
			}
		case <-s.resyncDue():
			if err := s.doResync(ctx); err != nil {
				return follow.state, listwatch.Outcome{Kind: listwatch.Failed}, err
			}
			quiet.heard(false)
		}
	}
}

// stopMost is how long a watch may take to stop.
const stopMost = 10 * time.Second

// stopWatch stops w and waits until its goroutine has ended. It closes its
// channel then, so watch.Interface says; some do not.
func (s *session) stopWatch(w watch.Interface) {
	w.Stop()
	late := time.NewTimer(stopMost)
	defer late.Stop()
	for {
		select {
		case _, open := <-w.ResultChan():
			if !open {
				return
			}
		case <-late.C:
			s.fail(fmt.Errorf("a %T did not close its channel within %v of Stop", w, stopMost))
			return
		}
	}
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
}

// ended tells what the end of a watch's channel means.
func (f *following) ended(start time.Time) (listwatch.Watching, listwatch.Outcome, error) {
	switch {
	case time.Since(start) >= time.Second:
		return f.state, listwatch.Outcome{Kind: listwatch.WatchEnded}, nil
	case f.events == 0:
		return f.state, listwatch.Outcome{Kind: listwatch.WatchTooShort, At: time.Now()}, &cache.VeryShortWatchError{Name: f.name}
	default:
		// It got somewhere, but a server that goes on like this must not be asked
		// again at once.
		return f.state, listwatch.Outcome{Kind: listwatch.Failed}, nil
	}
}

// event handles one event. An error ends the watch, with outcome.
func (f *following) event(ctx context.Context, event watch.Event) (listwatch.Outcome, error) {
	f.contact()
	if event.Type == watch.Error {
		err := apierrors.FromObject(event.Object)
		return listwatch.ClassifyStream(err, time.Now()), err
	}
	index := f.events
	f.events++
	switch event.Type {
	case watch.Bookmark:
		return listwatch.Outcome{}, f.bookmark(event.Object, index)
	case watch.Added, watch.Modified, watch.Deleted:
	default:
		f.skip(&ItemError{Watch: true, Index: index, Err: fmt.Errorf("unknown event type %q", event.Type)})
		return listwatch.Outcome{}, nil
	}
	it, err := f.read(event.Object)
	if err != nil {
		f.skip(&ItemError{Watch: true, Index: index, Key: it.key, Err: err})
		return listwatch.Outcome{}, nil
	}
	stale, err := f.into.put(ctx, event.Type, it)
	switch {
	case ctx.Err() != nil:
		// What was not put must not move the resource version on.
		return listwatch.Outcome{Kind: listwatch.WatchEnded}, ctx.Err()
	case err != nil:
		f.refused(ctx, err, ItemError{Watch: true, Index: index})
	case stale:
		f.stale()
		return listwatch.Outcome{}, nil
	}
	f.advance(it.version.ResourceVersion, event.Type)
	return listwatch.Outcome{}, nil
}

func (f *following) bookmark(obj runtime.Object, index int) error {
	accessor, err := meta.Accessor(obj)
	if err != nil {
		f.skip(&ItemError{Watch: true, Index: index, Err: fmt.Errorf("bookmark: %w", err)})
		return nil
	}
	f.advance(accessor.GetResourceVersion(), watch.Bookmark)
	return nil
}

// advance moves the state on to the resource version of an event.
func (f *following) advance(resourceVersion string, event watch.EventType) {
	f.state.Quiet, f.state.Strikes = false, 0
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

// skip counts and reports an item that could not be read.
func (s *session) skip(err *ItemError) {
	s.skipped()
	s.fail(err)
}

// refused reports what the store, or what stands before it, said to the item at
// a place, and whether the item counts as one that could not be read.
func (s *session) refused(ctx context.Context, err error, place ItemError) (unreadable bool) {
	var skipped *ItemError
	switch {
	case ctx.Err() != nil:
		return false
	case errors.As(err, &skipped):
		skipped.Index, skipped.Watch = place.Index, place.Watch
		s.skip(skipped)
		return true
	default:
		s.fail(err)
		return false
	}
}
