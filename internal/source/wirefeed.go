package source

import (
	"context"
	"errors"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/rvinformer/informer/internal/redact"
	"github.com/rvinformer/informer/internal/wire"
)

// wireFeed reads a watch off its body.
type wireFeed struct {
	source *Source
	body   *stream
	reader wire.WatchReader
	// objects tells that it has shown some, and begins that its initial events have not ended.
	objects, begins bool
	// initial is how many bytes the initial events took, zero until they have ended.
	initial int
}

// watchBuffer is what a watch holds while it waits. It grows with what comes.
const watchBuffer = 64

func (s *Source) openWire(ctx context.Context, opts metav1.ListOptions, patience time.Duration) (Feed, error) {
	opts.Watch = true
	body, err := s.open(ctx, opts, patience)
	if err != nil {
		return nil, err
	}
	return &wireFeed{source: s, body: body, begins: startsWithObjects(opts), reader: wire.NewWatchReader(body, body.format, wire.Options{BufferBytes: watchBuffer})}, nil
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
	return f.body.http2 && f.initial > worthFreeing && f.body.bytes-f.initial < largestPiece
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
	f.body.progressed()
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case err != nil:
		return f.failed(err, to)
	default:
		return f.take(&event, to)
	}
}

// failed handles an event that the reader could not read.
func (f *wireFeed) failed(err error, to *Change) error {
	var lost *wire.ItemError
	if errors.As(err, &lost) {
		*to = Change{Unreadable: lost}
		return nil
	}
	return err
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
		to.Bookmark, to.InitialEnd = string(event.ResourceVersion), event.InitialEventsEnd
		if to.InitialEnd {
			f.begins = false
			f.initial = f.body.bytes
			f.body.arrivals.behind() // what has happened meanwhile
			check := f.source.newKindCheck()
			check.items = f.objects
			return check.endInitialEvents(string(event.Kind))
		}
	default:
		f.objects = true
		to.Item, to.Unreadable = f.source.readEvent(event.Item)
		to.Outside = f.source.leavesOut(&to.Item)
		f.source.selectChange(to, f.body.selected, f.begins)
	}
	to.Current = f.body.arrivals.proven(event.Type == watch.Bookmark, f.reader.Unread())
	return nil
}
