package objectcache

import (
	"unsafe"

	"k8s.io/client-go/tools/cache"
)

// index is an index that an index function fills. It keeps the values of each object, so that the
// old object is not needed to undo them.
type index struct {
	values cache.IndexFunc
	// texts are the values. The list of each, while slots with it are live, is one of nodes.
	texts names
	// nodes have one value of one slot each; 0 is none, and free ones have no value.
	nodes paged[node]
	free  itemList
	// of is the first node of each slot.
	of paged[uint32]
}

type node struct {
	text, slot uint32
	// links are in the list of the value, or of free nodes. more is the next node of the slot.
	links
	more uint32
}

func newIndex(values cache.IndexFunc) *index { return &index{values: values} }

func (x *index) linksOf(n uint32) *links { return &x.nodes.at(n).links }

// used is how many nodes are not free.
func (x *index) used() int { return max(int(x.nodes.len)-1, 0) - int(x.free.count) }

// set gives a slot its values. They are not listed before link.
func (x *index) set(slot uint32, values []string) {
	for i, value := range values {
		if again(values[:i], value) {
			continue
		}
		n := x.free.take(x)
		if n == 0 {
			n = max(x.nodes.len, 1)
			x.nodes.grow(n + 1)
		}
		x.of.grow(slot + 1)
		first := x.of.at(slot)
		*x.nodes.at(n) = node{text: x.texts.use(value), slot: slot, more: *first}
		*first = n
	}
}

func again(values []string, value string) bool {
	for _, v := range values {
		if v == value {
			return true
		}
	}
	return false
}

// first is the first node of a slot.
func (x *index) first(slot uint32) uint32 {
	if slot >= x.of.len {
		return 0
	}
	return *x.of.at(slot)
}

// link lists the values of a slot.
func (x *index) link(slot uint32) {
	for n := x.first(slot); n != 0; n = x.nodes.at(n).more {
		x.texts.list[x.nodes.at(n).text].add(x, n)
	}
}

// unlink undoes link.
func (x *index) unlink(slot uint32) {
	for n := x.first(slot); n != 0; n = x.nodes.at(n).more {
		x.texts.list[x.nodes.at(n).text].remove(x, n)
	}
}

// forget undoes set. The slot is not linked.
func (x *index) forget(slot uint32) {
	for n := x.first(slot); n != 0; {
		of := x.nodes.at(n)
		next := of.more
		x.texts.unuse(of.text)
		*of = node{}
		x.free.add(x, n)
		n = next
	}
	if slot < x.of.len {
		*x.of.at(slot) = 0
	}
}

// has reports whether a slot has a value, by its number.
func (x *index) has(slot, text uint32) bool {
	for n := x.first(slot); n != 0; n = x.nodes.at(n).more {
		if x.nodes.at(n).text == text {
			return true
		}
	}
	return false
}

func (x *index) sizeBytes() int64 {
	return x.texts.sizeBytes() + x.nodes.sizeBytes() + x.of.sizeBytes() + int64(unsafe.Sizeof(*x))
}
