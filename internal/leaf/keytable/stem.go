package keytable

import "math/bits"

// Places within a stem; see the package documentation.
const (
	stemNext  = 0
	stemRefs  = 3
	stemChars = 6
	stemText  = 7

	// stemMostRefs is where counting ends: the stem stays for good then.
	stemMostRefs = 1<<24 - 1

	stemMostChars = 255
	// stemUnit is the unit of size and place, so that 24 bits name a place in 64 MiB.
	stemUnit = 4
	// stemSizes is the number of sizes, in units.
	stemSizes = (stemText+stemMostChars)/stemUnit + 2
	// stemMost is the last place, in units.
	stemMost = 1<<24 - 1
)

// stems are the beginnings of keys that are stored once. A stem is named by its
// place. It does not move, and its place is used again when nothing refers to it.
//
// A beginning becomes a stem when a second key has it: that of a single key is
// cheaper in its entry. Keys are found whether theirs became one or not.
type stems struct {
	pages pages
	// tail is the first place never used, in bytes.
	tail uint32
	// free has, for each size, the first free place of that size, which begins
	// with the next one. 0 is none. It is nil as long as no place was free.
	free *[stemSizes]uint32
	// buckets are the first stems of their chains. There is one bucket for every
	// two stems that there ever were at a time: each new one splits one of the old
	// (linear hashing), so that no call has to split them all.
	buckets []uint32
	count   int
	// seen has a few bits of the hashes of beginnings that are no stems yet. It
	// forgets some, and takes some for others.
	seen []uint8
	// made is the stem that was made last, until someone has taken note.
	made uint32
	// recent is the stem that a key was given, or taken from, last; 0 for none. The next key of a
	// sorted list often has the same one, and so has the key that takes the place of a deleted one.
	recent uint32
}

// at is the stem's bytes, and more.
func (s *stems) at(id uint32) []byte {
	place := id * stemUnit
	return s.pages.at(place >> pageBits)[place%pageSize:]
}

// stemSize is the bytes of a stem of so many characters.
func stemSize(chars int) int { return (stemText + chars + stemUnit - 1) / stemUnit * stemUnit }

// text is the text of a stem, borrowed from it, and nothing for stem 0.
func (s *stems) text(id uint32) string {
	if id == 0 {
		return ""
	}
	stem := s.at(id)
	return Borrowed(stem[stemText:][:stem[stemChars]])
}

// find returns the stem of text, or 0.
func (s *stems) find(hash uint64, text string) uint32 {
	id := s.first(hash)
	for id != 0 && s.text(id) != text {
		id = read24(s.at(id)[stemNext:])
	}
	return id
}

// first is the first stem of the chain that a stem with that hash is in, 0 for none.
func (s *stems) first(hash uint64) uint32 {
	if len(s.buckets) == 0 {
		return 0
	}
	return s.buckets[s.bucket(hash)]
}

// bucket is the one that hash belongs to.
func (s *stems) bucket(hash uint64) int {
	mask := uint64(1)<<bits.Len(uint(len(s.buckets)-1)) - 1
	if b := hash & mask; b < uint64(len(s.buckets)) {
		return int(b)
	}
	return int(hash & (mask >> 1))
}

// worthwhile reports whether the beginning with that hash was seen before, as
// far as that is remembered, and remembers it.
func (s *stems) worthwhile(hash uint64) bool {
	if len(s.seen) == 0 {
		return false
	}
	cell, print := hash&uint64(len(s.seen)-1), uint8(hash>>56)|1
	if s.seen[cell] == print {
		s.seen[cell] = 0
		return true
	}
	s.seen[cell] = print
	return false
}

// remember makes room to have seen the beginnings of so many keys: a byte for
// every second, and more while it grows, is enough where they come in any order.
func (s *stems) remember(keys int) {
	switch n := len(s.seen); {
	case n == 0:
		s.seen = make([]uint8, 16)
	case keys > 2*n:
		s.seen = append(s.seen, s.seen...)
	}
}

// refer adds one to those that refer to a stem.
func (s *stems) refer(id uint32) {
	stem := s.at(id)
	if refs := read24(stem[stemRefs:]); refs != stemMostRefs {
		write24(stem[stemRefs:], refs+1)
	}
}

// add makes a stem that one refers to. It is 0 if there is no room.
func (s *stems) add(h *hasher, hash uint64, text string) uint32 {
	id := s.place(stemSize(len(text)))
	if id == 0 {
		return 0
	}
	s.count++
	if s.count > 2*len(s.buckets) {
		s.split(h)
	}
	bucket := s.bucket(hash)
	stem := s.at(id)
	write24(stem[stemNext:], s.buckets[bucket])
	write24(stem[stemRefs:], 1)
	stem[stemChars] = byte(len(text))
	copy(stem[stemText:], text)
	s.buckets[bucket] = id
	s.made, s.recent = id, id
	return id
}

// split adds a bucket, and moves to it what belongs there.
func (s *stems) split(h *hasher) {
	s.buckets = append(s.buckets, 0)
	added := len(s.buckets) - 1
	if added == 0 {
		return
	}
	from := added - 1<<(bits.Len(uint(added))-1)
	id := s.buckets[from]
	s.buckets[from] = 0
	for id != 0 {
		stem := s.at(id)
		next := read24(stem[stemNext:])
		bucket := s.bucket(s.rehash(h, id))
		write24(stem[stemNext:], s.buckets[bucket])
		s.buckets[bucket] = id
		id = next
	}
}

// rehash is the hash of a stem.
func (s *stems) rehash(h *hasher, id uint32) uint64 { return h.sum(s.text(id)) }

// release takes one from those that refer to a stem, and forgets it after the last.
func (s *stems) release(h *hasher, id uint32) {
	if id == 0 {
		return
	}
	stem := s.at(id)
	switch refs := read24(stem[stemRefs:]); refs {
	case stemMostRefs:
	case 1:
		s.remove(h, id)
		return
	default:
		write24(stem[stemRefs:], refs-1)
	}
	s.recent = id
}

func (s *stems) remove(h *hasher, id uint32) {
	stem := s.at(id)
	bucket := s.bucket(s.rehash(h, id))
	next := read24(stem[stemNext:])
	if s.buckets[bucket] == id {
		s.buckets[bucket] = next
	} else {
		before := s.at(s.buckets[bucket])
		for read24(before[stemNext:]) != id {
			before = s.at(read24(before[stemNext:]))
		}
		write24(before[stemNext:], next)
	}
	s.count--
	if s.recent == id {
		s.recent = 0
	}
	s.vacate(id, stemSize(int(stem[stemChars])))
}

// place finds room for size bytes: a free place, whose rest stays free, or a new
// one. It is 0 if there is none.
func (s *stems) place(size int) uint32 {
	for have := size; s.free != nil && have/stemUnit < stemSizes; have += stemUnit {
		if id := s.free[have/stemUnit]; id != 0 {
			s.free[have/stemUnit] = read24(s.at(id))
			s.vacate(id+uint32(size/stemUnit), have-size)
			return id
		}
	}
	if s.tail == 0 {
		s.pages.take()
		s.tail = stemUnit // place 0 is none
	}
	if rest := pageSize - int(s.tail%pageSize); s.tail%pageSize == 0 || rest < size {
		if s.tail/stemUnit+uint32(2*pageSize/stemUnit) > stemMost {
			return 0
		}
		s.pages.take()
		if s.tail%pageSize != 0 {
			s.vacate(s.tail/stemUnit, rest)
			s.tail += uint32(rest)
		}
	}
	id := s.tail / stemUnit
	s.tail += uint32(size)
	s.pages.ensure(id*stemUnit>>pageBits, int((s.tail-1)%pageSize)+1)
	return id
}

// vacate makes a place free. What is smaller than any stem is lost.
func (s *stems) vacate(id uint32, size int) {
	if size < stemText+2 {
		return
	}
	if s.free == nil {
		s.free = new([stemSizes]uint32)
	}
	write24(s.at(id), s.free[size/stemUnit])
	s.free[size/stemUnit] = id
}

// size is the memory that the stems take.
func (s *stems) size() int64 {
	size := s.pages.size() + int64(cap(s.buckets))*4 + int64(cap(s.seen))
	if s.free != nil {
		size += stemSizes * 4
	}
	return size
}
