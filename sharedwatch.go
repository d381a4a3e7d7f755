package informer

import (
	"context"
	"math"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/rvinformer/informer/internal/fanout"
	"github.com/rvinformer/informer/internal/objectsize"
	"github.com/rvinformer/informer/internal/wire"
)

// sharedEvent is an event of a watch that several read, with memory of its own. None of
// them may change it.
type sharedEvent struct {
	event watch.EventType
	// One of item, object and unreadable says what came, but for a bookmark.
	item       wire.Item
	object     runtime.Object
	unreadable error
	key        string // of what is unreadable, if that is known

	bookmark   string
	initialEnd bool
}

// sharedWatch is a watch for several readers. It ends with the context that it was opened
// with until it outlives that.
type sharedWatch struct {
	feed   feed
	ctx    context.Context
	cancel context.CancelFunc
	detach func() bool
	told   change
}

var _ fanout.Watch[sharedEvent] = &sharedWatch{}

// openSharedWatch opens a watch that does not use the session.
func (s *session) openSharedWatch(ctx context.Context, opts metav1.ListOptions, patience time.Duration) (*sharedWatch, error) {
	w := &sharedWatch{}
	w.ctx, w.cancel = context.WithCancel(context.WithoutCancel(ctx))
	w.detach = context.AfterFunc(ctx, w.cancel)
	own := &session{Reflector: s.Reflector, form: s.form, slow: s.slow}
	var err error
	if w.feed, err = own.openOwn(w.ctx, opts, patience); err != nil {
		w.detach()
		w.cancel()
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		return nil, err
	}
	return w, nil
}

// outlive lets the watch outlive ctx, with which it was opened, or closes it if that has
// ended: the error says so.
func (w *sharedWatch) outlive(ctx context.Context) error {
	if w.detach() {
		return nil
	}
	w.Close()
	return context.Cause(ctx)
}

// forever is for how long a watch may be silent whose readers look for that.
const forever = time.Duration(math.MaxInt64)

// Next implements fanout.Watch.
func (w *sharedWatch) Next() (fanout.Event[sharedEvent], error) {
	w.feed.expect(forever)
	if err := w.feed.next(w.ctx, &w.told); err != nil {
		return fanout.Event[sharedEvent]{}, err
	}
	return shareable(&w.told), nil
}

// Stop implements fanout.Watch.
func (w *sharedWatch) Stop() { w.cancel() }

// Close implements fanout.Watch.
func (w *sharedWatch) Close() {
	w.detach()
	w.feed.close()
	w.cancel()
}

// eventOverhead is about what a sharedEvent takes beside its item.
const eventOverhead = 512

// shareable makes an event with memory of its own.
func shareable(c *change) fanout.Event[sharedEvent] {
	e := fanout.Event[sharedEvent]{
		Value:           sharedEvent{event: c.event, bookmark: c.bookmark, initialEnd: c.initialEnd},
		Bytes:           eventOverhead,
		ResourceVersion: c.bookmark,
	}
	if c.event == watch.Bookmark && c.unreadable == nil {
		e.Bookmark = true
		return e
	}
	_, version := c.it.Identity()
	e.ResourceVersion = version.ResourceVersion
	switch {
	case c.it.Lent != nil:
		e.Value.item = c.it.Lent.Item.Clone()
		e.Bytes += len(e.Value.item.Bytes)
	case c.it.Object != nil:
		e.Value.object = c.it.Object
		e.Bytes += int(objectsize.Of(c.it.Object))
	default:
		e.Value.key, e.Value.unreadable = c.it.Key, c.unreadable
	}
	return e
}
