package keytable

import "math"

// Generation is the number of the newest generation, 0 before the first.
func (t *Table) Generation() uint64 { return t.generation }

// Begin starts a generation and returns its number, the greatest so far.
func (t *Table) Begin() uint64 {
	t.generation++
	return t.generation
}

// Mark notes that generation showed key, where the table has it, and reports
// whether that was noted before. It does not allocate.
//
// The marks of a key can be told apart for at least the newest 127 generations.
// What a key that no newer one has shown was shown by earlier is not known, and
// neither Mark nor Unmarked says that it was.
func (t *Table) Mark(key string, generation uint64) (again bool) {
	hash := t.hasher.sum(key)
	p, ok := t.find(hash, key)
	if !ok {
		return false
	}
	again = t.markEntry(&t.segments[p.segment], p.entry, generation)
	t.check(hash)
	return again
}

// Unmarked returns the keys that generation did not show.
func (t *Table) Unmarked(generation uint64) []string {
	keys, _ := t.UnmarkedFrom(0, generation, math.MaxInt)
	return keys
}

// Cursor is how far a walk over a table has come. The walk begins with 0, and it
// ends when 0 is returned.
type Cursor uint64

// UnmarkedFrom returns those keys that generation did not show among the next
// ones of the table, and where to go on. It looks at most keys, and then at the
// rest of the segment, which are not more than 3840: the owner can let go of its
// guard after each.
//
// The table may change between the calls. A key that is in the table and unmarked
// from the first call to the last is returned, and just once unless the table was
// empty meanwhile. One that comes, goes or is marked meanwhile may be returned or
// not.
func (t *Table) UnmarkedFrom(cursor Cursor, generation uint64, most int) (keys []string, next Cursor) {
	next = t.walk(cursor, most, func(s *segment) {
		if generation < s.base {
			return // which keys it showed is not known any more
		}
		for e := range t.entriesOf(s) {
			if s.generationOf(e[entryMark]) < generation {
				keys = append(keys, t.keyOf(e))
			}
		}
	})
	return keys, next
}

// KeysFrom returns the next keys of the table, and where to go on. Like
// UnmarkedFrom it looks at most keys, or a segment more, and the table may change
// between the calls.
func (t *Table) KeysFrom(cursor Cursor, most int) (keys []string, next Cursor) {
	next = t.walk(cursor, most, func(s *segment) {
		for e := range t.entriesOf(s) {
			keys = append(keys, t.keyOf(e))
		}
	})
	return keys, next
}

// VersionsFrom calls visit with the next keys of the table and their versions,
// and returns where to go on. Like UnmarkedFrom it looks at most keys, or a
// segment more, and the table may change between the calls, but not in visit.
func (t *Table) VersionsFrom(cursor Cursor, most int, visit func(key string, version Version)) (next Cursor) {
	return t.walk(cursor, most, func(s *segment) {
		for e := range t.entriesOf(s) {
			visit(t.keyOf(e), t.versionOf(e))
		}
	})
}

// walk visits the segments from cursor on until they have had most keys. A cursor
// is the first of the hashes that are left: keys keep theirs when segments split.
func (t *Table) walk(cursor Cursor, most int, visit func(s *segment)) Cursor {
	if t.count == 0 {
		return 0
	}
	for looked := 0; ; {
		s := &t.segments[t.directory[uint64(cursor)>>(64-t.depth)]]
		width := uint64(1) << (64 - s.depth) // 0 stands for 2^64, and comes out right
		cursor = Cursor(uint64(cursor)&^(width-1) + width)
		for {
			visit(s)
			looked += int(s.count)
			if s.next == 0 {
				break
			}
			s = &t.segments[s.next]
		}
		if cursor == 0 || looked >= most {
			return cursor
		}
	}
}

// markEntry marks an entry of s with generation, and reports whether it was
// before. A newer mark stays.
func (t *Table) markEntry(s *segment, e entry, generation uint64) (again bool) {
	if generation < s.base {
		return generation == 0 || e[entryMark] != 0
	}
	mark := t.markFor(s, generation)
	if e[entryMark] >= mark {
		return true
	}
	e[entryMark] = mark
	return false
}

// markFor is the mark of generation in s.
func (t *Table) markFor(s *segment, generation uint64) byte {
	if generation < s.base {
		return 0
	}
	if generation-s.base >= markSpan {
		t.rebase(s, generation-markSpan/2)
	}
	return byte(generation - s.base + 1)
}

// generationOf is the generation that a mark of s stands for, 0 where that is not
// known.
func (s *segment) generationOf(mark byte) uint64 {
	if mark == 0 {
		return 0
	}
	return s.base + uint64(mark) - 1
}

// rebase counts the marks of s from a later generation on.
func (t *Table) rebase(s *segment, base uint64) {
	for e := range t.entriesOf(s) {
		if generation := s.generationOf(e[entryMark]); generation < base {
			e[entryMark] = 0
		} else {
			e[entryMark] = byte(generation - base + 1)
		}
	}
	s.base = base
}
