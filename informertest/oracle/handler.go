package oracle

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"

	"github.com/rvinformer/informer"
)

// Handler is a handler that records what it is told, and hands it on to next, if that
// is not nil. It is for informers of this module and of client-go: there, an update
// with an equal version is taken as Synced.
//
// It listens to unchanged objects, unless next is a
// ResourceEventHandlerFuncs or ResourceEventHandlerDetailedFuncs with no SyncFunc.
func (o *Oracle) Handler(next informer.ResourceEventHandler) informer.ResourceEventHandler {
	if next == nil {
		next = informer.ResourceEventHandlerFuncs{SyncFunc: func(interface{}) {}}
	}
	h := handler{o, next}
	if ignoresSynced(next) {
		return informer.ResourceEventHandlerDetailedFuncs{AddFunc: h.OnAdd, UpdateFunc: h.OnUpdate, DeleteFunc: h.OnDelete}
	}
	return h
}

func ignoresSynced(h informer.ResourceEventHandler) bool {
	switch h := h.(type) {
	case informer.ResourceEventHandlerFuncs:
		return h.SyncFunc == nil
	case informer.ResourceEventHandlerDetailedFuncs:
		return h.SyncFunc == nil
	}
	return false
}

type handler struct {
	oracle *Oracle
	next   informer.ResourceEventHandler
}

// OnAdd records an Added.
func (h handler) OnAdd(obj interface{}, isInInitialList bool) {
	e := eventOf(informer.Added, obj)
	e.IsInInitialList = isInInitialList
	_ = h.oracle.during(func() error { h.next.OnAdd(obj, isInInitialList); return nil }, e)
}

// OnUpdate records an Updated, or a Synced if the old object is of the same version.
func (h handler) OnUpdate(oldObj, newObj interface{}) {
	e := eventOf(informer.Updated, newObj)
	if old, ok := oldObj.(runtime.Object); ok && e.ResourceVersion != "" {
		if _, uid, version, ok := identity(old); ok && version == e.ResourceVersion && uid == e.UID {
			e.Type = informer.Synced
		}
	}
	_ = h.oracle.during(func() error { h.next.OnUpdate(oldObj, newObj); return nil }, e)
}

// OnDelete records a Deleted.
func (h handler) OnDelete(obj interface{}) {
	_ = h.oracle.during(func() error { h.next.OnDelete(obj); return nil }, eventOf(informer.Deleted, obj))
}

// OnSync records a Synced.
func (h handler) OnSync(obj interface{}) {
	_ = h.oracle.during(func() error { h.next.OnSync(obj); return nil }, eventOf(informer.Synced, obj))
}

// eventOf is the event of an object, or of a cache.DeletedFinalStateUnknown, whose
// object may be nil or no object.
func eventOf(t informer.EventType, obj interface{}) Event {
	e := Event{Type: t}
	e.Key, _ = cache.DeletionHandlingMetaNamespaceKeyFunc(obj)
	if tombstone, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		e.FinalStateUnknown = true
		obj = tombstone.Obj
	}
	e.Object, _ = obj.(runtime.Object)
	_, e.UID, e.ResourceVersion, _ = identity(e.Object)
	return e
}

// BatchHandler is a handler that records what it is told, and hands it on to next, if
// that is not nil. Where next is not to be told of unchanged objects, that is said
// of both: informer.IgnoreSynced(o.BatchHandler(next)).
func (o *Oracle) BatchHandler(next informer.BatchHandler) informer.BatchHandler {
	if next == nil {
		next = informer.BatchHandlerFunc(func(context.Context, []informer.Event) error { return nil })
	}
	return batchHandler{o, next}
}

type batchHandler struct {
	oracle *Oracle
	next   informer.BatchHandler
}

// OnBatch records a batch.
func (h batchHandler) OnBatch(ctx context.Context, events []informer.Event) error {
	told := make([]Event, len(events))
	for i, e := range events {
		_, uid, _, _ := identity(e.Object)
		told[i] = Event{
			Type: e.Type, Key: e.Key, UID: uid, ResourceVersion: e.ResourceVersion, Object: e.Object,
			IsInInitialList: e.IsInInitialList, FinalStateUnknown: e.FinalStateUnknown,
		}
	}
	return h.oracle.during(func() error { return h.next.OnBatch(ctx, events) }, told...)
}

// during records what is told while f runs, however that ends.
func (o *Oracle) during(f func() error, events ...Event) (err error) {
	done := o.Told(events...)
	returned := false
	defer func() {
		if returned {
			return
		}
		if value := recover(); value != nil {
			done(ErrPanic)
			panic(value)
		}
		done(ErrExit)
	}()
	err = f()
	returned = true
	done(err)
	return err
}

var (
	_ informer.ResourceEventHandler = handler{}
	_ cache.ResourceEventHandler    = handler{}
	_ informer.BatchHandler         = batchHandler{}
)
