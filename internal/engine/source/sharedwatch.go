package source

import (
	"context"
	"math"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/rvinformer/informer/internal/edge/fanout"
	"github.com/rvinformer/informer/internal/engine/object"
	"github.com/rvinformer/informer/internal/leaf/moment"
	"github.com/rvinformer/informer/internal/leaf/objectsize"
	"github.com/rvinformer/informer/internal/leaf/wire"
)

// Shared are lists and watches that several Sources have in common.
type Shared = fanout.Hub[SharedEvent]

// NewShared returns a Shared without a watch. Its Wait returns when the lists and watches that were
// begun have ended.
func NewShared() *Shared { return fanout.New[SharedEvent](fanout.Options{}) }

// SharedEvent is an event of a watch, or an item of a list, that several read, with memory of its
// own. None of them may change it.
type SharedEvent struct {
	event watch.EventType
	// Outside tells that an object is not in the shard, and passed is its resource version.
	// Otherwise, one of item, object and unreadable says what came, but for a bookmark.
	outside bool
	passed  string
	item    wire.Item
	// listed is what the list says of an item, and place is where it stands in the list. Page ends a
	// page.
	listed     metav1.TypeMeta
	place      object.Place
	page       *Page
	object     runtime.Object
	unreadable error
	key        string // of the unreadable event, if that is known

	bookmark   string
	initialEnd bool
	// arrived is when the watch has read it, and current is that of the Change.
	arrived, current moment.Moment
}

// sharedWatch is a watch for several readers. It ends with the context that it was opened
// with until it outlives that.
type sharedWatch struct {
	feed   Feed
	ctx    context.Context
	cancel context.CancelFunc
	detach func() bool
	told   Change
}

var _ fanout.Watch[SharedEvent] = &sharedWatch{}

// openSharedWatch opens a watch that does not use the Source.
func (s *Source) openSharedWatch(ctx context.Context, opts metav1.ListOptions, patience time.Duration) (*sharedWatch, error) {
	w := &sharedWatch{}
	w.ctx, w.cancel = context.WithCancel(context.WithoutCancel(ctx))
	w.detach = context.AfterFunc(ctx, w.cancel)
	var err error
	if w.feed, err = s.sibling().openOwn(w.ctx, opts, patience); err != nil {
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
func (w *sharedWatch) Next() (fanout.Event[SharedEvent], error) {
	w.feed.Expect(forever)
	if err := w.feed.Next(w.ctx, &w.told); err != nil {
		return fanout.Event[SharedEvent]{}, err
	}
	return shareable(&w.told), nil
}

// Stop implements fanout.Watch.
func (w *sharedWatch) Stop() { w.cancel() }

// Close implements fanout.Watch.
func (w *sharedWatch) Close() {
	w.detach()
	w.feed.Close()
	w.cancel()
}

// eventOverhead is about what a SharedEvent takes beside its item.
const eventOverhead = 512

// shareable makes an event with memory of its own.
func shareable(c *Change) fanout.Event[SharedEvent] {
	e := fanout.Event[SharedEvent]{
		Value:           SharedEvent{event: c.Event, bookmark: c.Bookmark, initialEnd: c.InitialEnd, arrived: c.Item.Arrived, current: c.Current},
		Bytes:           eventOverhead,
		ResourceVersion: c.Bookmark,
	}
	if c.Event == watch.Bookmark && c.Unreadable == nil {
		e.Bookmark = true
		return e
	}
	_, version := c.Item.Identity()
	e.ResourceVersion = version.ResourceVersion
	switch {
	case c.Outside:
		e.Value.outside, e.Value.passed = true, version.ResourceVersion
	case c.Item.Lent != nil:
		e.Value.item = c.Item.Lent.Item.Clone()
		e.Bytes += len(e.Value.item.Bytes)
	case c.Item.Object != nil:
		e.Value.object = c.Item.Object
		e.Bytes += int(objectsize.Of(c.Item.Object))
	default:
		e.Value.key, e.Value.unreadable = c.Item.Key, c.Unreadable
	}
	return e
}
