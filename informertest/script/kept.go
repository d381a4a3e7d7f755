package script

import (
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/informertest/oracle"
)

// kept is the objects that handlers have kept, and what they were then.
type kept struct {
	mu     sync.Mutex
	events []oracle.Event
}

// oneKept is one in how many objects a handler keeps.
const oneKept = 10

// keep keeps an object, now and then, unless it is only lent.
func (k *kept) keep(d *dice, obj interface{}) {
	if tombstone, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		obj = tombstone.Obj
	}
	object, ok := obj.(runtime.Object)
	_, lent := obj.(*informer.RawObject)
	if !ok || lent || !d.one(oneKept) {
		return
	}
	accessor, err := meta.Accessor(object)
	if err != nil {
		return
	}
	e := oracle.Event{
		Key:             strings.Clone(keyOf(object)),
		UID:             types.UID(strings.Clone(string(accessor.GetUID()))),
		ResourceVersion: strings.Clone(accessor.GetResourceVersion()),
		Object:          object,
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.events = append(k.events, e)
}

// show lets an oracle see what has become of the kept objects, and keeps them no longer.
func (k *kept) show(o *oracle.Oracle) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, e := range k.events {
		o.Kept(e)
	}
	k.events = nil
}
