package keytable

import (
	"iter"
	"strconv"
	"strings"
	"unsafe"
)

// maxDepth bounds the directory where hashes collide.
const maxDepth = 28

// Table maps keys to versions. It is not safe for concurrent use: its owner
// guards it. What only reads (Get, Compare, Len, SizeBytes, Generation, All,
// KeysFrom, LendFrom, UnmarkedFrom) may run side by side.
//
// No method keeps a string that it is given, and no string that it returns is
// the table's: the bytes of both may be lent.
type Table struct {
	hasher hasher
	// generation is the number of the newest generation. Invariant: no mark is
	// greater, so that one table serves several runs.
	generation uint64

	// count is the number of keys. Invariant: it is the sum of the segments'
	// counts. If it is 0, the table holds nothing.
	count int
	// few has the entries of a small table, and held those of any other.
	few few
	*held
}

// held is what a table has its keys in, if they are not few.
type held struct {
	// depth is the number of bits of a hash that the directory tells apart, which
	// has 2^depth places. Invariant: a segment of depth d has 2^(depth-d) of them,
	// side by side, for the hashes that begin with the same d bits.
	depth     uint8
	directory []uint32
	segments  []segment

	slots   pages
	entries pages
	stems   stems
	large   large

	// key is scratch, for writers.
	key []byte
	// last is the key that was added last. If the next one makes a stem of the beginning that
	// the two share, it is given that: lists come in the order of their names.
	last []byte
	// greatest is the greatest key that was ever added. Invariant: no key is greater. So what a
	// list shows for the first time, in the order of its keys, is known to be new without a search.
	greatest []byte
}

// nothing is held by all tables with few keys, and there may be many. It is read only.
var nothing = &held{}

// New returns an empty table.
func New() *Table {
	return &Table{hasher: newHasher(), held: nothing}
}

// NewAfter returns an empty table whose generations follow those of t, for use
// in the place of t.
func (t *Table) NewAfter() *Table {
	return &Table{hasher: t.hasher, generation: t.generation, held: nothing}
}

// Len is the number of keys.
func (t *Table) Len() int { return t.count }

// SizeBytes is the memory that the table holds, in bytes, for its keys.
func (t *Table) SizeBytes() int64 {
	if t.held == nothing {
		return int64(cap(t.few.bytes))
	}
	pages := 0
	for n := range t.segments {
		pages += cap(t.segments[n].entryPages)
	}
	return int64(unsafe.Sizeof(held{})) + t.slots.size() + t.entries.size() + t.stems.size() + t.large.size() +
		int64(cap(t.key)+cap(t.last)+cap(t.greatest)) + int64(cap(t.directory)+pages)*4 + int64(cap(t.segments))*int64(unsafe.Sizeof(segment{}))
}

// Get returns the version stored under key. It allocates the version's strings,
// which Compare does without.
func (t *Table) Get(key string) (Version, bool) {
	p, ok := t.find(t.hasher.sum(key), key)
	if !ok {
		return Version{}, false
	}
	return t.versionOf(p.entry), true
}

// Compare tells how v compares to the version stored under key. It does not
// allocate.
func (t *Table) Compare(key string, v Version) Comparison {
	p, ok := t.find(t.hasher.sum(key), key)
	if !ok {
		return Comparison{}
	}
	return t.compare(p.entry, v)
}

// Set stores version under key, marked with generation; a newer mark stays.
func (t *Table) Set(key string, version Version, generation uint64) {
	b := version.Binary()
	t.SetBinary(key, &b, generation)
}

// SetBinary is Set for a version in binary.
func (t *Table) SetBinary(key string, version *Binary, generation uint64) {
	t.setHashed(t.hasher.sum(key), key, version, generation)
}

func (t *Table) setHashed(hash uint64, key string, version *Binary, generation uint64) {
	p, ok := t.find(hash, key)
	if !ok {
		t.insert(hash, key, version, generation)
		return
	}
	t.update(p, hash, key, version, generation)
	t.check(hash)
}

// insert is setHashed for a key that is not there.
func (t *Table) insert(hash uint64, key string, version *Binary, generation uint64) {
	var buffer [entryMost]byte
	if t.held == nothing {
		if t.count < fewMost && forFew(key, version) {
			written, kinds := t.appendVersion(t.appendKey(buffer[:0], key), version)
			written[entryKinds] |= kinds
			if t.addFew(hash, written, generation) {
				t.count++
				t.check(hash)
				return
			}
		}
		t.toSegments()
	}
	if t.isGreatest(key) {
		t.greatest = append(t.greatest[:0], key...)
	}
	t.stems.remember(t.count + 1)
	written, kinds := t.appendVersion(t.appendKey(buffer[:0], key), version)
	written[entryKinds] |= kinds
	t.add(hash, written, generation)
	t.count++
	t.check(hash)
	t.restemLast()
	t.last = append(t.last[:0], key...)
}

// isGreatest reports whether key is greater than all keys that the segments ever had.
func (t *Table) isGreatest(key string) bool { return key > Borrowed(t.greatest) }

// update is setHashed for a key that is there.
func (t *Table) update(p place, hash uint64, key string, version *Binary, generation uint64) {
	e, versionAt := p.entry, p.entry.versionAt()
	t.markEntry(p, generation)
	if version.IsNumber && version.IsUUID && e[entryKinds]&(versionMask|uidMask) == byte(numberSize(version.Number))|uidUUID {
		writeNumber(e[versionAt:e.uidAt(versionAt)], version.Number)
		copy(e[e.uidAt(versionAt):], version.UUID[:])
		return
	}
	marked := t.marksOf(p.segment).generationOf(e[entryMark])
	if p.segment == noSegment {
		t.dropFew(p.slot)
		t.count--
		t.insert(hash, key, version, marked)
		return
	}
	var buffer [entryMost]byte
	old := e.whole()
	t.forgetVersion(old)
	written, kinds := t.appendVersion(append(buffer[:0], old[:versionAt]...), version)
	written[entryKinds] = written[entryKinds]&^(versionMask|uidMask) | kinds
	if len(written) == len(old) {
		copy(old, written)
		return
	}
	t.drop(p)
	t.add(hash, written, marked)
}

// Delete forgets key, and reports whether it was there.
func (t *Table) Delete(key string) bool {
	hash := t.hasher.sum(key)
	p, ok := t.find(hash, key)
	if !ok {
		return false
	}
	t.count--
	switch {
	case t.count == 0:
		t.few, t.held = few{}, nothing
	case p.segment == noSegment:
		t.dropFew(p.slot)
	default:
		t.forget(p.entry)
		t.drop(p)
		if t.count <= fewAgain {
			t.toFew()
		} else if s := &t.segments[p.segment]; s.dead*2 > s.tail {
			t.compact(s)
		}
	}
	t.check(hash)
	return true
}

// All yields every key and its version, in no order. The table must not change
// meanwhile.
func (t *Table) All() iter.Seq2[string, Version] {
	return func(yield func(string, Version) bool) {
		for e := range t.each {
			if !yield(t.keyOf(e), t.versionOf(e)) {
				return
			}
		}
	}
}

// each yields all entries.
func (t *Table) each(yield func(e entry) bool) {
	for n := range t.segments {
		for e := range t.entriesOf(&t.segments[n]) {
			if !yield(e) {
				return
			}
		}
	}
	t.few.each(yield)
}

// Newest is the greatest resource version of the table, by newer, which returns
// the greater of two versions, or the one of them that has an order, or nothing. It
// hardly allocates.
func (t *Table) Newest(newer func(a, b string) string) (newest string) {
	var number uint64
	numbers := false
	for e := range t.each {
		at := e.versionAt()
		switch e[entryKinds] & versionMask {
		case versionEmpty:
		case versionString:
			if v := newer(newest, t.readString(e[at:])); v != newest {
				newest = strings.Clone(v)
			}
		default:
			number, numbers = max(number, e.number(at)), true
		}
	}
	if numbers {
		newest = newer(newest, strconv.FormatUint(number, 10))
	}
	return newest
}

// keyOf is the key of an entry, in a new string.
func (t *Table) keyOf(e entry) string {
	var buffer [128]byte
	return string(t.appendEntryKey(buffer[:0], e))
}

// place is where the entry of a key is.
type place struct {
	// segment is noSegment for an entry of few, and slot is where it is in its bytes then.
	segment uint32
	slot    uint32
	// entry is valid until an entry is added anywhere.
	entry entry
}

// find returns the place of key.
func (t *Table) find(hash uint64, key string) (place, bool) {
	if t.held == nothing {
		return t.searchFew(hash, key)
	}
	if t.isGreatest(key) {
		return place{}, false
	}
	t.touchStemOf(key)
	n := t.directory[hash>>(64-t.depth)]
	for {
		s := &t.segments[n]
		if slot, e, ok := t.search(s, hash, key); ok {
			return place{segment: n, slot: slot, entry: e}, true
		}
		if s.next == 0 {
			return place{}, false
		}
		n = s.next
	}
}

// add adds an entry of a key that has none, marked with generation.
func (t *Table) add(hash uint64, e entry, generation uint64) {
	if len(t.directory) == 0 {
		t.directory = []uint32{t.addSegment(segment{marks: marks{base: 1}})}
	}
	for {
		n := t.directory[hash>>(64-t.depth)]
		alone := t.segments[n].next == 0
		for {
			s := &t.segments[n]
			e[entryMark] = t.markFor(n, generation)
			if t.fits(s, hash, e) {
				return
			}
			if s.next == 0 {
				break
			}
			n = s.next
		}
		if !alone || !t.split(n) {
			s := &t.segments[n]
			next := t.addSegment(segment{marks: s.marks, depth: s.depth})
			t.segments[n].next = next
		}
	}
}

// restemLast gives the entry of the last key the stem that was made after it.
func (t *Table) restemLast() {
	made := t.stems.made
	t.stems.made = 0
	if made == 0 {
		return
	}
	last := Borrowed(t.last)
	hash := t.hasher.sum(last)
	p, ok := t.find(hash, last)
	if !ok {
		return
	}
	var buffer [entryMost]byte
	moved := t.restem(buffer[:0], p.entry, last)
	if moved.stem() == p.entry.stem() {
		return
	}
	generation := t.segments[p.segment].generationOf(p.entry[entryMark])
	t.drop(p)
	t.add(hash, moved, generation)
	t.check(hash)
}

// drop takes an entry out of its segment.
func (t *Table) drop(p place) {
	s := &t.segments[p.segment]
	size := uint32(len(p.entry.whole()))
	if _, ref := t.readSlot(s, p.slot); uint32(ref)+size == s.tail {
		s.tail = uint32(ref)
	} else {
		t.freeEntry(s, ref, size)
	}
	t.removeSlot(s, p.slot)
	s.count--
	if s.count == 0 {
		t.giveSlots(s)
		t.giveEntries(s)
	}
}
