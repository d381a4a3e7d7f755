package objectcache

import (
	"context"
	"fmt"
	"reflect"
	goruntime "runtime"
	"time"

	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/internal/engine/object"
	"github.com/rvinformer/informer/internal/leaf/backoff"
	"github.com/rvinformer/informer/internal/leaf/moment"
)

// registration is one handler of an informer.
type registration struct {
	informer *Informer
	name     string
	logger   klog.Logger
	// call calls the handler with a change.
	call func(c Change, shared *sharedObjects)
	// requested is the resync period that the handler has asked for, and period the one that it
	// has; due is when the next resync is. They are of the informer's lock.
	requested, period time.Duration
	due               time.Time
	// synced is closed when the handler has been called with the initial list, ended when it is
	// called no more.
	synced, ended chan struct{}

	// What follows is of the lock of the changelog, which is nil before the handler is added.

	changelog *changelog
	// at and index are where the next event is or will be, after which the changelog had so many
	// events and bytes.
	at            *segment
	index         int
	events, bytes int64
	// batch is what the handler is called with before the next event, and place is where in it the
	// call under way is, or the next one.
	batch *batch
	place int
	// arrived is that of the event, or of the batch, that the handler is called with.
	arrived moment.Moment
	// queued is the number of calls that wait.
	queued int
	// resyncing tells that a resync waits for the handler, or is under way.
	resyncing bool
	// working tells that a goroutine calls the handler, calling that it is in a call, removed that
	// it must not begin another.
	working, calling, removed bool
	// syncedYet tells that synced is closed.
	syncedYet bool
}

var _ cache.ResourceEventHandlerRegistration = (*registration)(nil)

// HasSynced reports whether the handler was called with every object of the initial list.
func (r *registration) HasSynced() bool { return cache.IsDone(r.HasSyncedChecker()) }

// HasSyncedChecker has a channel that is closed when HasSynced becomes true.
func (r *registration) HasSyncedChecker() cache.DoneChecker {
	return doneChecker{func() string {
		return fmt.Sprintf("%s + event handler %s", r.informer.HasSyncedChecker().Name(), r.name)
	}, r.synced}
}

// ShutdownChan is closed when the handler was removed, or its informer has stopped, and its last
// call has returned.
func (r *registration) ShutdownChan() <-chan struct{} { return r.ended }

// AddEventHandler adds a handler with the resync period of the informer: see
// AddEventHandlerWithOptions.
func (i *Informer) AddEventHandler(handler cache.ResourceEventHandler) (cache.ResourceEventHandlerRegistration, error) {
	return i.AddEventHandlerWithOptions(handler, cache.HandlerOptions{})
}

// AddEventHandlerWithResyncPeriod adds a handler with a resync period of its own: see
// AddEventHandlerWithOptions.
func (i *Informer) AddEventHandlerWithResyncPeriod(handler cache.ResourceEventHandler, resyncPeriod time.Duration) (cache.ResourceEventHandlerRegistration, error) {
	return i.AddEventHandlerWithOptions(handler, cache.HandlerOptions{ResyncPeriod: &resyncPeriod})
}

// AddEventHandlerWithOptions adds a handler. If the informer runs, the handler is called first with
// all objects of the store, as additions of the initial list, and then with all that follows. It
// does not wait for that. The error says that the informer has stopped.
func (i *Informer) AddEventHandlerWithOptions(handler cache.ResourceEventHandler, options cache.HandlerOptions) (cache.ResourceEventHandlerRegistration, error) {
	r := i.newRegistration(nameOf(handler), options)
	r.call = func(c Change, shared *sharedObjects) { i.callHandler(handler, c, shared) }
	return i.add(r, options)
}

// AddChangeHandler adds a handler that is called with changes whose objects are not decoded. It
// decodes what it needs. It is called as a cache.ResourceEventHandler is.
func (i *Informer) AddChangeHandler(handler func(Change), options cache.HandlerOptions) (cache.ResourceEventHandlerRegistration, error) {
	r := i.newRegistration(nameOf(handler), options)
	r.call = func(c Change, _ *sharedObjects) { handler(c) }
	return i.add(r, options)
}

// nameOf returns the type of a handler for logs.
func nameOf(handler any) string {
	if t := reflect.TypeOf(handler); t != nil {
		return t.String()
	}
	return "<nil>"
}

func (i *Informer) newRegistration(name string, options cache.HandlerOptions) *registration {
	return &registration{
		informer: i, name: name, logger: ptr.Deref(options.Logger, klog.Background()), synced: make(chan struct{}), ended: make(chan struct{}),
	}
}

func (i *Informer) add(r *registration, options cache.HandlerOptions) (cache.ResourceEventHandlerRegistration, error) {
	i.changing.Lock()
	defer i.changing.Unlock()
	i.changelog.applying.Lock()
	defer i.changelog.applying.Unlock()
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.stopped {
		return nil, fmt.Errorf("handler %s was not added to shared informer because it has stopped already", r.name)
	}
	i.scheduleLocked(r, ptr.Deref(options.ResyncPeriod, i.options.ResyncPeriod))
	var kept *batch
	if i.started {
		kept = i.objects.all()
	}
	i.changelog.add(r, kept)
	return r, nil
}

// RemoveEventHandler removes a handler. It does not wait: a call that is under way goes on, and no
// other follows. The error says that the handle is not one of an Informer.
func (i *Informer) RemoveEventHandler(handle cache.ResourceEventHandlerRegistration) error {
	r, ok := handle.(*registration)
	if !ok {
		return fmt.Errorf("remove a handler by a %T: it is not of an objectcache.Informer", handle)
	}
	i.changing.Lock()
	defer i.changing.Unlock()
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.changelog.remove(r) {
		i.resyncs.forget(r)
	}
	return nil
}

// callHandler calls a handler with a change, with objects that it takes.
func (i *Informer) callHandler(handler cache.ResourceEventHandler, c Change, shared *sharedObjects) {
	takes := takenBy(handler)
	switch {
	case c.Type == informer.Added && takes.add:
		i.withObject(c.New, shared.newObject(), func(obj any) { handler.OnAdd(obj, c.IsInInitialList) })
	case c.Type == informer.Updated && takes.update:
		i.withObject(c.New, shared.newObject(), func(obj any) {
			i.withObject(c.Old, shared.oldObject(), func(old any) { handler.OnUpdate(old, obj) })
		})
	case c.Type == informer.Synced && takes.update:
		i.withObject(c.New, shared.newObject(), func(obj any) { handler.OnUpdate(obj, obj) })
	case c.Type == informer.Deleted && takes.delete:
		i.withLast(c, shared, handler.OnDelete)
	}
}

// withObject calls call with an object, unless it cannot be decoded, which is reported.
func (i *Informer) withObject(o Stored, shared *sharedObject, call func(obj any)) {
	d, err := shared.object(o)
	if err != nil {
		i.fail(o.Key(), err)
		return
	}
	call(d.Object)
	goruntime.KeepAlive(d) // others find it until then
}

// withLast calls call with the last state of a deleted object. A deletion counts, whatever became
// of its object.
func (i *Informer) withLast(c Change, shared *sharedObjects, call func(obj any)) {
	d, err := shared.oldObject().object(c.Old)
	switch {
	case err != nil:
		i.fail(c.Key, err)
		last, _ := c.Old.version() // as much as can be read
		call(object.Tombstone(c.Old.store.kind, c.Key, last))
	case c.FinalStateUnknown:
		call(cache.DeletedFinalStateUnknown{Key: c.Key, Obj: d.Object})
	default:
		call(d.Object)
	}
	goruntime.KeepAlive(d)
}

// queueLocked notes that an event, or the calls of a batch, wait for the handler.
func (r *registration) queueLocked(b *batch) {
	if b == nil {
		r.queued++
		return
	}
	r.queued += b.len()
	r.changelog.beginLocked(b, r)
}

// hireLocked starts a goroutine that calls the handler, if something waits for it and none does.
func (r *registration) hireLocked() {
	switch {
	case r.changelog.ctx == nil || r.working || r.removed:
	case r.batch == nil && r.events == r.changelog.events:
		r.checkSyncedLocked()
	default:
		ctx := r.changelog.ctx
		r.working = true
		r.changelog.run(func() { r.run(ctx) })
	}
}

// run calls the handler while something waits for it.
func (r *registration) run(ctx context.Context) {
	returned := false
	defer func() {
		if !returned { // the handler has ended the goroutine
			r.again()
		}
	}()
	for {
		c, shared, ok := r.next()
		if !ok {
			break
		}
		if r.crashes(c, shared) && backoff.Sleep(ctx, afterCrash) != nil {
			continue // next sees that the informer stops
		}
	}
	returned = true
}

// afterCrash is how long a handler that has panicked is left alone, if the process survives that.
// It is client-go's.
const afterCrash = time.Second

// crashes calls the handler, and reports whether it has panicked.
func (r *registration) crashes(c Change, shared *sharedObjects) (panicked bool) {
	defer utilruntime.HandleCrashWithLogger(r.logger, func(context.Context, interface{}) {
		panicked = true
		r.informer.setup.Report.CountFailure()
	})
	call := r.informer.setup.Report.BeginCall()
	r.call(c, shared)
	call.End()
	return false
}

// next returns what the handler is to be called with next. If there is nothing, the goroutine is to
// end.
func (r *registration) next() (c Change, shared *sharedObjects, ok bool) {
	for {
		e, place, working := r.take()
		switch {
		case !working:
			return Change{}, nil, false
		case e.batch == nil:
			return e.change(), e.shared, true
		}
		if o := r.changelog.find(e.batch, place); !o.IsZero() {
			return e.batch.change(o), nil, true
		}
	}
}

// take returns the next event, or a batch and the next place in it. If there is neither, the
// goroutine is to end.
func (r *registration) take() (e event, place int, working bool) {
	f := r.changelog
	f.mu.Lock()
	defer f.mu.Unlock()
	r.returnedLocked()
	for !r.removed {
		if r.batch != nil && r.place < r.batch.len() {
			r.calling = true
			return event{batch: r.batch}, r.place, true
		}
		r.endBatchLocked()
		r.checkSyncedLocked()
		if r.events == f.events {
			r.working = false
			return event{}, 0, false
		}
		e := r.takeEventLocked()
		switch {
		case e.batch == nil:
			r.calling = true
			return e, 0, true
		case e.takenBy(r):
			r.batch, r.place = e.batch, 0
		}
	}
	r.working = false
	close(r.ended)
	return event{}, 0, false
}

// returnedLocked notes that the call under way has returned.
func (r *registration) returnedLocked() {
	if !r.calling {
		return
	}
	r.calling = false
	r.queued--
	if r.batch != nil { // it was not an event, and the handler was not removed
		r.place++
	}
}

// endBatchLocked notes that the batch under way is finished.
func (r *registration) endBatchLocked() {
	if r.batch == nil {
		return
	}
	r.resyncing = r.resyncing && r.batch.due == nil
	r.changelog.endLocked(r.batch, r)
	r.batch = nil
}

func (r *registration) takeEventLocked() event {
	if r.index == len(r.at.events) {
		r.at, r.index = r.at.next, 0
	}
	e := r.at.events[r.index]
	r.index++
	r.events++
	slowest := r.changelog.bytes-r.bytes == r.changelog.counted
	r.bytes += e.bytes
	if slowest {
		r.changelog.countLocked()
	}
	r.arrived = e.arrived
	if r.events == r.changelog.events {
		r.changelog.dropReadLocked()
	}
	return e
}

// oldestLocked returns when the oldest change arrived that the handler was not called with, or
// whose call is under way; zero if there is none.
func (r *registration) oldestLocked() moment.Moment {
	switch {
	case r.removed || r.queued == 0:
		return 0
	case r.calling || r.batch != nil:
		return r.arrived
	}
	at, index := r.at, r.index
	if index == len(at.events) {
		at, index = at.next, 0
	}
	return at.events[index].arrived
}

// checkSyncedLocked notes that the handler was called with the initial list, if it was.
func (r *registration) checkSyncedLocked() {
	f := r.changelog
	if !r.syncedYet && f.syncedAt >= 0 && r.events >= f.syncedAt {
		r.syncedYet = true
		close(r.synced)
	}
}

// again has the handler called on after a call that did not return.
func (r *registration) again() {
	r.changelog.mu.Lock()
	defer r.changelog.mu.Unlock()
	r.returnedLocked()
	r.working = false
	if r.removed {
		close(r.ended)
	}
	r.hireLocked()
}

// endLocked lets no other call begin.
func (r *registration) endLocked() {
	if r.removed {
		return
	}
	r.changelog.leaveLocked(r)
	r.removed, r.batch, r.at = true, nil, nil
	if !r.working {
		close(r.ended)
	}
}
