package keytable

import (
	"encoding/binary"
	"fmt"
	"math/bits"
)

// checkedWhole is the number of keys up to which a table is checked whole. Of
// larger ones it is the segment that changed.
const checkedWhole = 64

// check panics if an invariant does not hold after a change of the key with that
// hash, where that is asked for.
func (t *Table) check(hash uint64) {
	if !invariants {
		return
	}
	if t.count <= checkedWhole {
		t.verify()
		return
	}
	for n := t.directory[hash>>(64-t.depth)]; ; n = t.segments[n].next {
		t.verifySegment(n, hash, nil)
		if t.segments[n].next == 0 {
			return
		}
	}
}

func must(holds bool, invariant string, values ...any) {
	if !holds {
		panic(fmt.Sprintf("keytable: broken invariant: "+invariant, values...))
	}
}

// verify panics if an invariant does not hold.
func (t *Table) verify() {
	if t.count == 0 {
		must(t.SizeBytes() == 0, "an empty table has %d bytes", t.SizeBytes())
	}
	if t.held == nothing {
		t.verifyFew()
		return
	}
	must(len(t.few.bytes) == 0, "a table with segments has %d bytes beside them", len(t.few.bytes))
	must(len(t.directory) == 1<<t.depth, "the directory of depth %d has %d places", t.depth, len(t.directory))
	count, slotPages, entryPages, segments := 0, 0, 0, 0
	refs := map[uint32]uint32{}
	for place := uint64(0); place < uint64(len(t.directory)); {
		first := place << (64 - t.depth) // 0 if the depth is
		n := t.directory[place]
		width := uint64(1) << (t.depth - t.segments[n].depth)
		must(place%width == 0, "segment %d of depth %d begins at %d", n, t.segments[n].depth, place)
		for i := range width {
			must(t.directory[place+i] == n, "place %d is not of segment %d", place+i, n)
		}
		place += width
		for {
			s := &t.segments[n]
			t.verifySegment(n, first, refs)
			count += int(s.count)
			slotPages += slotPagesFor(s.slots)
			entryPages += len(s.entryPages)
			segments++
			if s.next == 0 {
				break
			}
			n = s.next
		}
	}
	must(count == t.count, "the segments have %d keys, the table %d", count, t.count)
	must(segments == len(t.segments), "%d of %d segments are in the directory", segments, len(t.segments))
	must(slotPages == t.slots.count, "the segments have %d pages of slots, %d are taken", slotPages, t.slots.count)
	must(entryPages == t.entries.count, "the segments have %d pages of entries, %d are taken", entryPages, t.entries.count)
	t.slots.verify()
	t.entries.verify()
	t.stems.verify(&t.hasher, refs)
}

// verifyFew checks a table without segments.
func (t *Table) verifyFew() {
	count, at := 0, 0
	for e := range t.few.each {
		size := int(t.few.bytes[at+fewSize])
		must(e.stem() == 0 && e.textKind() != textLarge, "an entry of few refers to what is elsewhere")
		must(size == len(e.whole()), "an entry of few has %d bytes, not %d", len(e.whole()), size)
		must(t.few.bytes[at+fewTag] == fewTagOf(t.hasher.sum(t.keyOf(e))), "%q has a wrong tag", t.keyOf(e))
		must(t.few.generationOf(e[entryMark]) <= t.generation, "%q has mark %d", t.keyOf(e), t.few.generationOf(e[entryMark]))
		at += fewEntry + size
		count++
	}
	must(count == t.count && count <= fewMost && at <= fewMostBytes, "few has %d keys in %d bytes, the table %d", count, at, t.count)
}

// verifySegment checks one segment, for hashes that begin like hash, and adds to
// refs, if given, how often each stem is named.
func (t *Table) verifySegment(n uint32, hash uint64, refs map[uint32]uint32) {
	s := &t.segments[n]
	must(s.base >= 1, "segment %d begins at generation 0", n)
	if s.count == 0 {
		must(s.slots == 0 && len(s.entryPages) == 0, "empty segment %d has memory", n)
		return
	}
	live, count := uint32(0), uint16(0)
	for i := range uint32(s.slots) {
		tag, ref := t.readSlot(s, i)
		if tag == 0 {
			continue
		}
		count++
		for g := s.home(tag); g != i/groupSlots; g = s.after(g) {
			must(full(t.group(s, g)), "slot %d of segment %d is behind group %d, which is not full", i, n, g)
		}
		e := t.entryAt(s, ref)
		live += uint32(len(e.whole()))
		must(uint32(ref)+uint32(len(e.whole())) <= s.tail, "an entry of segment %d lies beyond its tail", n)
		must(s.generationOf(e[entryMark]) <= t.generation, "%q has mark %d", t.keyOf(e), s.generationOf(e[entryMark]))
		must(!t.isGreatest(t.keyOf(e)), "%q is greater than the greatest key, %q", t.keyOf(e), t.greatest)
		own := t.hasher.sum(t.keyOf(e))
		must(tagOf(own) == tag && (own^hash)>>(64-s.depth) == 0, "%q is in the wrong place", t.keyOf(e))
		if refs != nil && e.stem() != 0 {
			refs[e.stem()]++
		}
	}
	must(count == s.count, "segment %d has %d keys, not %d", n, count, s.count)
	dead := uint32(0)
	for at := s.free; at != 0; {
		e := t.entryAt(s, uint16(at-1))
		size := uint32(binary.LittleEndian.Uint16(e[deadSize:]))
		must(at-1+size <= s.tail, "a dead entry of segment %d lies beyond its tail", n)
		dead += size
		must(dead <= s.dead, "segment %d has more than %d dead bytes", n, s.dead)
		at = read24(e[deadNext:])
	}
	must(dead == s.dead, "segment %d has %d dead bytes, not %d", n, dead, s.dead)
	must(int(s.count)*fullDen <= int(s.slots)*fullNum, "segment %d has %d keys in %d slots", n, s.count, s.slots)
	must(live+s.dead <= s.tail && s.tail <= uint32(len(s.entryPages))*pageSize, "segment %d has %d bytes in use and %d dead of %d", n, live, s.dead, s.tail)
}

func (p *pages) verify() {
	count, size, spares := 0, int64(0), 0
	for slab, memory := range p.slabs {
		size += int64(len(memory))
		if p.usedOf(slab) == [slabWords]uint64{} && memory != nil {
			spares++
			must(p.spare == slab+1, "slab %d is not known to be spare", slab)
		}
	}
	for word, used := range p.used {
		count += bits.OnesCount64(used)
		must(word >= p.first || used == ^uint64(0), "word %d below the first has a free page", word)
		if last := word*64 + 63 - bits.LeadingZeros64(used); used != 0 && last > 0 {
			must(len(p.slabs[last/slabPages]) >= (last%slabPages+1)*pageSize, "page %d is beyond its slab", last)
		}
	}
	must(count == p.count, "%d pages are used, not %d", count, p.count)
	must(size == p.bytes, "the slabs have %d bytes, not %d", size, p.bytes)
	must(spares <= 1, "there are %d spare slabs", spares)
}

// verify checks the stems; refs are the entries that name each.
func (s *stems) verify(h *hasher, refs map[uint32]uint32) {
	must(s.recent == 0 || s.find(s.rehash(h, s.recent), s.text(s.recent)) == s.recent, "the recent stem is gone")
	count := 0
	for bucket, id := range s.buckets {
		for ; id != 0; id = read24(s.at(id)[stemNext:]) {
			must(s.bucket(s.rehash(h, id)) == bucket, "stem %d is in bucket %d", id, bucket)
			count++
		}
	}
	must(count == s.count && count <= 2*len(s.buckets), "there are %d stems in %d buckets, not %d", count, len(s.buckets), s.count)
	for _, id := range s.buckets {
		for ; id != 0; id = read24(s.at(id)[stemNext:]) {
			have, want := read24(s.at(id)[stemRefs:]), refs[id]
			must(have == want, "stem %d has %d references, not %d", id, have, want)
			delete(refs, id)
		}
	}
	must(len(refs) == 0, "entries name stems that there are not: %v", refs)
}
