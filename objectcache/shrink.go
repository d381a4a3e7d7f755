package objectcache

// A table gives memory back after a peak: when less than half of its slots is in use, the objects
// of the last page of slots move to free slots before it, and the page is dropped. That is about
// one move for each deletion, and a table that grows and shrinks at the border moves nothing,
// because it does not grow again before all slots are in use.
//
// Whoever has numbers of slots without the lock must not use them after that. Objects have the same
// place in each list, but not in the order of all slots.

// shrink drops a page of slots, and one of each index, if they are sparse. It reports whether more
// is to be done. Staged slots keep a table from it, because the generation has their numbers.
func (t *table) shrink() (more bool) {
	t.keys.shrink(&t.slots)
	if t.keys.count != t.live {
		return false
	}
	if t.slots.sparse(t.live) {
		t.dropSlots()
		more = true
	}
	for _, x := range t.indexes {
		if x.nodes.sparse(x.used()) {
			x.dropNodes()
			more = true
		}
	}
	if !more {
		t.shrinkNames()
	}
	return more
}

// shrinkNames gives the texts new numbers where these are sparse. That is not done where it would
// take longer than what was saved before, because each slot has the numbers.
func (t *table) shrinkNames() {
	slots := t.slots.len
	if t.namespaces.sparse(slots) {
		to := t.namespaces.renumber()
		for n := range slots {
			t.slots.at(n).namespace = to[t.slots.at(n).namespace]
		}
	}
	if t.labels.sparse(slots) {
		to := t.labels.renumber()
		for n := range slots {
			t.slots.at(n).labels = to[t.slots.at(n).labels]
		}
	}
	for _, x := range t.indexes {
		if x.texts.sparse(x.nodes.len) {
			to := x.texts.renumber()
			for n := range x.nodes.len {
				x.nodes.at(n).text = to[x.nodes.at(n).text]
			}
		}
	}
}

// isSparse reports whether shrink has something to do.
func (t *table) isSparse() bool {
	sparse := t.slots.sparse(t.live) || t.namespaces.sparse(t.slots.len) || t.labels.sparse(t.slots.len)
	for _, x := range t.indexes {
		sparse = sparse || x.nodes.sparse(x.used()) || x.texts.sparse(x.nodes.len)
	}
	return t.keys.sparse() || sparse && t.keys.count == t.live
}

// dropSlots drops the last page of slots. No slot is staged.
func (t *table) dropSlots() {
	first := t.slots.lastPage()
	for n := first; n < t.slots.len; n++ {
		if t.slots.at(n).flags == 0 {
			t.slots.free.remove(&t.slots, n)
		}
	}
	for n := first; n < t.slots.len; n++ {
		if t.slots.at(n).flags != 0 {
			t.move(n, t.slots.take())
		}
	}
	t.slots.cut(first)
	for _, x := range t.indexes {
		x.of.cut(first)
	}
	t.moves++
}

// move moves a live slot to a free one.
func (t *table) move(from, to uint32) {
	s := t.slots.at(to)
	*s = *t.slots.at(from)
	*t.slots.at(from) = slot{}
	s.ref = t.pack.Reown(s.ref, to)
	t.keys.moved(s.hash, from, to)
	t.namespaces.list[s.namespace].moved(&t.slots, to)
	for _, x := range t.indexes {
		x.move(from, to)
	}
	t.hot.drop(from)
}

// move gives the values of a slot to another one, which has none.
func (x *index) move(from, to uint32) {
	first := x.first(from)
	if first == 0 {
		return
	}
	x.of.grow(to + 1)
	*x.of.at(to), *x.of.at(from) = first, 0
	for n := first; n != 0; n = x.nodes.at(n).more {
		x.nodes.at(n).slot = to
	}
}

// dropNodes drops the last page of nodes. The values of all slots are linked.
func (x *index) dropNodes() {
	first := x.nodes.lastPage()
	for n := first; n < x.nodes.len; n++ {
		if x.nodes.at(n).text == 0 {
			x.free.remove(x, n)
		}
	}
	for n := first; n < x.nodes.len; n++ {
		if x.nodes.at(n).text != 0 {
			x.moveNode(n, x.free.take(x))
		}
	}
	x.nodes.cut(first)
}

// moveNode moves a linked node to a free one.
func (x *index) moveNode(from, to uint32) {
	of := x.nodes.at(to)
	*of = *x.nodes.at(from)
	x.texts.list[of.text].moved(x, to)
	at := x.of.at(of.slot)
	for *at != from {
		at = &x.nodes.at(*at).more
	}
	*at = to
}
