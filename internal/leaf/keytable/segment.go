package keytable

import (
	"encoding/binary"
	"iter"
	"math/bits"
)

const (
	// entryMostPages is what 16 bits can find their way in.
	entryMostPages = 1 << 16 / pageSize

	// A group is eight slots: eight tags, then eight refs, in half a cache line.
	groupSlots = 8
	groupSize  = groupSlots * 4
	groupRefs  = groupSlots * 2

	groupsPerPage = pageSize / groupSize
	slotsPerPage  = groupsPerPage * groupSlots
	slotPages     = 16
	// fullNum of fullDen slots are the most in use.
	fullNum, fullDen = 7, 8
	// segmentMost is the number of entries that a segment has slots for.
	segmentMost = slotPages * slotsPerPage * fullNum / fullDen

	// markSpan is how many generations the marks of a segment tell apart.
	markSpan = 255
)

// segment is a hash table of entries. A slot holds a tag, the last 16 bits of a
// hash, and a ref, the place of an entry in the segment's pages. Tag 0 is that of
// an empty slot; hashes that end so have tag 1.
//
// Invariant: an entry lies in the group that its tag stands for, or in a later one
// if all between are full, so that a search ends at the first that is not. Nearly
// all searches end in their first group, which the processor can foresee: it has
// begun the next search before the memory has answered this one.
type segment struct {
	marks
	// next is another segment for the same hashes, 0 for none. There is one only
	// where so many keys have one hash that splitting does not help.
	next uint32
	// dead is the size of the entries that no slot refers to. Invariant: free leads to all of them.
	dead uint32
	// free is 1 + the ref of the newest dead entry, 0 for none. See freeEntry.
	free uint32
	// tail is the first place never used.
	tail uint32
	// count is the number of entries, slots that of slots.
	count, slots uint16
	// depth is how many first bits all hashes of the segment share.
	depth     uint8
	slotPages [slotPages]uint32
	// entryPages are entryMostPages at most.
	entryPages []uint32
}

// slotPagesFor is the number of pages of so many slots.
func slotPagesFor(slots uint16) int { return (int(slots) + slotsPerPage - 1) / slotsPerPage }

// slotsFor is the number of slots that so many entries need.
func slotsFor(entries int) int {
	least := (entries*fullDen + fullNum - 1) / fullNum
	if least <= slotsPerPage/2 {
		slots := groupSlots
		for slots < least {
			slots *= 2
		}
		return slots
	}
	return (least + slotsPerPage - 1) / slotsPerPage * slotsPerPage
}

func tagOf(hash uint64) uint16 { return max(uint16(hash), 1) }

// home is the group that a tag stands for.
func (s *segment) home(tag uint16) uint32 { return uint32(tag) * uint32(s.slots/groupSlots) >> 16 }

// after is the group after g.
func (s *segment) after(g uint32) uint32 {
	if g++; g == uint32(s.slots/groupSlots) {
		return 0
	}
	return g
}

// away is how far group g is from the home of tag.
func (s *segment) away(g uint32, tag uint16) uint32 {
	home := s.home(tag)
	if g < home {
		return g + uint32(s.slots/groupSlots) - home
	}
	return g - home
}

func (t *Table) group(s *segment, g uint32) []byte {
	return t.slots.at(s.slotPages[g/groupsPerPage])[g%groupsPerPage*groupSize:][:groupSize]
}

// lanes has 1 in each of four numbers of 16 bits.
const lanes = 0x0001_0001_0001_0001

// zeros has the top bit of each of four numbers that is 0. It may have that of one
// that is 1, above one that is 0.
func zeros(x uint64) uint64 { return (x - lanes) &^ x & (lanes << 15) }

// lanesOf has a bit for each of the slots whose tag is that of same, four times: low
// are the tags of the first four, whose bits are 0, 16, 32 and 48, and high those of
// the next, whose bits are 1 more. It may have more bits, as zeros has, but the lowest
// is right.
func lanesOf(low, high, same uint64) uint64 { return zeros(low^same)>>15 | zeros(high^same)>>14 }

// lowestLane is where the tag of the lowest bit of lanesOf is in its group.
func lowestLane(found uint64) uint32 {
	bit := uint32(bits.TrailingZeros64(found))
	return (bit/16 + bit%16*4) * 2
}

// full reports whether a group has no empty slot.
func full(group []byte) bool {
	return zeros(binary.LittleEndian.Uint64(group))|zeros(binary.LittleEndian.Uint64(group[8:])) == 0
}

// readSlot is the tag and the ref of slot i.
func (t *Table) readSlot(s *segment, i uint32) (tag, ref uint16) {
	group := t.group(s, i/groupSlots)
	lane := i % groupSlots * 2
	return binary.LittleEndian.Uint16(group[lane:]), binary.LittleEndian.Uint16(group[groupRefs+lane:])
}

func (t *Table) writeSlot(s *segment, i uint32, tag, ref uint16) {
	group := t.group(s, i/groupSlots)
	lane := i % groupSlots * 2
	binary.LittleEndian.PutUint16(group[lane:], tag)
	binary.LittleEndian.PutUint16(group[groupRefs+lane:], ref)
}

// entryAt is the entry that a ref names.
func (t *Table) entryAt(s *segment, ref uint16) entry {
	return entry(t.entries.at(s.entryPages[ref>>pageBits])[ref%pageSize:])
}

// search returns the slot and the entry of key.
func (t *Table) search(s *segment, hash uint64, key string) (i uint32, e entry, ok bool) {
	if s.slots == 0 {
		return 0, nil, false
	}
	tag := tagOf(hash)
	same := uint64(tag) * lanes
	for g := s.home(tag); ; g = s.after(g) {
		group := t.group(s, g)
		low, high := binary.LittleEndian.Uint64(group), binary.LittleEndian.Uint64(group[8:])
		for found := lanesOf(low, high, same); found != 0; found &= found - 1 {
			lane := lowestLane(found)
			if binary.LittleEndian.Uint16(group[lane:]) != tag {
				continue
			}
			e := t.entryAt(s, binary.LittleEndian.Uint16(group[groupRefs+lane:]))
			if t.isOf(e, key) {
				return g*groupSlots + lane/2, e, true
			}
		}
		if zeros(low)|zeros(high) != 0 {
			return 0, nil, false
		}
	}
}

// insertSlot puts a tag and a ref into the slots. One of them is empty.
func (t *Table) insertSlot(s *segment, tag, ref uint16) {
	for g := s.home(tag); ; g = s.after(g) {
		group := t.group(s, g)
		if empty := lanesOf(binary.LittleEndian.Uint64(group), binary.LittleEndian.Uint64(group[8:]), 0); empty != 0 {
			lane := lowestLane(empty)
			binary.LittleEndian.PutUint16(group[lane:], tag)
			binary.LittleEndian.PutUint16(group[groupRefs+lane:], ref)
			return
		}
	}
}

// removeSlot empties slot i, and moves there what its group had no room for.
func (t *Table) removeSlot(s *segment, i uint32) {
	for {
		from, ok := t.overflown(s, i/groupSlots)
		if !ok {
			t.writeSlot(s, i, 0, 0)
			return
		}
		tag, ref := t.readSlot(s, from)
		t.writeSlot(s, i, tag, ref)
		i = from
	}
}

// overflown finds a slot that lies after group g because that is full.
func (t *Table) overflown(s *segment, g uint32) (i uint32, ok bool) {
	away := uint32(1)
	for ; full(t.group(s, g)); away++ {
		if g = s.after(g); away == uint32(s.slots/groupSlots) {
			break
		}
		group := t.group(s, g)
		for lane := uint32(0); lane < groupRefs; lane += 2 {
			if tag := binary.LittleEndian.Uint16(group[lane:]); tag != 0 && s.away(g, tag) >= away {
				return g*groupSlots + lane/2, true
			}
		}
	}
	return 0, false
}

// resize gives s so many slots.
func (t *Table) resize(s *segment, slots int) {
	if size := slots * groupSize / groupSlots; t.slots.count == 1 && s.slots > 0 && size <= pageSize {
		// It stays in its page, which is the only one, and may be short.
		var copied [pageSize]byte
		left := copied[:copy(copied[:], t.slots.at(s.slotPages[0])[:int(s.slots)*groupSize/groupSlots])]
		t.slots.ensure(s.slotPages[0], size)
		clear(t.slots.at(s.slotPages[0])[:size])
		s.slots = uint16(slots)
		for ; len(left) > 0; left = left[groupSize:] {
			t.insertGroup(s, left)
		}
		return
	}
	old := *s
	s.slots = uint16(slots)
	for i := range slotPagesFor(s.slots) {
		s.slotPages[i] = t.slots.take()
	}
	if slots <= slotsPerPage {
		t.slots.ensure(s.slotPages[0], slots*groupSize/groupSlots)
	}
	left := slots * groupSize / groupSlots
	for i := range slotPagesFor(s.slots) {
		clear(t.slots.at(s.slotPages[i])[:min(left, pageSize)])
		left -= pageSize
	}
	for g := range uint32(old.slots / groupSlots) {
		t.insertGroup(s, t.group(&old, g))
	}
	t.giveSlots(&old)
}

// insertGroup puts what another group has into the slots.
func (t *Table) insertGroup(s *segment, group []byte) {
	for lane := 0; lane < groupRefs; lane += 2 {
		if tag := binary.LittleEndian.Uint16(group[lane:]); tag != 0 {
			t.insertSlot(s, tag, binary.LittleEndian.Uint16(group[groupRefs+lane:]))
		}
	}
}

func (t *Table) giveSlots(s *segment) {
	for i := range slotPagesFor(s.slots) {
		t.slots.give(s.slotPages[i])
	}
	s.slots = 0
}

func (t *Table) giveEntries(s *segment) {
	for _, page := range s.entryPages {
		t.entries.give(page)
	}
	s.entryPages, s.tail, s.dead, s.free = nil, 0, 0, 0
}

// needsPage reports whether an entry of that size does not fit what is taken.
func (s *segment) needsPage(size int) bool {
	return s.tail+uint32(size) > uint32(len(s.entryPages))*pageSize
}

// put adds the bytes of an entry, and returns its ref.
// The caller has seen to it that there is room.
func (t *Table) put(s *segment, e entry) uint16 {
	if s.needsPage(len(e)) {
		s.tail = uint32(len(s.entryPages)) * pageSize
		s.entryPages = append(s.entryPages, t.entries.take())
	}
	ref := s.tail
	s.tail += uint32(len(e))
	page := s.entryPages[ref>>pageBits]
	t.entries.ensure(page, int((s.tail-1)%pageSize)+1)
	copy(t.entries.at(page)[ref%pageSize:], e)
	return uint16(ref)
}

// fits adds an entry. It is false, and nothing happens, where s has no room.
func (t *Table) fits(s *segment, hash uint64, e entry) bool {
	if s.count == segmentMost {
		return false
	}
	ref, ok := t.takeFree(s, len(e))
	if !ok && !t.room(s, len(e)) {
		return false
	}
	if int(s.count+1)*fullDen > int(s.slots)*fullNum {
		t.resize(s, slotsFor(int(s.count)+1))
	}
	if ok {
		copy(t.entryAt(s, ref), e)
	} else {
		ref = t.put(s, e)
	}
	t.insertSlot(s, tagOf(hash), ref)
	s.count++
	return true
}

// A dead entry is its size, in two bytes, and 1 + the ref of the one that died before it, in three.
// The smallest entry has six.
const (
	deadSize = 0
	deadNext = 2

	// deadLooked is how many dead entries takeFree looks at.
	deadLooked = 4
)

// freeEntry makes the entry of a ref a dead one.
func (t *Table) freeEntry(s *segment, ref uint16, size uint32) {
	e := t.entryAt(s, ref)
	binary.LittleEndian.PutUint16(e[deadSize:], uint16(size))
	write24(e[deadNext:], s.free)
	s.free = uint32(ref) + 1
	s.dead += size
}

// takeFree returns the place of a dead entry of just that size, if one of the newest is. It is in a
// cache, and most entries of a table are of one size: where one goes and another comes, nothing
// needs to be moved.
func (t *Table) takeFree(s *segment, size int) (ref uint16, ok bool) {
	at := s.free
	var before entry
	for range deadLooked {
		if at == 0 {
			break
		}
		e := t.entryAt(s, uint16(at-1))
		next := read24(e[deadNext:])
		if int(binary.LittleEndian.Uint16(e[deadSize:])) == size {
			if before == nil {
				s.free = next
			} else {
				write24(before[deadNext:], next)
			}
			s.dead -= uint32(size)
			return uint16(at - 1), true
		}
		at, before = next, e
	}
	return 0, false
}

// room reports whether put has room, and compacts s where dead entries keep
// a quarter of it.
func (t *Table) room(s *segment, size int) bool {
	if s.needsPage(size) && s.dead > 0 && s.dead*4 >= s.tail {
		t.compact(s)
	}
	return !s.needsPage(size) || len(s.entryPages) < entryMostPages
}

// compact moves the entries together, over the dead ones, and leaves slots that are not needed. In
// the order of their places, none of them moves to a later one, and none to where a next one lies.
func (t *Table) compact(s *segment) {
	var refs refs
	t.refsOf(s, 0, 1<<16, &refs)
	var before [len(refs)]uint16 // how many refs are in the words before each
	var moved [segmentMost]uint16
	n, tail := 0, uint32(0)
	for i, bit := range refs {
		before[i] = uint16(n)
		for ; bit != 0; bit &= bit - 1 {
			e := t.entryAt(s, uint16(i*64+bits.TrailingZeros64(bit))).whole()
			if tail%pageSize+uint32(len(e)) > pageSize {
				tail = (tail + pageSize) &^ (pageSize - 1)
			}
			moved[n] = uint16(tail)
			copy(t.entryAt(s, moved[n]), e)
			tail += uint32(len(e))
			n++
		}
	}
	for i := range uint32(s.slots) {
		if tag, ref := t.readSlot(s, i); tag != 0 {
			below := refs[ref/64] & (1<<(ref%64) - 1)
			t.writeSlot(s, i, tag, moved[int(before[ref/64])+bits.OnesCount64(below)])
		}
	}
	used := (tail + pageSize - 1) / pageSize
	spare := s.entryPages[used:]
	for _, page := range spare {
		t.entries.give(page)
	}
	s.entryPages, s.tail, s.dead, s.free = s.entryPages[:used], tail, 0, 0
	if len(spare) > 0 { // the slabs of a table that shrinks become free from the last one on
		for i, page := range s.entryPages {
			s.entryPages[i] = t.entries.lower(page)
		}
	}
	if slots := slotsFor(int(s.count)); slots*2 <= int(s.slots) {
		t.resize(s, slots)
	}
}

// split divides segment n between itself and a new one by the next bit of the
// hashes. It is false, and nothing happens, where that does not help.
func (t *Table) split(n uint32) bool {
	old := t.segments[n]
	if !t.divisible(&old) {
		return false
	}
	if old.depth == t.depth {
		t.deepen()
	}
	// over takes what does not fit a half: with a hash that tells few keys from
	// many, one of them may be as large as the whole.
	var halves, over [2]segment
	for side := range halves {
		over[side] = segment{marks: old.marks, depth: old.depth + 1}
		halves[side] = over[side]
		t.resize(&halves[side], slotsFor(int(old.count)/2))
	}
	var of1 uint64 // one of the hashes of the new segment
	t.visitOne(&old, 0, 1<<16, func(entries []entry) {
		t.touch(entries)
		for _, e := range entries {
			t.key = t.appendEntryKey(t.key[:0], e)
			key := Borrowed(t.key)
			hash := t.hasher.sum(key)
			side := hash << old.depth >> 63
			if side == 1 {
				of1 = hash
			}
			var buffer [entryMost]byte
			moved := t.restem(buffer[:0], e, key)
			if !t.fits(&halves[side], hash, moved) {
				t.fits(&over[side], hash, moved)
			}
		}
	})
	t.giveSlots(&old)
	t.giveEntries(&old)
	for side := range halves {
		if over[side].count > 0 {
			halves[side].next = t.addSegment(over[side])
		}
	}
	t.segments[n] = halves[0]
	added := t.addSegment(halves[1])
	// Its directory is the second half of that of the old.
	places := 1 << (t.depth - old.depth - 1)
	begin := int(of1>>(64-t.depth)) &^ (places - 1)
	for i := range places {
		t.directory[begin+i] = added
	}
	return true
}

func (t *Table) addSegment(s segment) (n uint32) {
	t.segments = append(t.segments, s)
	return uint32(len(t.segments) - 1)
}

// hashOf is the hash of the key of an entry.
func (t *Table) hashOf(e entry) uint64 {
	t.key = t.appendEntryKey(t.key[:0], e)
	return t.hasher.sum(Borrowed(t.key))
}

// divisible reports whether the next bit of the hashes tells some of the entries
// from others. 32 of them tell.
func (t *Table) divisible(s *segment) bool {
	if s.depth >= maxDepth {
		return false
	}
	looked, ones := 0, 0
	for i := uint32(0); i < uint32(s.slots) && looked < 32; i++ {
		if tag, ref := t.readSlot(s, i); tag != 0 {
			looked++
			ones += int(t.hashOf(t.entryAt(s, ref)) << s.depth >> 63)
		}
	}
	return ones > 0 && ones < looked
}

// entriesOf yields the entries of s.
func (t *Table) entriesOf(s *segment) iter.Seq[entry] {
	return func(yield func(entry) bool) {
		for i := range uint32(s.slots) {
			if tag, ref := t.readSlot(s, i); tag != 0 && !yield(t.entryAt(s, ref)) {
				return
			}
		}
	}
}

// deepen doubles the directory.
func (t *Table) deepen() {
	deeper := make([]uint32, 2*len(t.directory))
	for i, n := range t.directory {
		deeper[2*i], deeper[2*i+1] = n, n
	}
	t.directory = deeper
	t.depth++
}
