package keytable

import "hash/maphash"

// hasher is the hash function of one table, with a seed of its own, so that no
// one can choose names that collide.
type hasher struct {
	seed maphash.Seed
	// mask is all ones. Tests let keys collide with another. It is not a function,
	// for then every key would escape to the heap.
	mask uint64
}

func newHasher() hasher { return hasher{seed: maphash.MakeSeed(), mask: ^uint64(0)} }

func (h *hasher) sum(s string) uint64 { return maphash.String(h.seed, s) & h.mask }
