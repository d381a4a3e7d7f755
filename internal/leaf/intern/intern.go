// Package intern shares equal strings, as objects of one kind have many of them: names of fields,
// keys and values of labels, namespaces, names of owners and managers.
package intern

import "encoding/binary"

const (
	// MaxLength is of strings that are remembered. Longer ones are not looked up.
	MaxLength = 128
	// minBits and maxBits bound how many strings are remembered. A Table for a single object is
	// small.
	minBits, maxBits = 6, 11
	// bucket is how many slots a string may be in. It is a power of two.
	bucket = 4
)

// Table remembers strings, in the interface values that maps hold, so that the next ones that are
// equal cost no allocation. A string is remembered when it comes for the second time, if hardly
// another one that is not remembered came for its bucket in between: strings that come once push
// none out. The zero value is ready for use, by one goroutine at a time.
type Table struct {
	slots []slot
	shift uint8 // of a hash, for an index
	kept  int   // slots that have a value
	turn  uint8 // which slot of a full bucket is taken next
	// chance is a number that looks random.
	chance uint64
}

type slot struct {
	// hash is of value, and asked of the string with this index that was looked for last and not
	// found.
	hash, asked uint32
	value       interface{}
}

// String returns the string that content is: one with memory of its own, or one that was returned
// before. A nil Table remembers none.
func (t *Table) String(content []byte) string {
	if t == nil || len(content) > MaxLength {
		return string(content)
	}
	return t.Hashed(content, HashOf(content))
}

// Hashed is String for a hash that is known.
func (t *Table) Hashed(content []byte, hash uint64) string {
	if found := t.find(content, hash); found != nil {
		return found.value.(string)
	}
	return string(content)
}

// Value returns the string that content is in an interface, and whether it is remembered.
func (t *Table) Value(content []byte, hash uint64) (value interface{}, known bool) {
	if found := t.find(content, hash); found != nil {
		return found.value, true
	}
	return string(content), false
}

// find returns the slot of a string, nil if it is not remembered.
func (t *Table) find(content []byte, hash uint64) *slot {
	if len(content) > MaxLength || len(content) == 0 {
		return nil
	}
	if t.slots == nil {
		t.slots, t.shift = make([]slot, 1<<minBits), 64-minBits
	}
	tag := Tag(hash)
	i := hash >> t.shift
	for k := range uint64(bucket) {
		if at := &t.slots[i^k]; at.hash == tag && at.holds(content) {
			return at
		}
	}
	return t.miss(i, content, hash)
}

func (s *slot) holds(content []byte) bool {
	text, ok := s.value.(string)
	return ok && text == string(content)
}

// miss remembers the string of a hash with this index, if it was asked for before. It returns its
// slot, or nil.
func (t *Table) miss(i uint64, content []byte, hash uint64) *slot {
	asked, tag := &t.slots[i].asked, Tag(hash)
	if *asked != tag {
		// Where two strings take turns, each would make the other one forgotten. Chance keeps one
		// of them.
		if t.chance = Mix(t.chance, hash); *asked == 0 || t.chance>>63 == 0 {
			*asked = tag
		}
		return nil
	}
	*asked = 0
	taken := t.room(i)
	taken.hash, taken.value = tag, string(content)
	if t.kept > len(t.slots)/2 && len(t.slots) < 1<<maxBits {
		t.grow()
		return t.find(content, hash)
	}
	return taken
}

// room returns a slot for a string with this index: one that is empty, or else one after the other.
func (t *Table) room(i uint64) *slot {
	for k := range uint64(bucket) {
		if at := &t.slots[i^k]; at.value == nil {
			t.kept++
			return at
		}
	}
	t.turn++
	return &t.slots[i^uint64(t.turn%bucket)]
}

// grow doubles the table.
func (t *Table) grow() {
	old := t.slots
	t.slots, t.kept = make([]slot, 2*len(old)), 0
	t.shift--
	for _, entry := range old {
		if text, ok := entry.value.(string); ok {
			at := t.room(HashOf([]byte(text)) >> t.shift)
			at.hash, at.value = entry.hash, entry.value
		}
	}
}

// Tag returns bits of a hash that its index does not have.
func Tag(hash uint64) uint32 { return uint32(hash >> 16) }

// HashOf returns the hash of a string. It mixes 8 bytes after the other. The last ones, 7 at most,
// are filled up with zeros.
func HashOf(content []byte) (hash uint64) {
	for ; len(content) >= 8; content = content[8:] {
		hash = Mix(hash, binary.LittleEndian.Uint64(content))
	}
	var last uint64
	for i := len(content) - 1; i >= 0; i-- {
		last = last<<8 | uint64(content[i])
	}
	return Mix(hash, last)
}

// mixer is an odd number whose bits look random.
const mixer = 0x9e3779b97f4a7c15

// Mix adds 8 bytes to a hash.
func Mix(hash, x uint64) uint64 { return (hash ^ x) * mixer }
