package informer

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/rvinformer/informer/internal/edge/report"
	"github.com/rvinformer/informer/internal/engine/object"
)

// ResourceEventHandler is called for what happens to the objects of an informer. The
// calls for one key come in order and one at a time. An informer keeps no
// objects: the old object of OnUpdate is always nil, and objects belong to the
// handler.
//
//   - OnAdd: an object is new. isInInitialList is true for those that the first
//     complete list of a Run brought.
//   - OnUpdate: an object that was there has changed, by one or more changes.
//   - OnDelete: an object is gone. It gets its final state, or, where the
//     deletion was found by a list that did not show the object any more, a
//     cache.DeletedFinalStateUnknown whose Obj is a *metav1.PartialObjectMetadata
//     with what was last known: namespace, name, resource version, and the UID
//     if that is known. An object that came and went before it could be
//     delivered is left out.
//   - OnSync: a list showed an object in the version that the handler had
//     acknowledged before: nothing changed.
//
// An object that was deleted and created again under its name is an OnDelete of
// the old and an OnAdd of the new.
type ResourceEventHandler interface {
	cache.ResourceEventHandler
	OnSync(obj interface{})
}

// ResourceEventHandlerFuncs is a ResourceEventHandler of functions, each of
// which may be nil. Where SyncFunc is nil, unchanged objects are not even
// queued.
type ResourceEventHandlerFuncs struct {
	AddFunc    func(obj interface{})
	UpdateFunc func(oldObj, newObj interface{})
	DeleteFunc func(obj interface{})
	SyncFunc   func(obj interface{})
}

// OnAdd calls AddFunc if it is not nil.
func (r ResourceEventHandlerFuncs) OnAdd(obj interface{}, isInInitialList bool) {
	if r.AddFunc != nil {
		r.AddFunc(obj)
	}
}

// OnUpdate calls UpdateFunc if it is not nil.
func (r ResourceEventHandlerFuncs) OnUpdate(oldObj, newObj interface{}) {
	if r.UpdateFunc != nil {
		r.UpdateFunc(oldObj, newObj)
	}
}

// OnDelete calls DeleteFunc if it is not nil.
func (r ResourceEventHandlerFuncs) OnDelete(obj interface{}) {
	if r.DeleteFunc != nil {
		r.DeleteFunc(obj)
	}
}

// OnSync calls SyncFunc if it is not nil.
func (r ResourceEventHandlerFuncs) OnSync(obj interface{}) {
	if r.SyncFunc != nil {
		r.SyncFunc(obj)
	}
}

func (r ResourceEventHandlerFuncs) wantsSync() bool { return r.SyncFunc != nil }

// ResourceEventHandlerDetailedFuncs is a ResourceEventHandlerFuncs whose AddFunc
// learns whether the object is in the initial list.
type ResourceEventHandlerDetailedFuncs struct {
	AddFunc    func(obj interface{}, isInInitialList bool)
	UpdateFunc func(oldObj, newObj interface{})
	DeleteFunc func(obj interface{})
	SyncFunc   func(obj interface{})
}

// OnAdd calls AddFunc if it is not nil.
func (r ResourceEventHandlerDetailedFuncs) OnAdd(obj interface{}, isInInitialList bool) {
	if r.AddFunc != nil {
		r.AddFunc(obj, isInInitialList)
	}
}

// OnUpdate calls UpdateFunc if it is not nil.
func (r ResourceEventHandlerDetailedFuncs) OnUpdate(oldObj, newObj interface{}) {
	r.plain().OnUpdate(oldObj, newObj)
}

// OnDelete calls DeleteFunc if it is not nil.
func (r ResourceEventHandlerDetailedFuncs) OnDelete(obj interface{}) { r.plain().OnDelete(obj) }

// OnSync calls SyncFunc if it is not nil.
func (r ResourceEventHandlerDetailedFuncs) OnSync(obj interface{}) { r.plain().OnSync(obj) }

func (r ResourceEventHandlerDetailedFuncs) wantsSync() bool { return r.SyncFunc != nil }

func (r ResourceEventHandlerDetailedFuncs) plain() ResourceEventHandlerFuncs {
	return ResourceEventHandlerFuncs{UpdateFunc: r.UpdateFunc, DeleteFunc: r.DeleteFunc, SyncFunc: r.SyncFunc}
}

// DeletedObject is what a typed handler gets for a deletion.
type DeletedObject[T runtime.Object] struct {
	// Key is "namespace/name" or "name".
	Key string
	// Object is the final state. It is the zero T where that is not known.
	Object T
	// LastKnown is what was last known of an object whose final state is not,
	// and nil otherwise.
	LastKnown *metav1.PartialObjectMetadata
}

// FinalStateUnknown reports whether a list found the deletion: Object is not set.
func (d DeletedObject[T]) FinalStateUnknown() bool { return d.LastKnown != nil }

// TypedResourceEventHandlerFuncs is a ResourceEventHandler of functions that
// take objects of one type, and any of them may be nil. The old object of
// UpdateFunc is the zero T, since an informer keeps no objects.
//
// An informer of this package decodes objects to T where it has no ExampleObject, also
// within a FilteringResourceEventHandler, and refuses an ExampleObject of another type.
// What a Transform makes of them has to be a T: any other object is skipped, as one that
// cannot be read. Called by others with an object of another type, the handler reports it
// to utilruntime.ErrorHandlers and does not hand it over.
type TypedResourceEventHandlerFuncs[T runtime.Object] struct {
	AddFunc    func(obj T)
	UpdateFunc func(oldObj, newObj T)
	DeleteFunc func(obj DeletedObject[T])
	SyncFunc   func(obj T)
}

// OnAdd calls AddFunc if it is not nil.
func (r TypedResourceEventHandlerFuncs[T]) OnAdd(obj interface{}, isInInitialList bool) {
	r.detailed().OnAdd(obj, isInInitialList)
}

// OnUpdate calls UpdateFunc if it is not nil.
func (r TypedResourceEventHandlerFuncs[T]) OnUpdate(oldObj, newObj interface{}) {
	r.detailed().OnUpdate(oldObj, newObj)
}

// OnDelete calls DeleteFunc if it is not nil.
func (r TypedResourceEventHandlerFuncs[T]) OnDelete(obj interface{}) { r.detailed().OnDelete(obj) }

// OnSync calls SyncFunc if it is not nil.
func (r TypedResourceEventHandlerFuncs[T]) OnSync(obj interface{}) { r.detailed().OnSync(obj) }

func (r TypedResourceEventHandlerFuncs[T]) wantsSync() bool { return r.SyncFunc != nil }

func (r TypedResourceEventHandlerFuncs[T]) takes() object.Taken { return object.TakenAs[T]() }

func (r TypedResourceEventHandlerFuncs[T]) detailed() TypedResourceEventHandlerDetailedFuncs[T] {
	detailed := TypedResourceEventHandlerDetailedFuncs[T]{UpdateFunc: r.UpdateFunc, DeleteFunc: r.DeleteFunc, SyncFunc: r.SyncFunc}
	if r.AddFunc != nil {
		detailed.AddFunc = func(obj T, _ bool) { r.AddFunc(obj) }
	}
	return detailed
}

// TypedResourceEventHandlerDetailedFuncs is a TypedResourceEventHandlerFuncs
// whose AddFunc learns whether the object is in the initial list.
type TypedResourceEventHandlerDetailedFuncs[T runtime.Object] struct {
	AddFunc    func(obj T, isInInitialList bool)
	UpdateFunc func(oldObj, newObj T)
	DeleteFunc func(obj DeletedObject[T])
	SyncFunc   func(obj T)
}

// OnAdd calls AddFunc if it is not nil.
func (r TypedResourceEventHandlerDetailedFuncs[T]) OnAdd(obj interface{}, isInInitialList bool) {
	if r.AddFunc == nil {
		return
	}
	if typed, ok := typedObject[T]("OnAdd", obj); ok {
		r.AddFunc(typed, isInInitialList)
	}
}

// OnUpdate calls UpdateFunc if it is not nil.
func (r TypedResourceEventHandlerDetailedFuncs[T]) OnUpdate(oldObj, newObj interface{}) {
	if r.UpdateFunc == nil {
		return
	}
	var old T
	if oldObj != nil {
		typed, ok := typedObject[T]("OnUpdate", oldObj)
		if !ok {
			return
		}
		old = typed
	}
	if typed, ok := typedObject[T]("OnUpdate", newObj); ok {
		r.UpdateFunc(old, typed)
	}
}

// OnDelete calls DeleteFunc if it is not nil.
func (r TypedResourceEventHandlerDetailedFuncs[T]) OnDelete(obj interface{}) {
	if r.DeleteFunc == nil {
		return
	}
	key, err := object.Key(obj)
	if err != nil {
		report.Unhandled(klog.Background(), fmt.Errorf("OnDelete: %w", err), "Handler was not called")
		return
	}
	deleted := DeletedObject[T]{Key: key}
	if tombstone, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		obj = tombstone.Obj
		if last, ok := obj.(*metav1.PartialObjectMetadata); ok {
			deleted.LastKnown = last
			r.DeleteFunc(deleted)
			return
		}
	}
	if typed, ok := typedObject[T]("OnDelete", obj); ok {
		deleted.Object = typed
		r.DeleteFunc(deleted)
	}
}

// OnSync calls SyncFunc if it is not nil.
func (r TypedResourceEventHandlerDetailedFuncs[T]) OnSync(obj interface{}) {
	if r.SyncFunc == nil {
		return
	}
	if typed, ok := typedObject[T]("OnSync", obj); ok {
		r.SyncFunc(typed)
	}
}

func (r TypedResourceEventHandlerDetailedFuncs[T]) wantsSync() bool { return r.SyncFunc != nil }

func (r TypedResourceEventHandlerDetailedFuncs[T]) takes() object.Taken { return object.TakenAs[T]() }

func typedObject[T runtime.Object](call string, obj interface{}) (typed T, ok bool) {
	typed, ok = obj.(T)
	if !ok {
		report.Unhandled(klog.Background(), fmt.Errorf("%s: object is a %T, the handler takes a %T", call, obj, typed), "Handler was not called")
	}
	return typed, ok
}

// FilteringResourceEventHandler hands on to Handler what passes FilterFunc.
//
// FilterFunc is never called with nil, nor for a deletion whose final state is
// not known: there the object may have passed, and OnDelete is handed on.
type FilteringResourceEventHandler struct {
	FilterFunc func(obj interface{}) bool
	Handler    ResourceEventHandler
}

// OnAdd hands on an object that passes.
func (r FilteringResourceEventHandler) OnAdd(obj interface{}, isInInitialList bool) {
	if r.FilterFunc(obj) {
		r.Handler.OnAdd(obj, isInInitialList)
	}
}

// OnUpdate compares what passes before and after: an object that enters the
// filter is an OnAdd, one that leaves it an OnDelete of the old object.
//
// Where there is no old object, as always with a ResourceVersionInformer, the
// old one may have passed: a new object that passes is an OnUpdate, and one
// that does not is an OnDelete of the new object. Handler must then expect
// OnUpdate and OnDelete for objects that it never got.
func (r FilteringResourceEventHandler) OnUpdate(oldObj, newObj interface{}) {
	passes := r.FilterFunc(newObj)
	passed := passes
	if oldObj != nil {
		passed = r.FilterFunc(oldObj)
	}
	switch {
	case passes && passed:
		r.Handler.OnUpdate(oldObj, newObj)
	case passes:
		r.Handler.OnAdd(newObj, false)
	case oldObj == nil:
		r.Handler.OnDelete(newObj)
	case passed:
		r.Handler.OnDelete(oldObj)
	}
}

// OnDelete hands on an object that passes, or whose metadata alone is known. A
// cache.DeletedFinalStateUnknown that holds a whole object is given to FilterFunc
// as it is.
func (r FilteringResourceEventHandler) OnDelete(obj interface{}) {
	if stateUnknown(obj) || r.FilterFunc(obj) {
		r.Handler.OnDelete(obj)
	}
}

func stateUnknown(obj interface{}) bool {
	tombstone, ok := obj.(cache.DeletedFinalStateUnknown)
	if !ok {
		return false
	}
	_, ok = tombstone.Obj.(*metav1.PartialObjectMetadata)
	return ok
}

// OnSync hands on an object that passes.
func (r FilteringResourceEventHandler) OnSync(obj interface{}) {
	if r.FilterFunc(obj) {
		r.Handler.OnSync(obj)
	}
}

func (r FilteringResourceEventHandler) wantsSync() bool { return hearsSync(r.Handler) }

func (r FilteringResourceEventHandler) takes() object.Taken { return takenBy(r.Handler) }

// syncChooser is a handler that knows whether anyone listens to its OnSync, or to
// events of type Synced.
type syncChooser interface{ wantsSync() bool }

// hearsSync reports whether handler, of either kind, is to get objects that a list
// shows unchanged.
func hearsSync(h interface{}) bool {
	chooser, ok := h.(syncChooser)
	return !ok || chooser.wantsSync()
}

var (
	_ ResourceEventHandler = ResourceEventHandlerFuncs{}
	_ ResourceEventHandler = ResourceEventHandlerDetailedFuncs{}
	_ ResourceEventHandler = TypedResourceEventHandlerFuncs[runtime.Object]{}
	_ ResourceEventHandler = TypedResourceEventHandlerDetailedFuncs[runtime.Object]{}
	_ ResourceEventHandler = FilteringResourceEventHandler{}
)

// taker is a handler that takes objects of one type.
type taker interface{ takes() object.Taken }

// takenBy is the type of the objects that a handler takes.
func takenBy(handler interface{}) object.Taken {
	if t, ok := handler.(taker); ok {
		return t.takes()
	}
	return object.Taken{}
}
