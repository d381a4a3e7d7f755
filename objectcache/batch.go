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
	// readers are the handlers that have not finished the batch. Replaced has the states that the
	// batch names and the store has replaced since. Both are of the lock of the changelog.
	readers  []*registration
	replaced map[state]*Stored
}

// bySlot is the order of the states of a table, byBirth the order in which a generation has staged
// them.
func bySlot(a, b state) int  { return cmp.Compare(a.slot, b.slot) }
func byBirth(a, b state) int { return cmp.Compare(int32(a.born-b.born), 0) } // the numbers may begin anew

// names reports whether the batch names a state.
func (b *batch) names(of state) bool {
	place, found := slices.BinarySearchFunc(b.states, of, b.order)
	return found && b.states[place] == of
}

// replaceLocked keeps a state that the store has replaced, if the batch names it.
func (b *batch) replaceLocked(o *Stored) (kept bool) {
	of := o.state()
	if !b.names(of) {
		return false
	}
	if b.replaced == nil {
		b.replaced = map[state]*Stored{}
	}
	b.replaced[of] = o
	return true
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
