package source

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/rvinformer/informer/api"
	"github.com/rvinformer/informer/internal/engine/object"
	"github.com/rvinformer/informer/internal/leaf/moment"
	"github.com/rvinformer/informer/internal/leaf/redact"
)

// channelFeed is a watch of a ListerWatcher of others.
type channelFeed struct {
	source *Source
	watch  watch.Interface
	cancel func()
	quiet  *silence
	// selected is what it was asked to select, nil for everything.
	selected *selected
	// arrivals counts events in place of bytes.
	arrivals arrivals
}

func (s *Source) openChannel(ctx context.Context, opts metav1.ListOptions, patience time.Duration) (Feed, error) {
	opened := moment.Now()
	w, of, cancel, err := s.watchForeign(ctx, opts)
	if err != nil {
		return nil, err
	}
	if w == nil {
		cancel()
		return nil, errors.New("the watch is nil")
	}
	s.heard(time.Now())
	return &channelFeed{source: s, watch: w, selected: of, cancel: cancel, quiet: newSilence(patience), arrivals: arrivals{opened: opened}}, nil
}

func (f *channelFeed) Expect(patience time.Duration) { f.quiet.expect(patience) }

func (f *channelFeed) KeepsInitial() bool { return false }

// Wait leaves the wait to Next.
func (f *channelFeed) Wait() {}

func (f *channelFeed) Interrupt() { f.quiet.interrupt() }

func (f *channelFeed) Next(ctx context.Context, to *Change) error {
	// A slow store holds up the reader; that is not the server's silence.
	f.quiet.heard()
	for !f.quiet.interrupted.Load() {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case event, ok := <-f.watch.ResultChan():
			if !ok {
				return io.EOF
			}
			f.received()
			return f.take(event, to)
		case now := <-f.quiet.timer.C:
			if lasted, stalled := f.quiet.over(now); stalled {
				return &api.StallError{Silence: lasted}
			}
		}
	}
	return ErrUnread
}

func (f *channelFeed) received() {
	last := f.source.read
	f.source.heard(time.Now())
	began := moment.Of(f.quiet.since)
	f.arrivals.returned(last, began, f.source.read, 1, false, ran(began, f.source.read))
}

// take makes a change of an event.
func (f *channelFeed) take(event watch.Event, to *Change) error {
	*to = Change{Event: event.Type}
	switch event.Type {
	case watch.Error:
		return redact.Error(apierrors.FromObject(event.Object))
	case watch.Bookmark:
		to.Bookmark, to.Unreadable = bookmarkVersion(event.Object)
	case watch.Added, watch.Modified, watch.Deleted:
		to.Item, to.Unreadable = f.source.readDecoded(event.Object, object.Place{})
		to.Outside = f.source.leavesOut(&to.Item)
		f.source.selectChange(to, f.selected, false)
	default:
		to.Unreadable = fmt.Errorf("unknown event type %q", event.Type)
	}
	to.Current = f.arrivals.proven(event.Type == watch.Bookmark, len(f.watch.ResultChan()))
	return nil
}

func bookmarkVersion(obj runtime.Object) (string, error) {
	accessor, err := meta.Accessor(obj)
	if err != nil {
		return "", fmt.Errorf("bookmark: %w", err)
	}
	return accessor.GetResourceVersion(), nil
}

// maxStop is how long a watch, or a call, may take to stop.
const maxStop = 10 * time.Second

// Close stops the watch and waits until its goroutine has ended. watch.Interface says that it
// closes its channel then, but some do not.
func (f *channelFeed) Close() {
	f.quiet.stop()
	defer f.cancel()
	f.watch.Stop()
	late := time.NewTimer(maxStop)
	defer late.Stop()
	for {
		select {
		case _, open := <-f.watch.ResultChan():
			if !open {
				return
			}
		case <-late.C:
			f.source.Report.Fail(fmt.Errorf("a %T did not close its channel within %v of Stop", f.watch, maxStop))
			return
		}
	}
}
