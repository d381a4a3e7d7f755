package objectcache

import "github.com/rvinformer/informer/internal/leaf/pack"

// slot is one state of an object in the table. It has no pointer, so that the garbage collector has
// nothing to look at.
type slot struct {
	ref pack.Ref
	// number is the resource version, if hasNumber. Else the record's head has it.
	number uint64
	// hash is that of the key, uid that of the UID, 0 if it is not known.
	hash, uid uint32
	// sum is the checksum of the bytes that the object was read as, 0 if it is not known.
	sum       uint32
	namespace uint32
	labels    uint32
	// links are in the list of the namespace, of a generation while the slot is staged, or of free
	// slots.
	links
	// born tells the states apart that have the slot one after the other.
	born uint32
	// mark is the number of the newest generation that showed the object.
	mark  uint16
	form  uint8
	flags uint8
}

const (
	// live slots are what readers see. A staged slot has a state that becomes live at the end of a
	// generation. A slot with neither flag is free.
	live = 1 << iota
	staged
	hasNumber
)

// slots are the slots of a table, by number; 0 is none.
type slots struct {
	paged[slot]
	free itemList
}

func (s *slots) linksOf(n uint32) *links { return &s.at(n).links }

// take returns the number of a free slot, which is zero but for its links.
func (s *slots) take() uint32 {
	if n := s.free.take(s); n != 0 {
		return n
	}
	n := max(s.len, 1)
	s.grow(n + 1)
	return n
}

func (s *slots) giveBack(n uint32) {
	*s.at(n) = slot{}
	s.free.add(s, n)
}
