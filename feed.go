package informer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/rvinformer/informer/internal/listwatch"
	"github.com/rvinformer/informer/internal/object"
	"github.com/rvinformer/informer/internal/redact"
	"github.com/rvinformer/informer/internal/report"
	"github.com/rvinformer/informer/internal/wire"
)

// change is what a watch told: an object that was added, modified or deleted, a
// bookmark, or that something can not be read.
type change struct {
	event watch.EventType
	it    object.Item
	// unreadable is what is wrong with the event; it may have a key all the same.
	unreadable error
	// bookmark is the resource version of a bookmark, and initialEnd tells the one
	// that ends the initial events.
	bookmark   string
	initialEnd bool
}

// errResyncDue is returned by a feed instead of a change when the store is to be
// resynced.
var errResyncDue = errors.New("resync due")

// feed is a watch that is open. It is to be closed.
type feed interface {
	// next waits for the next change, which is lent until the next call, and stores it
	// in to. The error is errResyncDue; io.EOF for the ordinary end; a *StallError; an apierrors.APIStatus
	// that the server sent; a *BodyError; or that of ctx.
	next(ctx context.Context, to *change) error
	// expect sets for how long it may be silent.
	expect(patience time.Duration)
	close()
}

// wireFeed reads a watch off its body.
type wireFeed struct {
	*session
	body   *stream
	reader wire.WatchReader
	// objects tells that it has shown some.
	objects bool
}

// watchBuffer is what a watch holds while it waits. It grows with what comes.
const watchBuffer = 128

func (s *session) openFeed(ctx context.Context, opts metav1.ListOptions, patience time.Duration) (feed, error) {
	if s.shared != nil {
		return s.openShared(ctx, opts, patience)
	}
	return s.openOwn(ctx, opts, patience)
}

// openOwn opens a watch of the session's own.
func (s *session) openOwn(ctx context.Context, opts metav1.ListOptions, patience time.Duration) (feed, error) {
	if s.resource == nil {
		return s.openChannel(ctx, opts, patience)
	}
	opts.Watch = true
	body, err := s.open(ctx, opts, patience)
	if err != nil {
		return nil, err
	}
	f := &wireFeed{session: s, body: body}
	f.reader = wire.NewWatchReader(body, body.format, wire.Options{BufferBytes: watchBuffer})
	if s.resync != nil {
		return pump(f), nil
	}
	return f, nil
}

func (f *wireFeed) expect(patience time.Duration) { f.body.expect(patience) }

func (f *wireFeed) close() { f.body.close() }

func (f *wireFeed) next(ctx context.Context, to *change) error {
	f.forget(to)
	f.reader.Wait()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return f.read(ctx, to)
}

// forget lets go of what was lent before: it must not keep a buffer that the reader gives
// back. It is not to be on the stack of next.
//
//go:noinline
func (f *wireFeed) forget(to *change) {
	*to = change{}
	if f.lent != nil {
		f.lent.Item = wire.Item{}
	}
}

// read reads an event of which something has come.
func (f *wireFeed) read(ctx context.Context, to *change) error {
	event, err := f.reader.Next()
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case err != nil:
		return f.failed(err, to)
	default:
		return f.tell(&event, to)
	}
}

// failed handles an event that the reader could not read.
func (f *wireFeed) failed(err error, to *change) error {
	var lost *wire.ItemError
	switch {
	case errors.As(err, &lost):
		*to = change{unreadable: lost}
		return nil
	case err == io.EOF:
		return io.EOF
	default:
		return err
	}
}

// tell makes a change of the event that the reader lends.
func (f *wireFeed) tell(event *wire.Event, to *change) error {
	*to = change{event: event.Type}
	switch event.Type {
	case watch.Error:
		status, err := event.Status()
		if err != nil {
			return err
		}
		return redact.Error(apierrors.FromObject(status))
	case watch.Bookmark:
		to.bookmark, to.initialEnd = string(event.ResourceVersion), event.InitialEventsEnd
		if to.initialEnd {
			return f.endInitialEvents(string(event.Kind), to.bookmark)
		}
	default:
		f.objects = true
		to.it, to.unreadable = f.readLent(event.Item, metav1.TypeMeta{}, object.Place{})
	}
	return nil
}

// channelFeed is a watch of a ListerWatcher of others.
type channelFeed struct {
	*session
	watch  watch.Interface
	cancel func()
	quiet  *silence
}

func (s *session) openChannel(ctx context.Context, opts metav1.ListOptions, patience time.Duration) (feed, error) {
	w, cancel, err := s.watchForeign(ctx, opts)
	if err != nil {
		return nil, err
	}
	if w == nil {
		cancel()
		return nil, errors.New("the watch is nil")
	}
	s.report.Contact()
	return &channelFeed{session: s, watch: w, cancel: cancel, quiet: newSilence(patience)}, nil
}

func (f *channelFeed) expect(patience time.Duration) { f.quiet.expect(patience) }

func (f *channelFeed) next(ctx context.Context, to *change) error {
	// A slow store holds up the reader; that is not the server's silence.
	f.quiet.heard()
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case event, ok := <-f.watch.ResultChan():
			if !ok {
				return io.EOF
			}
			f.report.Contact()
			return f.read(event, to)
		case now := <-f.quiet.timer.C:
			if lasted, stalled := f.quiet.over(now); stalled {
				return &report.StallError{Silence: lasted}
			}
		case <-f.resyncDue():
			return errResyncDue
		}
	}
}

// read makes a change of an event.
func (f *channelFeed) read(event watch.Event, to *change) error {
	*to = change{event: event.Type}
	switch event.Type {
	case watch.Error:
		return redact.Error(apierrors.FromObject(event.Object))
	case watch.Bookmark:
		to.bookmark, to.unreadable = bookmarkVersion(event.Object)
	case watch.Added, watch.Modified, watch.Deleted:
		to.it, to.unreadable = f.session.read(event.Object, object.Place{})
	default:
		to.unreadable = fmt.Errorf("unknown event type %q", event.Type)
	}
	return nil
}

func bookmarkVersion(obj runtime.Object) (string, error) {
	accessor, err := meta.Accessor(obj)
	if err != nil {
		return "", fmt.Errorf("bookmark: %w", err)
	}
	return accessor.GetResourceVersion(), nil
}

// stopMost is how long a watch may take to stop.
const stopMost = 10 * time.Second

// close stops the watch and waits until its goroutine has ended. It closes its
// channel then, so watch.Interface says; some do not.
func (f *channelFeed) close() {
	f.quiet.stop()
	defer f.cancel()
	f.watch.Stop()
	late := time.NewTimer(stopMost)
	defer late.Stop()
	for {
		select {
		case _, open := <-f.watch.ResultChan():
			if !open {
				return
			}
		case <-late.C:
			f.report.Fail(fmt.Errorf("a %T did not close its channel within %v of Stop", f.watch, stopMost))
			return
		}
	}
}

// pumpedFeed reads a wireFeed in a goroutine, so that a resync need not wait for
// the next event. It hands one change over at a time, since changes are lent.
type pumpedFeed struct {
	*wireFeed
	changes chan pumped
	// taken is sent to when the change that was handed over is of no more use.
	taken   chan struct{}
	holding bool
	closed  chan struct{}
	reading sync.WaitGroup
}

type pumped struct {
	change
	err error
}

func pump(f *wireFeed) *pumpedFeed {
	p := &pumpedFeed{wireFeed: f, changes: make(chan pumped), taken: make(chan struct{}), closed: make(chan struct{})}
	p.reading.Go(p.read)
	return p
}

func (p *pumpedFeed) read() {
	for {
		var c change
		err := p.wireFeed.next(p.body.ctx, &c)
		select {
		case p.changes <- pumped{c, err}:
		case <-p.closed:
			return
		}
		if err != nil {
			return
		}
		select {
		case <-p.taken:
		case <-p.closed:
			return
		}
	}
}

func (p *pumpedFeed) next(ctx context.Context, to *change) error {
	*to = change{}
	if p.holding {
		p.taken <- struct{}{}
		p.holding = false
	}
	select {
	case c := <-p.changes:
		p.holding = c.err == nil
		*to = c.change
		return c.err
	case <-p.resyncDue():
		return errResyncDue
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (p *pumpedFeed) close() {
	close(p.closed)
	p.wireFeed.close()
	p.reading.Wait()
}

// classify names the error that a feed ended with.
func classifyFeed(err error, at time.Time) listwatch.Outcome {
	var stalled *report.StallError
	var body *wire.BodyError
	switch {
	case errors.As(err, &stalled):
		return listwatch.Outcome{Kind: listwatch.Stalled}
	case errors.As(err, &body) && !wire.Malformed(body):
		return listwatch.Outcome{Kind: listwatch.WatchEnded}
	default:
		return listwatch.ClassifyStream(err, at)
	}
}
