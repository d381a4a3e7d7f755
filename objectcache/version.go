package objectcache

import (
	"github.com/rvinformer/informer/internal/known"
	"github.com/rvinformer/informer/internal/object"
)

// sampled is how many objects are looked at for a sample.
const sampled = 64

// sample returns some objects, for a server to be asked whether it has them.
func (s *Store) sample() (objects []object.Known) {
	for _, o := range s.resolve(s.states(sampled)) {
		if v, err := o.version(); err == nil {
			objects = append(objects, object.Known{Key: o.Key(), Version: v})
		}
	}
	return known.Oldest(objects)
}

// latest returns the objects with the newest versions, the newest first, for a server to be asked
// whether it has them.
func (s *Store) latest() (objects []object.Known) {
	for _, o := range known.LatestOf(s.lendFrom) {
		if v, ok := s.version(o.Key); ok { // with the UID
			objects = append(objects, object.Known{Key: o.Key, Version: v})
		}
	}
	return objects
}

// states returns the states of all objects, or of so many if most is not 0, by slot. They take
// eight bytes each.
func (s *Store) states(most int) []state {
	s.mu.RLock()
	defer s.mu.RUnlock()
	t := s.table
	all := make([]state, 0, t.live)
	for n := uint32(1); n < t.slots.len && (most == 0 || len(all) < most); n++ {
		if of := t.slots.at(n); of.flags&live != 0 {
			all = append(all, state{n, of.born})
		}
	}
	return all
}

// resolve returns the states that are still live.
func (s *Store) resolve(states []state) (found []Stored) {
	for _, of := range states {
		if o := s.stateOf(of); !o.IsZero() {
			found = append(found, o)
		}
	}
	return found
}

// all returns a batch of all objects.
func (s *Store) all() *batch { return &batch{states: s.states(0), order: bySlot} }

// state returns where the store had the object.
func (o Stored) state() state { return state{o.slot, o.born} }
