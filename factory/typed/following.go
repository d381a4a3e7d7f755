package typed

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/internal/object"
	"github.com/rvinformer/informer/internal/source"
)

// following is a source.Feed as a watch.Interface, in a goroutine that Stop waits for.
type following struct {
	lw        *listerWatcher
	feed      source.Feed
	transform cache.TransformFunc
	events    chan watch.Event
	// change is the newest.
	change source.Change
	// count is the number of events so far, and bookmarked how long the feed may be silent after a bookmark.
	count      int
	bookmarked time.Duration
	ctx        context.Context
	cancel     context.CancelFunc
	reading    sync.WaitGroup
}

// newFollowing follows feed, which was opened with ctx. Bookmarked is how long it may be silent after a bookmark.
func newFollowing(ctx context.Context, cancel context.CancelFunc, lw *listerWatcher, feed source.Feed, bookmarked time.Duration) *following {
	f := &following{
		lw: lw, feed: feed, transform: lw.transformer(), events: make(chan watch.Event),
		bookmarked: bookmarked, ctx: ctx, cancel: cancel,
	}
	f.reading.Go(f.read)
	return f
}

func (f *following) ResultChan() <-chan watch.Event { return f.events }

func (f *following) Stop() {
	f.cancel()
	f.reading.Wait()
}

func (f *following) read() {
	defer close(f.events)
	defer f.feed.Close()
	defer f.cancel()
	defer utilruntime.HandleCrashWithContext(f.ctx) // of a transform
	for {
		event, err := f.next()
		switch {
		case f.ctx.Err() != nil:
			return
		case err != nil:
			f.ended(err)
			return
		}
		if accessor, err := meta.Accessor(event.Object); err == nil {
			f.lw.reached(accessor.GetResourceVersion())
		}
		if event, ok := f.transformed(event); ok && !f.tell(event) {
			return
		}
	}
}

// next waits for an event and decodes its object. A bookmark has an object with nothing but a resource version.
func (f *following) next() (watch.Event, error) {
	c := &f.change
	if err := f.feed.Next(f.ctx, c); err != nil {
		return watch.Event{}, err
	}
	c.Item.Place = object.Place{Watch: true, Index: f.count}
	f.count++
	switch {
	case c.Unreadable != nil:
		return watch.Event{}, c.Item.Unreadable(c.Unreadable)
	case c.Event == watch.Bookmark:
		f.feed.Expect(f.bookmarked)
		return f.bookmark(c.Bookmark)
	}
	obj, err := c.Item.Decode()
	return watch.Event{Type: c.Event, Object: obj}, err
}

func (f *following) bookmark(resourceVersion string) (watch.Event, error) {
	obj := reflect.New(reflect.TypeOf(f.lw.example).Elem()).Interface().(runtime.Object)
	accessor, err := meta.Accessor(obj)
	if err != nil {
		return watch.Event{}, err
	}
	accessor.SetResourceVersion(resourceVersion)
	return watch.Event{Type: watch.Bookmark, Object: obj}, nil
}

func (f *following) tell(event watch.Event) bool {
	select {
	case f.events <- event:
		return true
	case <-f.ctx.Done():
		return false
	}
}

// ended tells the reflector why a watch has ended. One that ended properly, or was cut,
// or has gone quiet goes on from where it was; where something may be lost, the
// reflector lists.
func (f *following) ended(err error) {
	var status apierrors.APIStatus
	switch {
	case errors.As(err, &status):
		answer := status.Status()
		f.tell(watch.Event{Type: watch.Error, Object: &answer})
	case unreadable(err):
		reporter := apierrors.NewClientErrorReporter(http.StatusInternalServerError, http.MethodGet, "ClientWatchDecoding")
		f.tell(watch.Event{Type: watch.Error, Object: reporter.AsObject(fmt.Errorf("reading a watch: %w", err))})
	}
}

// unreadable tells what could not be read from what did not come.
func unreadable(err error) bool {
	var item *informer.ItemError
	if errors.As(err, &item) {
		return true
	}
	for _, reason := range []error{informer.ErrMalformed, informer.ErrTooLarge, informer.ErrEndless, informer.ErrNotWatch, informer.ErrContentType} {
		if errors.Is(err, reason) {
			return true
		}
	}
	return false
}

// transformed returns an event with its object transformed. Where that fails, it is
// lost, as client-go loses it, but a deletion is not.
func (f *following) transformed(event watch.Event) (watch.Event, bool) {
	if event.Type == watch.Bookmark {
		return event, true
	}
	obj, err := transformed(event.Object, f.transform)
	if err != nil {
		utilruntime.HandleErrorWithContext(f.ctx, err, "Unable to transform the object of a watch event", "event", event.Type)
		return event, event.Type == watch.Deleted
	}
	event.Object = obj
	return event, true
}
