package informertest

import (
	"cmp"
	"iter"
	"slices"
	"sort"
)

// maxChunk bounds how many entries an insertion has to move, while a million keys still make only a
// few thousand chunks to search among.
const maxChunk = 512

// revision is one state of a key in the key's own history.
type revision struct {
	rv     uint64
	object *object   // nil: deleted
	older  *revision // nil: the key did not exist before, or the history is forgotten
}

// entry is one key with its history, newest first.
type entry struct {
	key    string
	newest *revision
}

// at returns the state of the key at a resource version, nil when there was none. The resource
// version must not be older than the last compaction.
func (e *entry) at(rv uint64) *object {
	v := e.newest
	for v != nil && v.rv > rv {
		v = v.older
	}
	if v == nil {
		return nil
	}
	return v.object
}

// index holds the entries of one resource in the order of their keys.
//
// Invariant: no chunk is empty, and keys ascend strictly within and across chunks.
type index struct {
	chunks [][]*entry
}

// search returns where the first entry is whose key is not less than the given one, and whether it
// has that very key.
func (x *index) search(key string) (chunk, pos int, found bool) {
	chunk = sort.Search(len(x.chunks), func(i int) bool {
		c := x.chunks[i]
		return c[len(c)-1].key >= key
	})
	if chunk == len(x.chunks) {
		return chunk, 0, false
	}
	pos, found = slices.BinarySearchFunc(x.chunks[chunk], key, func(e *entry, key string) int { return cmp.Compare(e.key, key) })
	return chunk, pos, found
}

func (x *index) get(key string) *entry {
	chunk, pos, found := x.search(key)
	if !found {
		return nil
	}
	return x.chunks[chunk][pos]
}

// insert adds an entry whose key is not there yet.
func (x *index) insert(e *entry) {
	chunk, pos, _ := x.search(e.key)
	if chunk == len(x.chunks) {
		if chunk == 0 {
			x.chunks = append(x.chunks, []*entry{e})
			return
		}
		chunk--
		pos = len(x.chunks[chunk])
	}
	c := slices.Insert(x.chunks[chunk], pos, e)
	x.chunks[chunk] = c
	if len(c) <= maxChunk {
		return
	}
	// Keys that arrive in order always split the last chunk: leave it almost full instead of half
	// empty.
	half := len(c) / 2
	if pos == len(c)-1 {
		half = pos
	}
	x.chunks[chunk] = c[:half:half]
	x.chunks = slices.Insert(x.chunks, chunk+1, slices.Clone(c[half:]))
}

// from yields the entries whose keys are not less than start, in order. The index must not change
// meanwhile.
func (x *index) from(start string) iter.Seq[*entry] {
	return func(yield func(*entry) bool) {
		chunk, pos, _ := x.search(start)
		for ; chunk < len(x.chunks); chunk, pos = chunk+1, 0 {
			for _, e := range x.chunks[chunk][pos:] {
				if !yield(e) {
					return
				}
			}
		}
	}
}

// retain drops the entries for which keep says no.
func (x *index) retain(keep func(*entry) bool) {
	for i, c := range x.chunks {
		x.chunks[i] = slices.DeleteFunc(c, func(e *entry) bool { return !keep(e) })
	}
	x.chunks = slices.DeleteFunc(x.chunks, func(c []*entry) bool { return len(c) == 0 })
}
