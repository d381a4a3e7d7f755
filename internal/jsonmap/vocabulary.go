package jsonmap

import "encoding/binary"

const (
	// maxLength is of strings that are remembered. Longer ones, such as the data of secrets, are
	// not looked up.
	maxLength = 64
	// minSlots and maxSlots bound how many strings are remembered.
	minSlots, maxSlots = 64, 2048
)

// vocabulary remembers short strings in their interface values, so that the next ones that are
// equal cost no allocation. It is a table of buckets, each of four slots. A string is remembered
// when it comes for the second time, if hardly another one that is not remembered came for its
// bucket in between: strings that come once push none out.
type vocabulary struct {
	slots []slot
	shift uint8 // of a hash, for an index
	kept  int   // slots that have a value
	turn  uint8 // which slot of a full bucket is taken next
}

// bucket is how many slots a string may be in. It is a power of two.
const bucket = 4

type slot struct {
	// hash is of value, and asked of the string with this index that was looked for last and not
	// found.
	hash, asked uint32
	value       interface{}
}

// text returns the string that content is.
func (v *vocabulary) text(content []byte, hash uint64) string {
	if found := v.find(content, hash); found != nil {
		return found.value.(string)
	}
	return string(content)
}

// value returns the string that content is in an interface, and whether it is remembered.
func (v *vocabulary) value(content []byte, hash uint64) (value interface{}, known bool) {
	if found := v.find(content, hash); found != nil {
		return found.value, true
	}
	return string(content), false
}

// find returns the slot of a string, nil if it is not remembered.
func (v *vocabulary) find(content []byte, hash uint64) *slot {
	if len(content) > maxLength || len(content) == 0 {
		return nil
	}
	if v.slots == nil {
		v.slots, v.shift = make([]slot, minSlots), 64-6
	}
	tag := tagOf(hash)
	i := hash >> v.shift
	for k := range uint64(bucket) {
		if at := &v.slots[i^k]; at.hash == tag && at.holds(content) {
			return at
		}
	}
	return v.miss(i, content, tag)
}

func (s *slot) holds(content []byte) bool {
	text, ok := s.value.(string)
	return ok && text == string(content)
}

// miss remembers the string of a hash with this index, if it was asked for before. It returns its
// slot, or nil.
func (v *vocabulary) miss(i uint64, content []byte, tag uint32) *slot {
	asked := &v.slots[i].asked
	if *asked != tag {
		*asked = tag
		return nil
	}
	*asked = 0
	taken := v.room(i)
	taken.hash, taken.value = tag, string(content)
	if v.kept > len(v.slots)/2 && len(v.slots) < maxSlots {
		v.grow()
		return v.find(content, hashOf(content))
	}
	return taken
}

// room returns a slot for a string with this index: one that is empty, or else one after the other.
func (v *vocabulary) room(i uint64) *slot {
	for k := range uint64(bucket) {
		if at := &v.slots[i^k]; at.value == nil {
			v.kept++
			return at
		}
	}
	v.turn++
	return &v.slots[i^uint64(v.turn%bucket)]
}

// grow doubles the table.
func (v *vocabulary) grow() {
	old := v.slots
	v.slots, v.kept = make([]slot, 2*len(old)), 0
	v.shift--
	for _, entry := range old {
		if text, ok := entry.value.(string); ok {
			at := v.room(hashOf([]byte(text)) >> v.shift)
			at.hash, at.value = entry.hash, entry.value
		}
	}
}

// tagOf returns bits of a hash that its index does not have.
func tagOf(hash uint64) uint32 { return uint32(hash >> 16) }

// hashOf returns the hash that plain finds on its way.
func hashOf(content []byte) (hash uint64) {
	for ; len(content) >= 8; content = content[8:] {
		hash = (hash ^ binary.LittleEndian.Uint64(content)) * mixer
	}
	var last uint64
	for i := len(content) - 1; i >= 0; i-- {
		last = last<<8 | uint64(content[i])
	}
	return (hash ^ last) * mixer
}
