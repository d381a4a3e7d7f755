package objectcache

import "github.com/rvinformer/informer/internal/pack"

// slot is one state of an object in the table. It has no pointer, so that the garbage collector has
// nothing to look at.
type slot struct {
	ref pack.Ref
	// number is the resource version, if hasNumber. Else the record's head has it.
	number uint64
	// hash is that of the key, uid that of the UID, 0 if it is not known.
	hash, uid uint32
	namespace uint32
	labels    uint32
	// next and prev are in the list of the namespace, of a generation while the slot is staged, or
	// of free slots.
	next, prev uint32
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
	free uint32
}

// take returns the number of a free slot, which is zero but for its number.
func (s *slots) take() uint32 {
	if n := s.free; n != 0 {
		s.takeFree(n)
		return n
	}
	n := max(s.len, 1)
	s.grow(n + 1)
	return n
}

func (s *slots) giveBack(n uint32) {
	*s.at(n) = slot{next: s.free}
	if s.free != 0 {
		s.at(s.free).prev = n
	}
	s.free = n
}

// takeFree takes a slot out of the list of free slots.
func (s *slots) takeFree(n uint32) {
	of := s.at(n)
	if of.prev != 0 {
		s.at(of.prev).next = of.next
	} else {
		s.free = of.next
	}
	if of.next != 0 {
		s.at(of.next).prev = of.prev
	}
	*of = slot{}
}

// slotList is a list of slots, in the order in which they were added. A slot is in one list at
// most.
type slotList struct{ first, last, count uint32 }

func (l *slotList) add(s *slots, n uint32) {
	of := s.at(n)
	of.next, of.prev = 0, l.last
	if l.last != 0 {
		s.at(l.last).next = n
	} else {
		l.first = n
	}
	l.last = n
	l.count++
}

func (l *slotList) remove(s *slots, n uint32) {
	of := s.at(n)
	if of.prev != 0 {
		s.at(of.prev).next = of.next
	} else {
		l.first = of.next
	}
	if of.next != 0 {
		s.at(of.next).prev = of.prev
	} else {
		l.last = of.prev
	}
	of.next, of.prev = 0, 0
	l.count--
}

// moved notes that a slot of the list is at another place.
func (l *slotList) moved(s *slots, to uint32) {
	of := s.at(to)
	if of.prev != 0 {
		s.at(of.prev).next = to
	} else {
		l.first = to
	}
	if of.next != 0 {
		s.at(of.next).prev = to
	} else {
		l.last = to
	}
}
