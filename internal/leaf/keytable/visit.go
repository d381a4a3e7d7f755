package keytable

import (
	"encoding/binary"
	"math/bits"
)

// refs has a bit for each ref.
type refs [1 << 16 / 64]uint64

// refsOf notes the refs of the entries of s with tags from one to another.
func (t *Table) refsOf(s *segment, from, to uint64, refs *refs) {
	for g := range uint32(s.slots / groupSlots) {
		group := t.group(s, g)
		for lane := 0; lane < groupRefs; lane += 2 {
			tag := uint64(binary.LittleEndian.Uint16(group[lane:]))
			if tag != 0 && tag >= from && tag < to {
				ref := binary.LittleEndian.Uint16(group[groupRefs+lane:])
				refs[ref/64] |= 1 << (ref % 64)
			}
		}
	}
}

// visitedAtOnce is how many entries are visited together at most.
const visitedAtOnce = 32

// visitOne visits the entries of s with tags from one to another, some at a time. It visits
// them as they lie in memory, which foresees that, and takes several times as long for the
// order of the slots.
func (t *Table) visitOne(s *segment, from, to uint64, visit func(entries []entry)) {
	var refs refs
	t.refsOf(s, from, to, &refs)
	var entries [visitedAtOnce]entry
	n := 0
	for i, bit := range refs[:(s.tail+63)/64] {
		for ; bit != 0; bit &= bit - 1 {
			entries[n] = t.entryAt(s, uint16(i*64+bits.TrailingZeros64(bit)))
			if n++; n == len(entries) {
				visit(entries[:])
				n = 0
			}
		}
	}
	if n > 0 {
		visit(entries[:n])
	}
}

// touch reads each entry and its stem. None of them has to wait for another: the memory
// brings them all at once, where one after the other would take most of the time of a walk.
// The entries come first, because a stem cannot be asked for before its entry is there.
//
//go:noinline // else nothing would be read, because the result is unused
func (t *Table) touch(entries []entry) (sum byte) {
	var ids [visitedAtOnce]uint32
	for i, e := range entries {
		ids[i] = e.stem()
	}
	for _, id := range ids[:len(entries)] {
		if id != 0 {
			stem := t.stems.at(id)
			sum ^= stem[stemChars] ^ stem[min(stemTouched, len(stem)-1)]
		}
	}
	return sum
}

// stemTouched is where most stems end at the latest: they may lie in two lines of the cache.
const stemTouched = 47

// touchStemOf reads the stem that the key of a pod would have. The memory brings it together with
// the slots and the entry, where a search that learns of it from the entry would wait once more.
//
//go:noinline // see touch
func (t *Table) touchStemOf(key string) (sum byte) {
	begins := len(key) - generatedChars
	if begins <= 0 || key[begins-1] != '-' {
		return 0
	}
	if id := t.stems.first(t.hasher.sum(key[:begins])); id != 0 {
		sum = t.stems.at(id)[stemChars]
	}
	return sum
}
