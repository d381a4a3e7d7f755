package informer

import (
	"context"
	"errors"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/ptr"

	"github.com/rvinformer/informer/internal/fanout"
	"github.com/rvinformer/informer/internal/object"
	"github.com/rvinformer/informer/internal/report"
	"github.com/rvinformer/informer/internal/rv"
)

// sharedFeed is one reader of a watch that it has in common with others.
//
// The initial events of a watch-list are its own: they are read off the wire as ever. What
// follows them is shared.
type sharedFeed struct {
	*session
	// opts are those of a watch, but for the resource version.
	opts metav1.ListOptions
	// initial is the reader's watch-list; nil when that is shared.
	initial *sharedWatch
	// begins is where the initial events end, empty until they do.
	begins string
	tap    *fanout.Tap[sharedEvent]
	quiet  *silence
}

// openShared opens a watch that others may share, or shares that of others.
func (s *session) openShared(ctx context.Context, opts metav1.ListOptions, patience time.Duration) (feed, error) {
	f := &sharedFeed{session: s, opts: opts, quiet: newSilence(patience)}
	f.opts.SendInitialEvents, f.opts.ResourceVersionMatch = nil, ""
	var err error
	if ptr.Deref(opts.SendInitialEvents, false) {
		f.initial, err = s.openSharedWatch(ctx, opts, patience)
	} else {
		// The watch may be one that others have asked for, for longer.
		f.quiet.expect(max(patience, s.watchPatience(s.longestWatch())))
		err = f.follow(ctx, opts.ResourceVersion)
		if err == nil && f.tap.Bookmarks() {
			f.quiet.expect(f.bookmarkPatience())
		}
	}
	if err != nil {
		f.quiet.stop()
		return nil, err
	}
	return f, nil
}

// compareToShown notes it if what was listed is older than what a shared watch had shown when the
// list began: that watch tells of what was before the server was restored.
func (s *session) compareToShown(listed string) {
	if rv.Compare(listed, s.shown) == rv.Older {
		s.shared.WentBack(listed)
	}
}

// follow shares what follows a resource version.
func (f *sharedFeed) follow(ctx context.Context, resourceVersion string) (err error) {
	f.tap, err = f.shared.Follow(ctx, resourceVersion, func() (fanout.Watch[sharedEvent], error) {
		return f.openFrom(ctx, resourceVersion)
	})
	return err
}

// openFrom opens a watch for others as well.
func (f *sharedFeed) openFrom(ctx context.Context, resourceVersion string) (fanout.Watch[sharedEvent], error) {
	opts := f.opts
	opts.ResourceVersion = resourceVersion
	w, err := f.openSharedWatch(ctx, opts, f.quiet.limit)
	if err != nil {
		return nil, err
	}
	return w, w.outlive(ctx)
}

func (f *sharedFeed) expect(patience time.Duration) {
	f.quiet.expect(patience)
	if f.initial != nil {
		f.initial.feed.expect(patience)
	}
}

func (f *sharedFeed) next(ctx context.Context, to *change) error {
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
		case errors.Is(err, fanout.ErrLapsed):
			err = f.catchUp(ctx)
		default:
			return err
		}
		if err != nil {
			return err
		}
	}
}

// take reads what there is. It stands apart since an event is large, and next may wait for
// hours.
func (f *sharedFeed) take(to *change) error {
	e, err := f.tap.Take()
	if err != nil {
		return err
	}
	f.report.Contact()
	return f.read(e.Value, to)
}

// share shares what follows the initial events.
func (f *sharedFeed) share(ctx context.Context) error {
	w := f.initial
	f.initial = nil
	if err := w.outlive(ctx); err != nil {
		return err
	}
	f.tap = f.shared.Adopt(w, f.begins)
	return nil
}

// nextInitial reads an initial event.
func (f *sharedFeed) nextInitial(ctx context.Context, to *change) error {
	err := f.initial.feed.next(ctx, to)
	if err == nil && to.event == watch.Bookmark && to.initialEnd {
		f.begins = to.bookmark
	}
	return err
}

// catchUp goes on with a watch from where the reader is, who was too slow for the others.
func (f *sharedFeed) catchUp(ctx context.Context) (err error) {
	lapsed := f.tap
	f.tap, err = f.shared.GoOn(ctx, lapsed, func(resourceVersion string) (fanout.Watch[sharedEvent], error) {
		return f.openFrom(ctx, resourceVersion)
	})
	if err != nil {
		return fmt.Errorf("a watch of the handler's own, which is behind: %w", err)
	}
	return nil
}

// wait waits until there may be an event.
func (f *sharedFeed) wait(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-f.tap.Ready():
			return nil
		case now := <-f.quiet.timer.C:
			if lasted, stalled := f.quiet.over(now); stalled {
				f.tap.Doubt()
				return &report.StallError{Silence: lasted}
			}
		case <-f.resyncDue():
			return errResyncDue
		}
	}
}

// read makes a change of an event.
func (f *sharedFeed) read(e sharedEvent, to *change) error {
	*to = change{event: e.event, bookmark: e.bookmark, initialEnd: e.initialEnd}
	switch {
	case e.unreadable != nil:
		to.it, to.unreadable = object.Item{Key: e.key}, e.unreadable
	case e.event == watch.Bookmark:
	case e.object != nil:
		to.it, to.unreadable = f.session.read(e.object.DeepCopyObject(), object.Place{})
	default:
		to.it, to.unreadable = f.readLent(e.item, metav1.TypeMeta{}, object.Place{})
	}
	return nil
}

func (f *sharedFeed) close() {
	f.quiet.stop()
	if f.initial != nil {
		f.initial.Close()
	}
	if f.tap != nil {
		f.tap.Close()
	}
}
