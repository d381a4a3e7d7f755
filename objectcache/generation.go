package objectcache

import (
	"iter"
	"math"

	"github.com/rvinformer/informer/internal/keytable"
)

// generation is one complete pass over the server's set. What differs from the store is staged aside, compressed, and applied at
// once at the end, or not at all.
type generation struct {
	store  *Store
	staged slotList
	over   bool
}

// begin begins a generation, which is to be ended or abandoned. It waits for the one before it.
func (s *Store) begin() *generation {
	s.replacing.Lock()
	s.writing.Lock()
	defer s.writing.Unlock()
	t := s.table
	if t.generation++; t.generation == math.MaxUint16 {
		// The numbers begin anew, so no mark may be left.
		for n := range t.slots.len {
			t.slots.at(n).mark = 0
		}
		t.generation = 1
	}
	return &generation{store: s}
}

// show reports whether the store has the object in this version. If so, it stays; if not, put or keep follows. Key and version
// may be lent. It allocates nothing.
func (g *generation) show(key string, v keytable.Version) bool {
	s := g.store
	s.writing.Lock()
	defer s.writing.Unlock()
	t := s.table
	if n := t.find(key, staged); n != 0 { // a page may be read twice
		return t.isVersion(n, v)
	}
	n := t.find(key, live)
	if n == 0 || !t.isVersion(n, v) {
		return false
	}
	t.slots.at(n).mark = t.generation
	return true
}

// put stages an object that is new or has changed.
func (g *generation) put(e encoded) {
	s := g.store
	s.writing.Lock()
	defer s.writing.Unlock()
	t := s.table
	old, again := t.find(e.key, live), t.find(e.key, staged)
	values := s.indexValues(&e)
	replaced := again
	if replaced == 0 {
		replaced = old
	}
	prepared := s.prepare(&e, replaced)
	s.mu.Lock()
	defer s.mu.Unlock()
	n := t.stage(&e, prepared, values)
	e.release()
	if again != 0 {
		g.staged.remove(&t.slots, again)
		t.release(again)
	}
	g.staged.add(&t.slots, n)
	if old != 0 {
		t.slots.at(old).mark = t.generation
	}
	t.tidy()
}

// drop takes back what was staged for a key, which the server has deleted meanwhile: the set does not have it any more.
func (g *generation) drop(key string) {
	s := g.store
	s.writing.Lock()
	defer s.writing.Unlock()
	t := s.table
	if n := t.find(key, live); n != 0 {
		t.slots.at(n).mark = 0
	}
	n := t.find(key, staged)
	if n == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	g.staged.remove(&t.slots, n)
	t.release(n)
	t.tidy()
}

// known returns the newest version of a key, the staged one or the store's, and whether the generation has shown the key. It reports
// whether there is one.
func (g *generation) known(key string) (v keytable.Version, told, ok bool) {
	s := g.store
	s.mu.RLock()
	defer s.mu.RUnlock()
	t := s.table
	n := t.find(key, staged)
	if told = n != 0; !told {
		if n = t.find(key, live); n == 0 {
			return v, false, false
		}
		told = t.slots.at(n).mark == t.generation
	}
	v, err := s.handle(n).version()
	return v, told, err == nil
}

// keep lets the object of a key stay as it is, which the set has but which could not be read. Key may be lent.
func (g *generation) keep(key string) {
	s := g.store
	s.writing.Lock()
	defer s.writing.Unlock()
	if n := s.table.find(key, live); n != 0 {
		s.table.slots.at(n).mark = s.table.generation
	}
}

// end makes the store what the generation showed, at once. If complete, it deletes what was not shown. It returns the changes, in
// the order of the list and deletions last, which are valid until the next write.
func (g *generation) end(resourceVersion string, complete bool) iter.Seq[change] {
	s := g.store
	s.writing.Lock()
	defer s.writing.Unlock()
	defer g.finish()
	t := s.table
	var unshown []uint32
	for n := uint32(1); complete && n < t.slots.len; n++ {
		if of := t.slots.at(n); of.flags&live != 0 && of.mark != t.generation {
			unshown = append(unshown, n)
		}
	}
	changes := g.apply(unshown, resourceVersion)
	s.tidyAll()
	return changes.all
}

// apply shows readers what was staged, without the slots that were not shown. The caller holds writing.
func (g *generation) apply(unshown []uint32, resourceVersion string) applied {
	s, t := g.store, g.store.table
	changes := applied{store: s, new: make([]state, 0, g.staged.count), deleted: make([]Stored, 0, len(unshown))}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, n := range unshown {
		changes.deleted = append(changes.deleted, s.handle(n))
		t.unlink(n)
		t.release(n)
	}
	for g.staged.first != 0 {
		n := g.staged.first
		g.staged.remove(&t.slots, n)
		old := t.twin(n)
		if old != 0 {
			changes.replace(s.handle(old))
		}
		s.replace(old, n)
		changes.new = append(changes.new, state{n, t.slots.at(n).born})
	}
	s.resourceVersion = resourceVersion
	return changes
}

// tidyAll gives back the memory of what a list has replaced or deleted, because no write may follow that does. The caller holds
// writing; readers wait for a part of the work at most.
func (s *Store) tidyAll() {
	for s.tidyPart() {
	}
}

func (s *Store) tidyPart() (more bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.table.tidy()
}

// finish lets the next generation begin.
func (g *generation) finish() {
	if !g.over {
		g.over = true
		g.store.replacing.Unlock()
	}
}

// abandon ends the generation and changes nothing. It does nothing after end.
func (g *generation) abandon() {
	if g.over {
		return
	}
	s := g.store
	s.writing.Lock()
	defer s.writing.Unlock()
	defer g.finish()
	s.mu.Lock()
	defer s.mu.Unlock()
	for g.staged.first != 0 {
		n := g.staged.first
		g.staged.remove(&s.table.slots, n)
		s.table.release(n)
	}
	s.table.tidy()
}

// state is a state of a slot.
type state struct{ slot, born uint32 }

// applied are the changes of a generation. What was added takes eight bytes each, because a first list adds all.
type applied struct {
	store *Store
	new   []state
	// old are the objects that were replaced, by their places in new.
	old     map[int]Stored
	deleted []Stored
}

// replace says that the state that is appended to new next replaces old.
func (a *applied) replace(old Stored) {
	if a.old == nil {
		a.old = map[int]Stored{}
	}
	a.old[len(a.new)] = old
}

func (a *applied) all(yield func(change) bool) {
	for i, of := range a.new {
		c := change{old: a.old[i], new: a.store.stateOf(of)}
		if !c.new.IsZero() && !yield(c) {
			return
		}
	}
	for _, old := range a.deleted {
		if !yield(change{old: old}) {
			return
		}
	}
}

// stateOf returns a state of a slot, if it is still live.
func (s *Store) stateOf(of state) Stored {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if !s.isLive(of.slot, of.born) {
		return Stored{}
	}
	return s.handle(of.slot)
}

// isLive reports whether readers see a state of a slot. The caller holds the lock.
func (s *Store) isLive(slot, born uint32) bool {
	if slot >= s.table.slots.len {
		return false
	}
	of := s.table.slots.at(slot)
	return of.flags&live != 0 && of.born == born
}
