package flow

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/tools/cache"

	"github.com/rvinformer/informer/api"
	"github.com/rvinformer/informer/internal/edge/report"
	"github.com/rvinformer/informer/internal/engine/deltaqueue"
	"github.com/rvinformer/informer/internal/engine/known"
	"github.com/rvinformer/informer/internal/leaf/claims"
	"github.com/rvinformer/informer/internal/leaf/failure"
)

// cached is what a flow into a store of whole objects does with them.
type cached struct {
	store   cache.Store
	handler cache.ResourceEventHandler
}

// KeepIn has the flow keep objects in a store, and call a handler after each change of it. User is
// the only informer that runs with the store.
func (o *Options) KeepIn(store cache.Store, handler cache.ResourceEventHandler, user known.User) {
	c := cached{store, handler}
	versions, failures := o.Versions, o.Report
	o.Claim = func() (release func(), err error) { return c.claim(user) }
	o.Seed = func() { c.seed(versions, failures) }
	o.Consumer = Keys{Process: c.process, Failing: PassOver}
}

// claim makes user the only one that runs with the store.
func (c cached) claim(user known.User) (release func(), err error) {
	release, other, ok := claims.Take(c.store, user)
	if !ok {
		return nil, fmt.Errorf("%w by the informer %q", api.ErrStorageInUse, other.(known.User).Name())
	}
	return release, nil
}

// seed takes what the store holds for delivered.
func (c cached) seed(versions *known.Versions, failures *report.Report) {
	for _, obj := range c.store.List() {
		if err := versions.Add(obj); err != nil {
			failures.Fail(fmt.Errorf("object in the store: %w", err))
		}
	}
}

func (c cached) process(e *deltaqueue.Entry, deltas []deltaqueue.Delta) error {
	for _, d := range deltas {
		if err := c.apply(d, e.Initial); err != nil {
			return err
		}
	}
	return nil
}

func (c cached) apply(d deltaqueue.Delta, isInInitialList bool) error {
	old, exists, err := c.store.GetByKey(d.Key)
	switch {
	case err != nil:
		return failure.OfStore("GetByKey", d.Key, err)
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
			return failure.OfStore("Update", d.Key, err)
		}
		c.handler.OnUpdate(old, d.Object)
		return nil
	default:
		return c.add(d, isInInitialList)
	}
}

func (c cached) add(d deltaqueue.Delta, isInInitialList bool) error {
	if err := c.store.Add(d.Object); err != nil {
		return failure.OfStore("Add", d.Key, err)
	}
	c.handler.OnAdd(d.Object, isInInitialList)
	return nil
}

// delete deletes obj, or what a tombstone says was stored: not every store has a
// key for a tombstone.
func (c cached) delete(obj interface{}) error {
	stored := obj
	if tombstone, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		stored = tombstone.Obj
	}
	if err := c.store.Delete(stored); err != nil {
		return failure.OfStore("Delete", "", err)
	}
	c.handler.OnDelete(obj)
	return nil
}

// recreated reports whether old is another object than d's, of the same name.
func recreated(old interface{}, d deltaqueue.Delta) bool {
	accessor, err := meta.Accessor(old)
	return err == nil && accessor.GetUID() != "" && d.Version.UID != "" && accessor.GetUID() != d.Version.UID
}
