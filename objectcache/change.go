package objectcache

import (
	"sync"
	"weak"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"

	"github.com/rvinformer/informer"
)

// Change is one change of the store, with objects that are still encoded.
type Change struct {
	// Type is informer.Added, Updated or Deleted, or Synced for a resync.
	Type informer.EventType
	// Key is "namespace/name", or "name".
	Key string
	// Old is the object before an update, and the last state of one that was deleted. It is zero
	// for an addition.
	Old Stored
	// New is the object after the change. It is zero for a deletion.
	New Stored
	// IsInInitialList tells of an addition that the object was there before the handler.
	IsInInitialList bool
	// FinalStateUnknown tells of a deletion that a list found it: Old is what the store had.
	FinalStateUnknown bool
}

// taken says which calls of a handler need their objects.
type taken struct{ add, update, delete bool }

// takenBy returns what a handler takes, as far as its type tells.
func takenBy(handler cache.ResourceEventHandler) taken {
	switch h := handler.(type) {
	case cache.ResourceEventHandlerFuncs:
		return taken{h.AddFunc != nil, h.UpdateFunc != nil, h.DeleteFunc != nil}
	case *cache.ResourceEventHandlerFuncs:
		return taken{h.AddFunc != nil, h.UpdateFunc != nil, h.DeleteFunc != nil}
	case cache.ResourceEventHandlerDetailedFuncs:
		return taken{h.AddFunc != nil, h.UpdateFunc != nil, h.DeleteFunc != nil}
	case *cache.ResourceEventHandlerDetailedFuncs:
		return taken{h.AddFunc != nil, h.UpdateFunc != nil, h.DeleteFunc != nil}
	}
	return taken{true, true, true}
}

// sharedObjects are the decoded objects of one event, for as long as a handler has them, or until
// the next garbage collection.
type sharedObjects struct{ old, new sharedObject }

func (s *sharedObjects) oldObject() *sharedObject {
	if s == nil {
		return nil
	}
	return &s.old
}

func (s *sharedObjects) newObject() *sharedObject {
	if s == nil {
		return nil
	}
	return &s.new
}

// sharedObject is one of them. A nil one is not shared.
type sharedObject struct {
	mu sync.Mutex
	of weak.Pointer[decoded]
}

// decoded is an object that handlers share.
type decoded struct{ runtime.Object }

// object decodes o, unless another handler has.
func (s *sharedObject) object(o Stored) (*decoded, error) {
	if s == nil {
		obj, err := o.Shared()
		return &decoded{obj}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if d := s.of.Value(); d != nil {
		return d, nil
	}
	obj, err := o.Shared()
	if err != nil {
		return nil, err
	}
	d := &decoded{obj}
	s.of = weak.Make(d)
	return d, nil
}
