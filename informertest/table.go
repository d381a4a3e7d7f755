package informertest

import (
	"iter"
	"sort"
	"strings"
)

// event is one write, as the watches see it.
type event struct {
	rv       uint64
	old, new *object // old is nil for a creation, new for a deletion
}

// table holds the objects of one resource, their history and the watches on it. It is guarded by
// the lock of the store that it belongs to.
type table struct {
	resource Resource
	index    index

	// The writes since the last compaction, oldest first. The position of log[i] is first+i:
	// positions are never reused, so that a watch can hold one across compactions.
	log     []event
	first   uint64
	cursors map[*cursor]struct{}
	removed bool // not served any more
	// The resource version since which it is served: nothing older is known of it, even if its name
	// was served before.
	born uint64
	// How many lists of a dialect with twins were answered. It is atomic.
	lists uint64

	// Fires at each write.
	changed signal
}

func newTable(r Resource, born uint64) *table {
	return &table{resource: r, born: born, cursors: map[*cursor]struct{}{}}
}

// get returns the newest state under a key, nil when there is none.
func (t *table) get(key string) *object {
	e := t.index.get(key)
	if e == nil || e.newest == nil {
		return nil
	}
	return e.newest.object
}

// put makes the object the newest state of the key; nil deletes it.
func (t *table) put(key string, rv uint64, o *object) {
	e := t.index.get(key)
	if e == nil {
		e = &entry{key: key}
		t.index.insert(e)
	}
	var old *object
	if e.newest != nil {
		old = e.newest.object
	}
	e.newest = &revision{rv: rv, object: o, older: e.newest}
	t.log = append(t.log, event{rv: rv, old: old, new: o})
	t.changed.fire()
}

// end is the position of the next write.
func (t *table) end() uint64 { return t.first + uint64(len(t.log)) }

func (t *table) compact() {
	for c := range t.cursors {
		c.keep(t)
	}
	t.first = t.end()
	t.log = nil
	t.index.retain(func(e *entry) bool {
		e.newest.older = nil
		return e.newest.object != nil
	})
	t.changed.fire()
}

// rewind restores the present objects. Objects newer than rv take rv as their own resource
// version.
func (t *table) rewind(now, rv uint64) {
	objects := t.objects(now)
	for i, o := range objects {
		if o.rv > rv {
			objects[i] = o.at(rv)
		}
	}
	t.restore(objects)
}

// each yields the states at a resource version that the selection matches, in the order of their
// keys, beginning at the key start. The table must not change meanwhile.
func (t *table) each(sel selection, start string, rv uint64) iter.Seq2[string, *object] {
	return func(yield func(string, *object) bool) {
		prefix := t.resource.prefix(sel.namespace)
		for e := range t.index.from(max(start, prefix)) {
			if !strings.HasPrefix(e.key, prefix) {
				return
			}
			if o := e.at(rv); o != nil && sel.matches(o) && !yield(e.key, o) {
				return
			}
		}
	}
}

// scan collects what each yields, at most limit of it when that is above 0: then next is where the
// rest begins, "" when there is none.
func (t *table) scan(sel selection, start string, rv uint64, limit int64) (found []*object, next string) {
	last := ""
	for key, o := range t.each(sel, start, rv) {
		if limit > 0 && int64(len(found)) == limit {
			return found, behind(last)
		}
		found, last = append(found, o), key
	}
	return found, ""
}

// objects are all states at a resource version.
func (t *table) objects(rv uint64) []*object {
	all, _ := t.scan(selection{}, "", rv, 0)
	return all
}

// behind is the first key after another one. The rest of a list begins there, and not at the object
// that came next: others may come into being between them, which a list in the newest state shows.
func behind(key string) string { return key + "\x00" }

// after returns the position of the first write that is newer than a resource version.
func (t *table) after(rv uint64) uint64 {
	return t.first + uint64(sort.Search(len(t.log), func(i int) bool { return t.log[i].rv > rv }))
}
