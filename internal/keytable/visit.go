package keytable

import (
	"encoding/binary"
	"math/bits"
)

// visitOne visits the entries of s with tags from one to another. It visits them as
// they lie in memory, which foresees that, and takes several times as long for the
// order of the slots.
func (t *Table) visitOne(s *segment, from, to uint64, visit func(e entry)) {
	var refs [1 << 16 / 64]uint64 // a bit for each
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
	for i, bit := range refs[:(s.tail+63)/64] {
		for ; bit != 0; bit &= bit - 1 {
			visit(t.entryAt(s, uint16(i*64+bits.TrailingZeros64(bit))))
		}
	}
}

// ahead keeps some entries back until their stems are on their way from memory.
type ahead struct {
	use     func(e entry)
	entries [16]entry
	n       int
}

// keep uses e, now or later.
func (t *Table) keep(a *ahead, e entry) {
	a.entries[a.n] = e
	if a.n++; a.n == len(a.entries) {
		t.flush(a)
	}
}

// flush uses what was kept.
func (t *Table) flush(a *ahead) {
	t.touch(a.entries[:a.n])
	for _, e := range a.entries[:a.n] {
		a.use(e)
	}
	a.n = 0
}

// touch reads a byte of each entry and of its stem. None of them has to wait for
// another: the memory brings them all at once, where one after the other would take
// most of the time of a walk.
//
//go:noinline // else nothing would be read, because the result is unused
func (t *Table) touch(entries []entry) (sum byte) {
	for _, e := range entries {
		if stem := e.stem(); stem != 0 {
			sum ^= t.stems.at(stem)[stemChars]
		}
	}
	return sum
}
