package keytable

import (
	"encoding/binary"
	"iter"
)

const (
	// entryPages is what 16 bits can find their way in.
	entryPages = 1 << 16 / pageSize

	slotSize     = 4
	slotsPerPage = pageSize / slotSize
	slotPages    = 16
	// fullNum of fullDen slots are the most in use: with slots in the order of
	// their hashes, a search looks at 9 then, found or not.
	fullNum, fullDen = 15, 16
	// segmentMost is the number of entries that a segment has slots for.
	segmentMost = slotPages * slotsPerPage * fullNum / fullDen

	// markSpan is how many generations the marks of a segment tell apart.
	markSpan = 255
)

// segment is a hash table of entries. A slot holds the last 16 bits of a hash and
// a ref, the place of an entry in the segment's pages; it is 0 if it is empty.
//
// Invariant: an entry lies at or after the slot that its hash stands for, all
// slots between are in use, and by entries that lie as far or farther from theirs
// (Robin Hood), so that a search ends at the first that lies nearer.
type segment struct {
	// base is the generation for which mark 1 stands; mark 0 stands for every
	// older one. Invariant: it is at least 1.
	base uint64
	// next is another segment for the same hashes, 0 for none. There is one only
	// where so many keys have one hash that splitting does not help.
	next uint32
	// dead is the size of the entries that no slot refers to.
	dead uint32
	// tail is the first place never used. Place 0 is not, so that no slot is 0.
	tail uint32
	// count is the number of entries, slots that of slots.
	count, slots uint16
	// depth is how many first bits all hashes of the segment share.
	depth uint8
	// taken is the number of entryPages.
	taken      uint8
	slotPages  [slotPages]uint32
	entryPages [entryPages]uint32
}

// slotPagesFor is the number of pages of so many slots.
func slotPagesFor(slots uint16) int { return (int(slots) + slotsPerPage - 1) / slotsPerPage }

// slotsFor is the number of slots that so many entries need.
func slotsFor(entries int) int {
	least := entries*fullDen/fullNum + 1
	if least <= 256 {
		slots := 8
		for slots < least {
			slots *= 2
		}
		return slots
	}
	return (least + slotsPerPage - 1) / slotsPerPage * slotsPerPage
}

// slot is the bytes of slot i of s.
func (t *Table) slot(s *segment, i uint32) []byte {
	return t.slots.at(s.slotPages[i/slotsPerPage])[i%slotsPerPage*slotSize:]
}

func (t *Table) readSlot(s *segment, i uint32) uint32 {
	return binary.LittleEndian.Uint32(t.slot(s, i))
}

func (t *Table) writeSlot(s *segment, i uint32, v uint32) {
	binary.LittleEndian.PutUint32(t.slot(s, i), v)
}

// home is the slot that a slot's hash stands for.
func (s *segment) home(v uint32) uint32 { return v >> 16 * uint32(s.slots) >> 16 }

// away is how far slot i, which has v, is from its home.
func (s *segment) away(i, v uint32) uint32 {
	home := s.home(v)
	if i < home {
		return i + uint32(s.slots) - home
	}
	return i - home
}

// entryAt is the entry that the slot value refers to.
func (t *Table) entryAt(s *segment, v uint32) entry {
	ref := v & 0xffff
	return entry(t.entries.at(s.entryPages[ref>>pageBits])[ref%pageSize:])
}

// search returns the slot and the entry of key.
func (t *Table) search(s *segment, hash uint64, key string) (i uint32, e entry, ok bool) {
	if s.slots == 0 {
		return 0, nil, false
	}
	slots := uint32(s.slots)
	want := uint32(hash) << 16
	i = s.home(want)
	page := t.slots.at(s.slotPages[i/slotsPerPage])
	for away := uint32(0); ; away++ {
		v := binary.LittleEndian.Uint32(page[i%slotsPerPage*slotSize:])
		if v == 0 {
			return 0, nil, false
		}
		if v&0xffff0000 == want {
			if e := t.entryAt(s, v); t.isOf(e, key) {
				return i, e, true
			}
		} else if s.away(i, v) < away {
			return 0, nil, false
		}
		if i++; i == slots {
			i = 0
		}
		if i%slotsPerPage == 0 {
			page = t.slots.at(s.slotPages[i/slotsPerPage])
		}
	}
}

// insertSlot puts v into the slots, of which one is empty.
func (t *Table) insertSlot(s *segment, v uint32) {
	i := s.home(v)
	for away := uint32(0); ; away++ {
		have := t.readSlot(s, i)
		if have == 0 {
			t.writeSlot(s, i, v)
			return
		}
		if there := s.away(i, have); there < away {
			t.writeSlot(s, i, v)
			v, away = have, there
		}
		if i++; i == uint32(s.slots) {
			i = 0
		}
	}
}

// removeSlot empties slot i, and moves those after it that are not at home.
func (t *Table) removeSlot(s *segment, i uint32) {
	for {
		next := i + 1
		if next == uint32(s.slots) {
			next = 0
		}
		v := t.readSlot(s, next)
		if v == 0 || s.away(next, v) == 0 {
			t.writeSlot(s, i, 0)
			return
		}
		t.writeSlot(s, i, v)
		i = next
	}
}

// resize gives s so many slots.
func (t *Table) resize(s *segment, slots int) {
	old := *s
	s.slots = uint16(slots)
	for i := range slotPagesFor(s.slots) {
		s.slotPages[i] = t.slots.take()
	}
	if slots <= slotsPerPage {
		t.slots.ensure(s.slotPages[0], slots*slotSize)
	}
	left := slots * slotSize
	for i := range slotPagesFor(s.slots) {
		clear(t.slots.at(s.slotPages[i])[:min(left, pageSize)])
		left -= pageSize
	}
	for i := range uint32(old.slots) {
		if v := t.readSlot(&old, i); v != 0 {
			t.insertSlot(s, v)
		}
	}
	t.giveSlots(&old)
}

func (t *Table) giveSlots(s *segment) {
	for i := range slotPagesFor(s.slots) {
		t.slots.give(s.slotPages[i])
	}
	s.slots = 0
}

func (t *Table) giveEntries(s *segment) {
	for i := range s.taken {
		t.entries.give(s.entryPages[i])
	}
	s.taken, s.tail, s.dead = 0, 0, 0
}

// needsPage reports whether an entry of that size does not fit what is taken.
func (s *segment) needsPage(size int) bool {
	return s.tail+uint32(size) > uint32(s.taken)*pageSize
}

// put adds the bytes of an entry, and returns its ref.
// The caller has seen to it that there is room.
func (t *Table) put(s *segment, e entry) uint32 {
	if s.needsPage(len(e)) {
		s.tail = uint32(s.taken) * pageSize
		s.entryPages[s.taken] = t.entries.take()
		s.taken++
		if s.tail == 0 {
			s.tail = 1
		}
	}
	ref := s.tail
	s.tail += uint32(len(e))
	page := s.entryPages[ref>>pageBits]
	t.entries.ensure(page, int((s.tail-1)%pageSize)+1)
	copy(t.entries.at(page)[ref%pageSize:], e)
	return ref
}

// fits adds an entry. It is false, and nothing happens, where s has no room.
func (t *Table) fits(s *segment, hash uint64, e entry) bool {
	if s.count == segmentMost || !t.room(s, len(e)) {
		return false
	}
	if int(s.count+1)*fullDen > int(s.slots)*fullNum {
		t.resize(s, slotsFor(int(s.count)+1))
	}
	t.insertSlot(s, uint32(hash)<<16|t.put(s, e))
	s.count++
	return true
}

// room reports whether put has room, and compacts s where dead entries keep
// a quarter of it.
func (t *Table) room(s *segment, size int) bool {
	if s.needsPage(size) && s.dead > 0 && s.dead*4 >= s.tail && s.compactable() {
		t.compact(s)
	}
	return !s.needsPage(size) || s.taken < entryPages
}

// compactable reports whether the entries of s surely fit its pages in another
// order, in which more may be left at the end of each page.
func (s *segment) compactable() bool {
	return (s.tail-s.dead)/(pageSize-entryMost) < entryPages-1
}

// compact leaves the dead entries behind, and slots that are not needed.
func (t *Table) compact(s *segment) {
	old := *s
	s.taken, s.tail, s.dead = 0, 0, 0
	for i := range uint32(s.slots) {
		if v := t.readSlot(s, i); v != 0 {
			t.writeSlot(s, i, v&0xffff0000|t.put(s, t.entryAt(&old, v).whole()))
		}
	}
	t.giveEntries(&old)
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
		over[side] = segment{base: old.base, depth: old.depth + 1}
		halves[side] = over[side]
		t.resize(&halves[side], slotsFor(int(old.count)/2))
	}
	var of1 uint64 // one of the hashes of the new segment
	for i := range uint32(old.slots) {
		v := t.readSlot(&old, i)
		if v == 0 {
			continue
		}
		e := t.entryAt(&old, v)
		t.key = t.appendEntryKey(t.key[:0], e)
		key := borrowed(t.key)
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
	return t.hasher.sum(borrowed(t.key))
}

// divisible reports whether the next bit of the hashes tells some of the entries
// from others. 32 of them tell.
func (t *Table) divisible(s *segment) bool {
	if s.depth >= maxDepth {
		return false
	}
	looked, ones := 0, 0
	for i := uint32(0); i < uint32(s.slots) && looked < 32; i++ {
		if v := t.readSlot(s, i); v != 0 {
			looked++
			ones += int(t.hashOf(t.entryAt(s, v)) << s.depth >> 63)
		}
	}
	return ones > 0 && ones < looked
}

// entriesOf yields the entries of s.
func (t *Table) entriesOf(s *segment) iter.Seq[entry] {
	return func(yield func(entry) bool) {
		for i := range uint32(s.slots) {
			if v := t.readSlot(s, i); v != 0 && !yield(t.entryAt(s, v)) {
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
