package objectcache

import (
	"unsafe"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/rvinformer/informer"
)

// batch is many calls in little memory: additions of a list, or a resync. It names states of a Store, or has objects that are kept
// decoded, and never both.
type batch struct {
	states  []state
	objects []runtime.Object
	// due are the handlers of a resync, nil for additions.
	due     sets.Set[*registration]
	initial bool
}

func (b *batch) len() int { return len(b.states) + len(b.objects) }

// sizeBytes is what the batch takes in memory, without the objects that it names.
func (b *batch) sizeBytes() int64 {
	return int64(cap(b.states))*int64(unsafe.Sizeof(state{})) + int64(cap(b.objects))*int64(unsafe.Sizeof(runtime.Object(nil)))
}

// add appends an object that is kept.
func (b *batch) add(o Stored) {
	if o.object != nil {
		b.objects = append(b.objects, o.object)
	} else {
		b.states = append(b.states, o.state())
	}
}

// change returns a call of the batch.
func (b *batch) change(o Stored) Change {
	if b.due != nil {
		return Change{Type: informer.Synced, Key: o.Key(), Old: o, New: o}
	}
	return Change{Type: informer.Added, Key: o.Key(), New: o, IsInInitialList: b.initial}
}
