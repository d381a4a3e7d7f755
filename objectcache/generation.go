package objectcache

import (
	"iter"
	"slices"

	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/rvinformer/informer/internal/keytable"
)

// generation is one complete pass over the server's set, which is applied to the store at its end, or not at all.
type generation struct {
	store *Store
	// shown are the keys of the set, staged the objects that differ from the store's.
	shown  sets.Set[string]
	staged map[string]encoded
}

// begin begins a generation, which is to be ended or abandoned.
func (s *Store) begin() *generation {
	return &generation{store: s, shown: sets.Set[string]{}, staged: map[string]encoded{}}
}

// show reports whether the store has the object in this version. If so, it stays; if not, put or keep follows. Key and version
// may be lent.
func (g *generation) show(key string, v keytable.Version) bool {
	if _, again := g.staged[key]; again || !g.store.unchanged(key, v) {
		return false
	}
	g.keep(key)
	return true
}

// put stages an object that is new or has changed.
func (g *generation) put(e encoded) {
	g.shown.Insert(e.key)
	g.staged[e.key] = e
}

// keep lets the object of a key stay as it is, which the set has but which could not be read. Key may be lent.
func (g *generation) keep(key string) {
	if !g.shown.Has(key) {
		g.shown.Insert(string([]byte(key)))
	}
}

// end makes the store what the generation showed, at once. If complete, it deletes what was not shown. The changes are
// valid until the next write.
func (g *generation) end(resourceVersion string, complete bool) iter.Seq[change] {
	s := g.store
	s.writing.Lock()
	defer s.writing.Unlock()
	records := make([]*record, 0, len(g.staged))
	for _, e := range g.staged {
		r := &record{encoded: e, values: s.indexValues(e)}
		r.object = nil
		records = append(records, r)
	}
	var changes []change
	s.mu.Lock()
	defer s.mu.Unlock()
	for key := range s.table.records {
		if complete && !g.shown.Has(key) {
			changes = append(changes, change{old: s.handle(s.table.remove(key))})
		}
	}
	for _, r := range records {
		changes = append(changes, change{old: s.handle(s.table.put(r)), new: s.handle(r)})
	}
	s.hot.purge()
	s.resourceVersion = resourceVersion
	return slices.Values(changes)
}

// abandon ends the generation and changes nothing.
func (g *generation) abandon() {}
