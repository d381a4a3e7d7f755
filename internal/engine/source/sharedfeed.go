package source

import (
	"context"
	"errors"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/rvinformer/informer/api"
	"github.com/rvinformer/informer/internal/edge/fanout"
	"github.com/rvinformer/informer/internal/engine/object"
)

// sharedFeed is one reader of a watch that it has in common with others.
//
// The initial events of a watch-list are its own, unless the list is a joint one. What follows them
// is shared.
type sharedFeed struct {
	source *Source
	// opts are those of a watch, but for the resource version.
	opts metav1.ListOptions
	// initial is the reader's own watch-list; nil when that is shared.
	initial *sharedWatch
	// joint is true until the initial events of a joint list end.
	joint bool
	// begins is where the initial events end, empty until they do.
	begins string
	tap    *fanout.Tap[SharedEvent]
	quiet  *silence
}

// openShared opens a watch that others may share, or shares that of others.
func (s *Source) openShared(ctx context.Context, opts metav1.ListOptions) (Feed, error) {
	patience := s.Patience.opening(opts)
	f := &sharedFeed{source: s, opts: opts, quiet: newSilence(patience)}
	f.opts.SendInitialEvents, f.opts.ResourceVersionMatch = nil, ""
	var err error
	s.here()
	switch {
	case s.joint != nil:
		f.tap, f.joint, s.joint = s.joint.tap, true, nil
		f.quiet.expect(forever) // the joint list looks for silence itself
		err = f.awaitAnswer(ctx)
	case startsWithObjects(opts):
		f.initial, err = s.openSharedWatch(ctx, opts, patience)
	default:
		// The watch may be one that others have asked for, for longer.
		f.quiet.expect(max(patience, s.Patience.Watch(s.longestWatch())))
		err = f.follow(ctx, opts.ResourceVersion)
		if err == nil && f.tap.Bookmarks() {
			f.quiet.expect(s.Patience.Bookmarked())
		}
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// awaitAnswer waits until the server has answered the request for a joint list. The error is that
// of the request.
func (f *sharedFeed) awaitAnswer(ctx context.Context) error {
	for {
		switch _, err := f.tap.Take(); {
		case err == nil, errors.Is(err, fanout.ErrLapsed): // others have read on: Next tells
			return nil
		case !errors.Is(err, fanout.ErrNothing):
			f.source.failed(f.tap)
			return err
		}
		if err := f.wait(ctx); err != nil {
			return err
		}
	}
}

// follow shares what follows a resource version.
func (f *sharedFeed) follow(ctx context.Context, resourceVersion string) (err error) {
	f.tap, err = f.source.Shared.Follow(ctx, resourceVersion, func() (fanout.Watch[SharedEvent], error) {
		return f.openFrom(ctx, resourceVersion)
	})
	return err
}

// openFrom opens a watch for others as well.
func (f *sharedFeed) openFrom(ctx context.Context, resourceVersion string) (fanout.Watch[SharedEvent], error) {
	opts := f.opts
	opts.ResourceVersion = resourceVersion
	w, err := f.source.openSharedWatch(ctx, opts, f.quiet.limit)
	if err != nil {
		return nil, err
	}
	return w, w.outlive(ctx)
}

func (f *sharedFeed) Expect(patience time.Duration) {
	if f.joint {
		return
	}
	f.quiet.expect(patience)
	if f.initial != nil {
		f.initial.feed.Expect(patience)
	}
}

// KeepsInitial is false: the end of one reader does not end the watch of the others.
func (f *sharedFeed) KeepsInitial() bool { return false }

// Wait leaves the wait to Next.
func (f *sharedFeed) Wait() {}

func (f *sharedFeed) Interrupt() { f.quiet.interrupt() }

func (f *sharedFeed) Next(ctx context.Context, to *Change) error {
	switch {
	case f.initial != nil && f.begins == "":
		return f.nextInitial(ctx, to)
	case f.initial != nil:
		if err := f.share(ctx); err != nil {
			return err
		}
	}
	// A slow handler holds up the reader; that is not the server's silence.
	f.quiet.heard()
	for {
		err := f.take(to)
		switch {
		case errors.Is(err, fanout.ErrNothing):
			err = f.wait(ctx)
		case errors.Is(err, fanout.ErrLapsed) && f.joint:
			return ErrUnread
		case errors.Is(err, fanout.ErrLapsed):
			err = f.catchUp(ctx)
		case err != nil:
			f.source.failed(f.tap)
			return err
		default:
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// take reads what there is. It stands apart since an event is large, and Next may wait for
// hours.
func (f *sharedFeed) take(to *Change) error {
	e, err := f.tap.Take()
	if err != nil {
		return err
	}
	f.source.heard(time.Now())
	f.joint = f.joint && !e.Begins
	err = f.read(e.Value, to)
	to.Joined = f.tap.Joined()
	return err
}

// share shares what follows the initial events.
func (f *sharedFeed) share(ctx context.Context) error {
	w := f.initial
	f.initial = nil
	if err := w.outlive(ctx); err != nil {
		return err
	}
	f.tap = f.source.Shared.Adopt(w, f.begins)
	return nil
}

// nextInitial reads an initial event.
func (f *sharedFeed) nextInitial(ctx context.Context, to *Change) error {
	err := f.initial.feed.Next(ctx, to)
	if err == nil && to.InitialEnd {
		f.begins = to.Bookmark
	}
	return err
}

// catchUp goes on with a watch from where the reader is, which was too slow for the others.
func (f *sharedFeed) catchUp(ctx context.Context) (err error) {
	lapsed := f.tap
	f.tap, err = f.source.Shared.GoOn(ctx, lapsed, func(resourceVersion string) (fanout.Watch[SharedEvent], error) {
		return f.openFrom(ctx, resourceVersion)
	})
	if errors.Is(err, fanout.ErrLapsed) { // only a list tells what it has missed
		return ErrUnread
	}
	if err != nil {
		return fmt.Errorf("a watch of the handler's own, which is behind: %w", err)
	}
	return nil
}

// wait waits until there may be an event.
func (f *sharedFeed) wait(ctx context.Context) error {
	for !f.quiet.interrupted.Load() {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-f.tap.Ready():
			return nil
		case now := <-f.quiet.timer.C:
			if lasted, stalled := f.quiet.over(now); stalled {
				f.tap.Doubt()
				return &api.StallError{Silence: lasted}
			}
		}
	}
	return ErrUnread
}

// read makes a change of an event.
func (f *sharedFeed) read(e SharedEvent, to *Change) error {
	*to = Change{Event: e.event, Bookmark: e.bookmark, InitialEnd: e.initialEnd, Current: e.current}
	f.source.read = e.arrived
	switch {
	case e.unreadable != nil:
		to.Item, to.Unreadable = object.Item{Key: e.key}, e.unreadable
	case e.event == watch.Bookmark:
	case e.outside:
		to.Outside, to.Item.Version.ResourceVersion = true, e.passed
	case e.object != nil:
		to.Item, to.Unreadable = f.source.readDecoded(e.object.DeepCopyObject(), object.Place{})
	default:
		to.Item, to.Unreadable = f.source.readEvent(e.item)
	}
	return nil
}

func (f *sharedFeed) Close() {
	f.quiet.stop()
	if f.initial != nil {
		f.initial.Close()
	}
	if f.tap != nil {
		f.tap.Close()
	}
}
