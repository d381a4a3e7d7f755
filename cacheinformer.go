package informer

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"

	"github.com/rvinformer/informer/internal/claims"
	"github.com/rvinformer/informer/internal/deltaqueue"
	"github.com/rvinformer/informer/internal/flow"
	"github.com/rvinformer/informer/internal/intake"
	"github.com/rvinformer/informer/internal/known"
	"github.com/rvinformer/informer/internal/report"
)

// NewInformer returns an ordinary informer: a controller that keeps store, which
// is the caller's, in step with what lw lists and watches, and tells h after each
// change. The store must be keyed by cache.MetaNamespaceKeyFunc or
// cache.DeletionHandlingMetaNamespaceKeyFunc. What it holds when Run begins counts
// as told before. Only one informer may run with it at a time: Run of another one reports
// ErrStorageInUse and returns.
//
// H is told as client-go tells it: of every change that a watch brings, one call for
// each, in the order of the watch; OnUpdate for every object of a later list,
// changed or not, and, with a resyncPeriod that is not zero, for every object of
// the store in that period; cache.DeletedFinalStateUnknown, with the object that
// the store had, for a deletion that a list found. An object that was deleted and
// created again under its name is an OnDelete and an OnAdd.
//
// H is called in the goroutine of Run, so that a panic reaches the caller of Run, after
// everything else that Run has started has ended. While h is busy, changes wait in
// memory. Where 1,000 wait, or the default Budget is spent, the watch is read no further
// until h has returned. A server may give up a watch that is not read: a list then tells
// the newest state, and not what led to it.
//
// Transfor, which may be nil, changes objects before they are queued and stored.
// It panics if lw, store or h is nil, or h is typed and takes another type than objType.
func NewInformer(lw cache.ListerWatcher, objType runtime.Object, store cache.Store, resyncPeriod time.Duration, h cache.ResourceEventHandler, transfor cache.TransformFunc) cache.Controller {
	switch {
	case lw == nil:
		panic("informer: the ListerWatcher is required")
	case store == nil:
		panic("informer: the store is required")
	case h == nil:
		panic("informer: the handler is required")
	}
	taken := takenBy(h)
	objType, err := taken.example(objType, transfor != nil)
	if err != nil {
		panic(fmt.Sprintf("informer: %v", err))
	}
	r := NewNamedReflector(callerName(), lw, objType, nil, resyncPeriod)
	versions := &known.Versions{}
	c := cacheInformer{reflector: r, versions: versions, store: store, handler: h}
	options := r.flow(versions)
	options.Claim, options.Seed = c.claim, c.seed
	options.Ordinary = true
	options.Intake = intake.New(intake.Options{
		Report: &r.report, Form: r.wireForm(), Transform: transfor, Accepts: taken.accepts, Taken: taken.goType, Stored: store.List,
	})
	options.Consumer = flow.Keys{Process: c.process, Failing: flow.PassOver}
	return newFlowController(r, options)
}

// cacheInformer is what a flow into a store of whole objects does with them.
type cacheInformer struct {
	reflector *Reflector
	versions  *known.Versions
	store     cache.Store
	handler   cache.ResourceEventHandler
}

// claim makes the informer the only one of NewInformer that runs with its store.
func (c cacheInformer) claim() (release func(), err error) {
	release, other, ok := claims.Take(c.store, c.reflector)
	if !ok {
		return nil, fmt.Errorf("%w by the informer %q", report.ErrStorageInUse, other.(*Reflector).name)
	}
	return release, nil
}

// seed takes what the store holds for told.
func (c cacheInformer) seed() {
	for _, obj := range c.store.List() {
		if err := c.versions.Add(obj); err != nil {
			c.reflector.report.Fail(fmt.Errorf("object in the store: %w", err))
		}
	}
}

func (c cacheInformer) process(e *deltaqueue.Entry, deltas []deltaqueue.Delta) error {
	for _, d := range deltas {
		if err := c.apply(d, e.Initial); err != nil {
			return err
		}
	}
	return nil
}

func (c cacheInformer) apply(d deltaqueue.Delta, isInInitialList bool) error {
	old, exists, err := c.store.GetByKey(d.Key)
	switch {
	case err != nil:
		return report.OfStore("GetByKey", d.Key, err)
	case d.Type == cache.Deleted && !exists:
		return nil
	case d.FinalStateUnknown():
		return c.delete(cache.DeletedFinalStateUnknown{Key: d.Key, Obj: old})
	case d.Type == cache.Deleted:
		return c.delete(d.Object)
	case exists && recreated(old, d):
		if err := c.delete(cache.DeletedFinalStateUnknown{Key: d.Key, Obj: old}); err != nil {
			return err
		}
		return c.add(d, isInInitialList)
	case exists:
		if err := c.store.Update(d.Object); err != nil {
			return report.OfStore("Update", d.Key, err)
		}
		c.handler.OnUpdate(old, d.Object)
		return nil
	default:
		return c.add(d, isInInitialList)
	}
}

func (c cacheInformer) add(d deltaqueue.Delta, isInInitialList bool) error {
	if err := c.store.Add(d.Object); err != nil {
		return report.OfStore("Add", d.Key, err)
	}
	c.handler.OnAdd(d.Object, isInInitialList)
	return nil
}

// delete deletes obj, or what a tombstone says was stored: not every store has a
// key for a tombstone.
func (c cacheInformer) delete(obj interface{}) error {
	stored := obj
	if tombstone, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		stored = tombstone.Obj
	}
	if err := c.store.Delete(stored); err != nil {
		return report.OfStore("Delete", "", err)
	}
	c.handler.OnDelete(obj)
	return nil
}

// recreated reports whether old is another object than d's, of the same name.
func recreated(old interface{}, d deltaqueue.Delta) bool {
	accessor, err := meta.Accessor(old)
	return err == nil && accessor.GetUID() != "" && d.Version.UID != "" && accessor.GetUID() != d.Version.UID
}
