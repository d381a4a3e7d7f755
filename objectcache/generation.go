package objectcache

import (
	"iter"
	"math"
	"strings"

	"github.com/rvinformer/informer/internal/leaf/keytable"
)

// encodedGeneration is a generation of a Store. What it stages is compressed.
type encodedGeneration struct {
	store  *Store
	staged itemList
	// dropped are the keys that drop was called with.
	dropped map[string]struct{}
	over    bool
}

// begin begins a generation. It waits for the one before it.
func (s *Store) begin() generation {
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
	return &encodedGeneration{store: s, dropped: map[string]struct{}{}}
}

// show allocates nothing.
func (g *encodedGeneration) show(key string, v keytable.Version, sum uint32) bool {
	s := g.store
	s.writing.Lock()
	defer s.writing.Unlock()
	t := s.table
	if n := t.find(key, staged); n != 0 { // a page may be read twice
		return t.isVersion(n, v) && t.isSum(n, sum)
	}
	n := t.find(key, live)
	if n == 0 || !t.isVersion(n, v) || !t.isSum(n, sum) {
		return false
	}
	t.slots.at(n).mark = t.generation
	return true
}

func (g *encodedGeneration) showSame(e encoded) bool {
	s := g.store
	s.writing.Lock()
	defer s.writing.Unlock()
	t := s.table
	n := t.find(e.key, live)
	if n == 0 || t.find(e.key, staged) != 0 || !t.isVersion(n, e.version) || !s.isSame(n, &e) {
		return false
	}
	of := t.slots.at(n)
	of.mark, of.sum = t.generation, e.sum
	return true
}

// isSame reports whether a slot has the content of e. The caller holds writing.
func (s *Store) isSame(n uint32, e *encoded) (same bool) {
	if s.table.slots.at(n).form != e.form {
		return false
	}
	err := s.handle(n).read(func(has []byte) error {
		same = s.forms.get(e.form).isSame(has, e.bytes)
		return nil
	})
	return err == nil && same
}

func (g *encodedGeneration) put(e encoded) {
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

func (g *encodedGeneration) drop(key string) {
	s := g.store
	s.writing.Lock()
	defer s.writing.Unlock()
	t := s.table
	if n := t.find(key, live); n != 0 {
		t.slots.at(n).mark = 0
		g.dropped[strings.Clone(key)] = struct{}{}
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

func (g *encodedGeneration) known(key string) (v keytable.Version, told, ok bool) {
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

func (g *encodedGeneration) keep(key string) {
	s := g.store
	s.writing.Lock()
	defer s.writing.Unlock()
	if n := s.table.find(key, live); n != 0 {
		s.table.slots.at(n).mark = s.table.generation
	}
}

func (g *encodedGeneration) deletes() bool {
	g.store.writing.Lock()
	defer g.store.writing.Unlock()
	return len(g.unshown(true)) > 0
}

func (g *encodedGeneration) end(resourceVersion string, complete bool) iter.Seq[change] {
	s := g.store
	s.writing.Lock()
	defer s.writing.Unlock()
	defer g.finish()
	changes := g.apply(g.unshown(complete), resourceVersion)
	s.tidyAll()
	return changes.all
}

// unshown returns the slots of the objects that were not shown: all, or those that were dropped.
func (g *encodedGeneration) unshown(all bool) (unshown []uint32) {
	t := g.store.table
	if !all {
		for key := range g.dropped {
			if n := t.find(key, live); n != 0 && t.slots.at(n).mark != t.generation {
				unshown = append(unshown, n)
			}
		}
		return unshown
	}
	for n := uint32(1); n < t.slots.len; n++ {
		if of := t.slots.at(n); of.flags&live != 0 && of.mark != t.generation {
			unshown = append(unshown, n)
		}
	}
	return unshown
}

// apply shows readers what was staged, without the slots that were not shown. The caller holds
// writing.
func (g *encodedGeneration) apply(unshown []uint32, resourceVersion string) applied {
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

// tidyAll gives back the memory of objects that a list has replaced or deleted: perhaps no write
// follows that would do so. The caller holds writing; readers wait for a part of the work at most.
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
func (g *encodedGeneration) finish() {
	if !g.over {
		g.over = true
		g.store.replacing.Unlock()
	}
}

func (g *encodedGeneration) abandon() {
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

// applied are the changes of a generation. What was added takes eight bytes each, because a first
// list adds all.
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
