package objectcache

import (
	"cmp"
	"slices"
	"unsafe"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/rvinformer/informer"
)

// batch is many calls in little memory: additions of a list, or a resync. It names states of a
// Store, or has objects that are kept decoded, and never both.
type batch struct {
	states  []state
	objects []runtime.Object
	// order is that of the states.
	order func(a, b state) int
	// due are the handlers of a resync, nil for additions.
	due     sets.Set[*registration]
	initial bool
	// readers are the handlers that have not finished the batch. They are of the lock of the
	// changelog.
	readers []*registration
}

// bySlot is the order of the states of a table, byBirth the order in which a generation has staged
// them.
func bySlot(a, b state) int  { return cmp.Compare(a.slot, b.slot) }
func byBirth(a, b state) int { return cmp.Compare(int32(a.born-b.born), 0) } // the numbers may begin anew

// find returns where the batch names a state, if it does.
func (b *batch) find(of state) (place int, named bool) {
	place, found := slices.BinarySearchFunc(b.states, of, b.order)
	return place, found && b.states[place] == of
}

// callsLocked returns how many handlers have yet to be called with what is at a place.
func (b *batch) callsLocked(place int) (calls int) {
	for _, r := range b.readers {
		if r.awaitsLocked(b, place) {
			calls++
		}
	}
	return calls
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
