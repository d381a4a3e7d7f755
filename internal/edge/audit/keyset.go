package audit

import "hash/maphash"

// keySet is a set of keys, by a hash of 64 bits whose seed is new in each pass. Two of a million
// keys have the same hash once in 37 million passes. A superfluous key goes unseen then, until the
// next pass.
type keySet struct {
	seed   maphash.Seed
	places []uint64 // a power of two of them; 0 is empty
	count  int
}

// newKeySet returns an empty set with room for so many keys.
func newKeySet(keys int) *keySet {
	size := 64
	for size/8*7 < keys {
		size *= 2
	}
	return &keySet{seed: maphash.MakeSeed(), places: make([]uint64, size)}
}

func (s *keySet) hash(key string) uint64 { return max(1, maphash.String(s.seed, key)) }

// add adds a key, and reports whether it is new. It does not keep it.
func (s *keySet) add(key string) (isNew bool) {
	hash := s.hash(key)
	at := s.find(hash)
	if s.places[at] == hash {
		return false
	}
	s.places[at] = hash
	if s.count++; s.count > len(s.places)/8*7 {
		s.grow()
	}
	return true
}

func (s *keySet) has(key string) bool {
	hash := s.hash(key)
	return s.places[s.find(hash)] == hash
}

// find returns the place of a hash, or the empty one where it belongs.
func (s *keySet) find(hash uint64) int {
	mask := len(s.places) - 1
	at := int(hash) & mask
	for s.places[at] != 0 && s.places[at] != hash {
		at = (at + 1) & mask
	}
	return at
}

func (s *keySet) grow() {
	old := s.places
	s.places = make([]uint64, 2*len(old))
	for _, hash := range old {
		if hash != 0 {
			s.places[s.find(hash)] = hash
		}
	}
}
