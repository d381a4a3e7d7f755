package typed

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/internal/items"
)

// following is an items.Watch as a watch.Interface, in a goroutine that Stop waits for.
type following struct {
	items     items.Watch
	transform cache.TransformFunc
	// reached is told the version of each event.
	reached func(version string)
	events  chan watch.Event
	ctx     context.Context
	cancel  context.CancelFunc
	reading sync.WaitGroup
}

// newFollowing follows opened, which ends with ctx.
func newFollowing(ctx context.Context, cancel context.CancelFunc, opened items.Watch, transform cache.TransformFunc, reached func(version string)) *following {
	f := &following{items: opened, transform: transform, reached: reached, events: make(chan watch.Event), ctx: ctx, cancel: cancel}
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
	defer f.cancel()
	defer f.items.Close()
	defer utilruntime.HandleCrashWithContext(f.ctx) // of a transform
	for {
		event, err := f.items.Next(f.ctx)
		switch {
		case f.ctx.Err() != nil:
			return
		case err != nil:
			f.ended(err)
			return
		}
		if accessor, err := meta.Accessor(event.Object); err == nil {
			f.reached(accessor.GetResourceVersion())
		}
		if event, ok := f.transformed(event); ok && !f.tell(event) {
			return
		}
	}
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
