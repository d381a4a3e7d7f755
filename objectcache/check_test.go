package objectcache

import "fmt"

// check compares what the table has twice.
func (t *table) check() error {
	liveSlots, stagedSlots := 0, 0
	namespaces, labels := map[uint32]uint32{}, map[uint32]uint32{}
	for n := uint32(1); n < t.slots.len; n++ {
		s := t.slots.at(n)
		switch s.flags &^ hasNumber {
		case 0:
			continue
		case live:
			liveSlots++
			if found := t.find(t.key(n), live); found != n {
				return fmt.Errorf("slot %d of %q: %d is found", n, t.key(n), found)
			}
		case staged:
			stagedSlots++
			if found := t.find(t.key(n), staged); found != n {
				return fmt.Errorf("staged slot %d of %q: %d is found", n, t.key(n), found)
			}
		default:
			return fmt.Errorf("slot %d has the flags %b", n, s.flags)
		}
		namespaces[s.namespace]++
		labels[s.labels]++
	}
	if liveSlots != t.live || liveSlots+stagedSlots != t.keys.count {
		return fmt.Errorf("%d live and %d staged slots, but %d are counted and %d have a key", liveSlots, stagedSlots, t.live, t.keys.count)
	}
	free, before := 0, uint32(0)
	for n := t.slots.free.first; n != 0; n = t.slots.at(n).next {
		if t.slots.at(n).flags != 0 || t.slots.at(n).prev != before {
			return fmt.Errorf("slot %d is not free, or not behind the free slot %d", n, before)
		}
		free, before = free+1, n
	}
	if used := liveSlots + stagedSlots; used > 0 && 1+used+free != int(t.slots.len) {
		return fmt.Errorf("%d slots are used and %d are free, of %d", used, free, t.slots.len)
	}
	if err := checkUses(&t.namespaces, namespaces); err != nil {
		return fmt.Errorf("namespaces: %w", err)
	}
	if err := checkUses(&t.labels, labels); err != nil {
		return fmt.Errorf("labels: %w", err)
	}
	listed := uint32(0)
	for _, namespace := range t.namespaces.list {
		listed += namespace.count
	}
	if int(listed) != liveSlots {
		return fmt.Errorf("%d slots are listed in namespaces, %d are live", listed, liveSlots)
	}
	for name, x := range t.indexes {
		if err := t.checkIndex(x); err != nil {
			return fmt.Errorf("index %s: %w", name, err)
		}
	}
	return nil
}

func checkUses(n *names, want map[uint32]uint32) error {
	if len(n.numbers) != len(want) {
		return fmt.Errorf("%d texts, %d are used", len(n.numbers), len(want))
	}
	for number, uses := range want {
		if of := n.list[number]; of.uses != uses || n.numbers[of.text] != number {
			return fmt.Errorf("%q has the number %d and %d uses, not %d and %d", of.text, n.numbers[of.text], of.uses, number, uses)
		}
	}
	return nil
}

func (t *table) checkIndex(x *index) error {
	texts, listed := map[uint32]uint32{}, uint32(0)
	for n := uint32(1); n < max(t.slots.len, x.of.len); n++ {
		used, isLive := n < t.slots.len && t.slots.at(n).flags&(live|staged) != 0, n < t.slots.len && t.slots.at(n).flags&live != 0
		for at := x.first(n); at != 0; at = x.nodes.at(at).more {
			if !used {
				return fmt.Errorf("the free slot %d has values", n)
			}
			texts[x.nodes.at(at).text]++
			if x.nodes.at(at).slot != n {
				return fmt.Errorf("the node %d of slot %d names slot %d", at, n, x.nodes.at(at).slot)
			}
			if isLive {
				listed++
			}
		}
	}
	used, free, before := 0, 0, uint32(0)
	for _, uses := range texts {
		used += int(uses)
	}
	for n := x.free.first; n != 0; n = x.nodes.at(n).next {
		if x.nodes.at(n).text != 0 || x.nodes.at(n).prev != before {
			return fmt.Errorf("node %d is not free, or not behind the free node %d", n, before)
		}
		free, before = free+1, n
	}
	if used != x.used() || used > 0 && 1+used+free != int(x.nodes.len) {
		return fmt.Errorf("%d nodes are used, %d are counted and %d are free, of %d", used, x.used(), free, x.nodes.len)
	}
	counted := uint32(0)
	for _, text := range x.texts.list {
		counted += text.count
	}
	if counted != listed {
		return fmt.Errorf("%d values of live slots, %d are listed", listed, counted)
	}
	return checkUses(&x.texts, texts)
}
