package objectcache

import (
	"strings"

	"github.com/rvinformer/informer/internal/engine/known"
	"github.com/rvinformer/informer/internal/engine/object"
	"github.com/rvinformer/informer/internal/leaf/keytable"
)

// sampled is how many objects are looked at for a sample.
const sampled = 64

// sample returns some objects, for a server to be asked whether it has them.
func (i *Informer) sample() []object.Known {
	var keys []string
	i.objects.lendFrom(0, sampled, func(key string, _ *keytable.Binary) {
		if len(keys) < sampled {
			keys = append(keys, strings.Clone(key))
		}
	})
	return known.Oldest(i.identify(keys))
}

// latest returns the objects with the newest versions, the newest first, for a server to be asked
// whether it has them.
func (i *Informer) latest() []object.Known {
	var keys []string
	for _, o := range known.LatestOf(i.objects.lendFrom) {
		keys = append(keys, o.Key)
	}
	return i.identify(keys)
}

// identify returns the objects of keys that are still there, with their UIDs.
func (i *Informer) identify(keys []string) (objects []object.Known) {
	for _, key := range keys {
		if v, ok := i.objects.version(key); ok {
			objects = append(objects, object.Known{Key: key, Version: v})
		}
	}
	return objects
}

// all returns a batch of all objects. Their states take eight bytes each.
func (s *Store) all() *batch {
	s.mu.RLock()
	defer s.mu.RUnlock()
	t := s.table
	states := make([]state, 0, t.live)
	for n := range (postings{table: t, every: true}).all {
		states = append(states, state{n, t.slots.at(n).born})
	}
	return &batch{states: states, order: bySlot}
}

// state returns where the store had the object.
func (o Stored) state() state { return state{o.slot, o.born} }
