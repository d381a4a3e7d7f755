package keytable

import (
	"math"
	"unsafe"
)

// NewColliding returns a table that tells hashes apart only by the bits of mask.
func NewColliding(mask uint64) *Table {
	t := New()
	t.hasher.mask = mask
	return t
}

// Verify panics if an invariant does not hold.
func (t *Table) Verify() { t.verify() }

// SizeParts is SizeBytes by what the memory is for.
func (t *Table) SizeParts() map[string]int64 {
	return map[string]int64{
		"slots":     t.slots.size(),
		"entries":   t.entries.size(),
		"stems":     t.stems.size(),
		"directory": int64(cap(t.directory))*4 + int64(cap(t.segments))*int64(unsafe.Sizeof(segment{})),
	}
}

// Invariants tells whether every change is checked.
const Invariants = invariants

// Unmarked returns the keys that generation did not show.
func (t *Table) Unmarked(generation uint64) []string {
	keys, _ := t.UnmarkedFrom(0, generation, math.MaxInt)
	return keys
}

// Marked reports whether the table has key, and generation showed it.
func (t *Table) Marked(key string, generation uint64) bool {
	p, ok := t.find(t.hasher.sum(key), key)
	if !ok {
		return false
	}
	m := t.marksOf(p.segment)
	return generation < m.base || m.generationOf(p.entry[entryMark]) >= generation
}
