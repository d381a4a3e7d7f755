package source

import (
	"context"
	"errors"
	"io"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/rvinformer/informer/internal/leaf/redact"
	"github.com/rvinformer/informer/internal/leaf/wire"
)

// wireFeed reads a watch off its body.
type wireFeed struct {
	source *Source
	body   *stream
	reader wire.WatchReader
	// initial is nil but for a watch-list whose initial events have not ended, and listed is how many
	// bytes they took, zero until they have ended.
	initial *initialEvents
	listed  int
}

// watchBuffer is what a watch holds while it waits. It grows with what comes.
const watchBuffer = 64

func (s *Source) openWire(ctx context.Context, opts metav1.ListOptions, patience time.Duration) (Feed, error) {
	opts.Watch = true
	body, err := s.open(ctx, opts, patience)
	if err != nil {
		return nil, s.resource.Unquoted(err)
	}
	f := &wireFeed{source: s, body: body, reader: wire.NewWatchReader(body, body.format, wire.Options{BufferBytes: watchBuffer})}
	if startsWithObjects(opts) {
		f.initial = &initialEvents{}
	}
	return f, nil
}

func (f *wireFeed) Expect(patience time.Duration) { f.body.expect(patience) }

func (f *wireFeed) Interrupt() { f.body.cancel(ErrUnread) }

// HTTP/2 receives a body in pieces (dataBuffer of golang.org/x/net/http2). A piece is as large as
// the frame that begins it, from 1 to 16 KiB, and is freed when it was filled and read to its end.
// So a quiet watch keeps the piece of its last initial events, as bookmarks hardly fill it.
const (
	largestPiece = 16 << 10
	// worthFreeing are so many initial events that they may have left a piece that is worth another
	// request.
	worthFreeing = 4 << 10
)

func (f *wireFeed) KeepsInitial() bool {
	return f.body.http2 && f.listed > worthFreeing && f.body.bytes-f.listed < largestPiece
}

func (f *wireFeed) Close() { f.body.close() }

// Wait is on the stack while a watch is idle, and so is what calls it. Functions with more on
// their stack have returned by then.
func (f *wireFeed) Wait() {
	f.source.reader.forget()
	f.reader.Wait()
}

func (f *wireFeed) Next(ctx context.Context, to *Change) error {
	*to = Change{}
	f.Wait()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return f.read(ctx, to)
}

// read reads an event whose beginning has come.
func (f *wireFeed) read(ctx context.Context, to *Change) error {
	event, err := f.reader.Next()
	waited := f.body.spent
	f.body.progressed()
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case err != nil:
		return f.failed(err, to)
	case f.initial == nil:
		return f.take(&event, to)
	default:
		return f.takeInitial(&event, waited, to)
	}
}

// takeInitial is take for an event that comes before the initial ones have ended.
func (f *wireFeed) takeInitial(event *wire.Event, waited time.Duration, to *Change) error {
	ended, err := f.initial.take(event, waited)
	if err == nil {
		err = f.take(event, to)
	}
	if err != nil || !ended {
		return err
	}
	check := f.source.newKindCheck()
	check.items = f.initial.objects
	f.initial, f.listed = nil, f.body.bytes
	f.body.arrivals.behind() // what has happened meanwhile
	to.InitialEnd, to.Current = true, 0
	return check.endInitialEvents(string(event.Kind))
}

// failed handles an event that the reader could not read.
func (f *wireFeed) failed(err error, to *Change) error {
	var lost *wire.ItemError
	if errors.As(err, &lost) {
		*to = Change{Unreadable: lost}
		return nil
	}
	switch {
	case err == io.EOF && f.initial == nil: // in order
		return err
	case errors.Is(err, io.ErrUnexpectedEOF) && f.initial == nil && f.body.hasLasted():
		return io.EOF // the server has ended it in the midst of an event that was not read
	case err == io.EOF:
		err = io.ErrUnexpectedEOF
	}
	return f.body.excuse(f.source.resource.Unquoted(err))
}

// take makes a change of the event that the reader lends.
func (f *wireFeed) take(event *wire.Event, to *Change) error {
	*to = Change{Event: event.Type}
	switch event.Type {
	case watch.Error:
		status, err := event.Status()
		if err != nil {
			return err
		}
		return redact.Error(apierrors.FromObject(status))
	case watch.Bookmark:
		to.Bookmark = string(event.ResourceVersion)
	default:
		to.Item, to.Unreadable = f.source.readEvent(event.Item)
		to.Outside = f.source.leavesOut(&to.Item)
		f.source.selectChange(to, f.body.selected, f.initial != nil)
	}
	to.Current = f.body.arrivals.proven(event.Type == watch.Bookmark, f.reader.Unread())
	return nil
}
