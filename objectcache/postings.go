package objectcache

// postings are the live slots with a value in an index, or all of a namespace, or all.
type postings struct {
	table *table
	// index is nil for a namespace. Text is the number of the value or the namespace; 0 is none.
	index *index
	text  uint32
	// every stands for all slots.
	every bool
}

// resolve returns the slots with a value in an index.
func (t *table) resolve(index, value string) postings {
	if x := t.indexes[index]; x != nil {
		return postings{table: t, index: x, text: x.texts.find(value)}
	}
	if t.indexers[index] == nil {
		return postings{table: t}
	}
	return t.inNamespace(value)
}

func (t *table) inNamespace(namespace string) postings {
	return postings{table: t, text: t.namespaces.find(namespace)}
}

// texts are the values of an index, nil if there is no such index.
func (t *table) texts(index string) *names {
	if x := t.indexes[index]; x != nil {
		return &x.texts
	}
	if t.indexers[index] == nil {
		return nil
	}
	return &t.namespaces
}

// count is how many slots there are.
func (p postings) count() int {
	switch {
	case p.every:
		return p.table.live
	case p.text == 0:
		return 0
	case p.index != nil:
		return int(p.index.texts.list[p.text].count)
	default:
		return int(p.table.namespaces.list[p.text].count)
	}
}

// has reports whether a live slot is one of p.
func (p postings) has(n uint32) bool {
	switch {
	case p.every:
		return true
	case p.index != nil:
		return p.text != 0 && p.index.has(n, p.text)
	default:
		return p.text != 0 && p.table.slots.at(n).namespace == p.text
	}
}

// all yields the slots.
func (p postings) all(yield func(n uint32) bool) {
	switch {
	case p.every:
		for n := uint32(1); n < p.table.slots.len; n++ {
			if p.table.slots.at(n).flags&live != 0 && !yield(n) {
				return
			}
		}
	case p.text == 0:
	case p.index != nil:
		for n := p.index.texts.list[p.text].first; n != 0; n = p.index.nodes.at(n).next {
			if !yield(p.index.nodes.at(n).slot) {
				return
			}
		}
	default:
		for n := p.table.namespaces.list[p.text].first; n != 0; n = p.table.slots.at(n).next {
			if !yield(n) {
				return
			}
		}
	}
}
