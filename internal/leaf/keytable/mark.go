package keytable

// Generation is the number of the newest generation, 0 before the first.
func (t *Table) Generation() uint64 { return t.generation }

// Begin starts a generation and returns its number, the greatest so far.
func (t *Table) Begin() uint64 {
	t.generation++
	return t.generation
}

// Show notes that generation showed key in version v, where the table has it, and tells what Compare
// does, in one lookup. Again is whether since, or a later generation, has shown the key before. Show
// keeps neither key nor version and does not allocate.
//
// The marks of a key can be told apart for at least the newest 127 generations.
// What a key that no newer one has shown was shown by earlier is not known, and
// neither Show nor UnmarkedFrom says that it was.
func (t *Table) Show(key string, v Version, generation, since uint64) (again bool, c Comparison) {
	hash := t.hasher.sum(key)
	p, ok := t.find(hash, key)
	if !ok {
		return false, Comparison{}
	}
	m := t.marksOf(p.segment)
	before := m.generationOf(p.entry[entryMark])
	again = since >= m.base && before >= since
	t.markEntry(p, generation)
	c = t.compare(p.entry, v)
	c.Marked = before == generation
	t.check(hash)
	return again, c
}

// Cursor is how far a walk over a table has come. The walk begins with 0, and it
// ends when 0 is returned.
type Cursor uint64

// A cursor is, from its top bits on, the first hash of the segments that are left,
// and, where a segment is done in part, its depth and the tags that are left of it.
// Hashes stay when segments split: what was left of one is left of both halves.
const (
	cursorTags  = 16
	cursorDepth = cursorTags
	cursorFirst = cursorDepth + 6

	// walkLeast is how many tags a part has at least, a 64th of a segment, so that
	// the walk ends however the table grows meanwhile.
	walkLeast = 1 << 10
)

// UnmarkedFrom returns those keys that generation did not show among the next
// ones of the table, about most of them, and where to go on: the owner can let go
// of its guard after each part. Parts of 1000 take some tenths of a millisecond.
//
// The table may change between the calls. A key that is in the table and unmarked
// from the first call to the last is returned, and just once unless the table was
// empty meanwhile. One that comes, goes or is marked meanwhile may be returned or
// not.
func (t *Table) UnmarkedFrom(cursor Cursor, generation uint64, most int) (keys []string, next Cursor) {
	next = t.walk(cursor, most, func(m *marks, entries []entry) {
		if generation < m.base { // it is not known any more which keys it showed
			return
		}
		for _, e := range entries {
			if m.generationOf(e[entryMark]) < generation {
				keys = append(keys, t.keyOf(e))
			}
		}
	})
	return keys, next
}

// KeysFrom returns about most of the next keys of the table, and where to go on.
// The table may change between the calls, as for UnmarkedFrom.
func (t *Table) KeysFrom(cursor Cursor, most int) (keys []string, next Cursor) {
	next = t.walk(cursor, most, func(_ *marks, entries []entry) {
		t.touch(entries)
		for _, e := range entries {
			keys = append(keys, t.keyOf(e))
		}
	})
	return keys, next
}

// LendFrom lends visit about most of the next keys of the table and their versions,
// and returns where to go on. Key and version are valid until visit returns, and
// strings.Clone keeps what it needs of them; nothing is allocated for a key. The
// table may change between the calls, as for UnmarkedFrom, but not in visit.
func (t *Table) LendFrom(cursor Cursor, most int, visit func(key string, version *Binary)) (next Cursor) {
	var version Binary
	key := make([]byte, 0, 256) // not t.key: others may read, too
	return t.walk(cursor, most, func(_ *marks, entries []entry) {
		t.touch(entries)
		for _, e := range entries {
			key = t.appendEntryKey(key[:0], e)
			t.readVersion(e, &version)
			visit(Borrowed(key), &version)
		}
	})
}

// walk visits entries from cursor on, about most of them, and some at a time.
func (t *Table) walk(cursor Cursor, most int, visit func(m *marks, entries []entry)) Cursor {
	if t.held == nothing {
		var left [fewMost]entry
		n := 0
		for e := range t.few.each {
			if cursor == 0 || cursor.isLeft(t.hasher.sum(t.keyOf(e))) {
				left[n] = e
				n++
			}
		}
		visit(&t.few.marks, left[:n])
		return 0
	}
	for looked := 0; ; {
		first := uint64(cursor) >> cursorFirst << cursorFirst
		tags, depth := uint64(cursor)&0xffff, uint8(cursor>>cursorDepth&63)
		n := t.directory[first>>(64-t.depth)]
		s := &t.segments[n]
		width := uint64(1) << (64 - s.depth) // 0 stands for 2^64, and comes out right
		first &^= width - 1
		count := t.chained(n)
		from, to := uint64(0), uint64(1<<16)
		if s.depth >= depth {
			from = tags // but if the table was empty meanwhile, it is all left
		}
		// Half of a segment that was done in part is done to its end: there is no way
		// to tell what is left of it and what of the other half.
		if whole := tags > 0 && s.depth > depth; !whole && count > most-looked {
			to = min(to, from+max(walkLeast, uint64(most-looked)<<16/uint64(count)))
		}
		t.visit(n, from, to, visit)
		if to < 1<<16 {
			return Cursor(first | uint64(s.depth)<<cursorDepth | to)
		}
		looked += count * int(to-from) >> 16
		next := first + width
		switch {
		case next == 0:
			return 0
		case tags > 0 && s.depth > depth && first>>(64-depth) == next>>(64-depth):
			cursor = Cursor(next | uint64(depth)<<cursorDepth | tags)
		default:
			cursor = Cursor(next)
		}
		if looked >= most {
			return cursor
		}
	}
}

// chained is the number of keys of segment n and of those that follow it for the
// same hashes.
func (t *Table) chained(n uint32) (count int) {
	for {
		s := &t.segments[n]
		count += int(s.count)
		if s.next == 0 {
			return count
		}
		n = s.next
	}
}

// visit visits the entries of segment n, and of those that follow it for the same
// hashes, with tags from one to another.
func (t *Table) visit(n uint32, from, to uint64, visit func(m *marks, entries []entry)) {
	for {
		s := &t.segments[n]
		t.visitOne(s, from, to, func(entries []entry) { visit(&s.marks, entries) })
		if s.next == 0 {
			return
		}
		n = s.next
	}
}

// marks says what the marks of some entries stand for.
type marks struct {
	// base is the generation for which mark 1 stands; mark 0 stands for every
	// older one. Invariant: it is at least 1 where there are entries.
	base uint64
}

// marksOf is the marks of a segment, or of few.
func (t *Table) marksOf(segment uint32) *marks {
	if segment == noSegment {
		return &t.few.marks
	}
	return &t.segments[segment].marks
}

// markEntry marks the entry of a place with generation. A newer mark stays.
func (t *Table) markEntry(p place, generation uint64) {
	if mark := t.markFor(p.segment, generation); p.entry[entryMark] < mark {
		p.entry[entryMark] = mark
	}
}

// markFor is the mark of generation in a segment, or in few.
func (t *Table) markFor(segment uint32, generation uint64) byte {
	m := t.marksOf(segment)
	if generation < m.base {
		return 0
	}
	if generation-m.base >= markSpan {
		t.rebase(segment, generation-markSpan/2)
	}
	return byte(generation - m.base + 1)
}

// generationOf is the generation that a mark stands for, 0 where that is not
// known.
func (m *marks) generationOf(mark byte) uint64 {
	if mark == 0 {
		return 0
	}
	return m.base + uint64(mark) - 1
}

// rebase counts the marks of a segment, or of few, from a later generation on.
func (t *Table) rebase(segment uint32, base uint64) {
	m, all := t.marksOf(segment), t.few.each
	if segment != noSegment {
		all = t.entriesOf(&t.segments[segment])
	}
	for e := range all {
		if generation := m.generationOf(e[entryMark]); generation < base {
			e[entryMark] = 0
		} else {
			e[entryMark] = byte(generation - base + 1)
		}
	}
	m.base = base
}
