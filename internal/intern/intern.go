// Package intern shares equal strings, as objects of one kind have many of them: keys and values of
// labels, namespaces, names of owners and managers. It is for strings: the table of
// internal/jsonmap has them in the interface values that maps hold, and their hashes from the
// search for the quote that ends them.
package intern

import "hash/maphash"

const (
	// maxLength is of strings that are remembered.
	maxLength = 128
	// minBits and maxBits bound how many strings are remembered. A Table for a single object is
	// small.
	minBits, maxBits = 6, 11
)

// Table remembers strings, as many as it has slots. A string is remembered when it comes again, so
// that those which come once push none out. It has one of two slots, which are next to each other.
// A Table is for one goroutine at a time.
type Table struct {
	seed  maphash.Seed
	slots []slot
	bits  int // of a hash, for the index of a slot
	kept  int // slots that have a string
	// last is the slot of the string that was found last.
	last uint16
	// chance is a random number.
	chance uint64
}

type slot struct {
	text string
	// asked is of the hash of the string that was looked for last and not found.
	asked uint32
	// next are slots of strings that came after this one, the last of them first: siblings have
	// many strings in the same order, and some strings more than once.
	next [2]uint16
}

// NewTable returns an empty Table.
func NewTable() *Table {
	return &Table{seed: maphash.MakeSeed(), slots: make([]slot, 1<<minBits), bits: minBits}
}

// String returns the string that content is: one with memory of its own, or one that was returned
// before. A nil Table remembers none.
func (t *Table) String(content []byte) string {
	if t == nil || len(content) > maxLength || len(content) == 0 {
		return string(content)
	}
	for _, next := range t.slots[t.last].next {
		if expected := t.slots[next].text; expected == string(content) {
			t.last = next
			return expected
		}
	}
	return t.find(content)
}

// find looks for a string that is not the expected one.
func (t *Table) find(content []byte) string {
	hash := maphash.Bytes(t.seed, content)
	i := hash >> (64 - t.bits)
	first, second := &t.slots[i], &t.slots[i^1]
	switch string(content) {
	case first.text:
		return t.found(uint16(i))
	case second.text:
		return t.found(uint16(i ^ 1))
	}
	if tag := uint32(hash) | 1; first.asked != tag {
		// Where two strings take turns, each would make the other one forgotten. Chance keeps one
		// of them.
		if t.chance = t.chance*6364136223846793005 + 1442695040888963407; first.asked == 0 || t.chance>>63 == 0 {
			first.asked = tag
		}
		return string(content)
	}
	first.asked = 0
	text := string(content)
	if t.put(i, text); t.kept > len(t.slots)/4 && t.bits < maxBits {
		t.grow()
	}
	return text
}

// found returns the string of a slot, and has it expected the next time.
func (t *Table) found(i uint16) string {
	next := &t.slots[t.last].next
	next[0], next[1], t.last = i, next[0], i
	return t.slots[i].text
}

// put remembers a string in one of its two slots, the first if none is free.
func (t *Table) put(i uint64, text string) {
	s := &t.slots[i]
	if second := &t.slots[i^1]; s.text != "" && second.text == "" {
		s = second
	}
	if s.text == "" {
		t.kept++
	}
	s.text = text
}

// grow doubles the table.
func (t *Table) grow() {
	old := t.slots
	t.bits, t.kept, t.last = t.bits+1, 0, 0
	t.slots = make([]slot, 1<<t.bits)
	for _, s := range old {
		if s.text != "" {
			t.put(maphash.String(t.seed, s.text)>>(64-t.bits), s.text)
		}
	}
}
