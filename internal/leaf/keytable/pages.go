package keytable

import "math/bits"

const (
	pageBits = 10
	pageSize = 1 << pageBits
	// slabWords is how many words have a bit for each page of a slab. A collection
	// looks at each slab, and of larger ones there are fewer; but more of the last is
	// idle, and a table that shrinks gives less back.
	slabWords = 2
	slabPages = slabWords * 64
)

// pages hands out pages by number. It cuts them from slabs, and the garbage
// collector sees only that these have no pointers. A slab that nothing uses goes
// back to it, but for one, so that to give and take a page at the border does not
// allocate each time.
type pages struct {
	slabs [][]byte
	// used has a bit for each page that is taken. Invariant: their sum is count, and
	// each such page lies within its slab, but for the very first page, which may be
	// short.
	used  []uint64
	count int
	// first is a word of used below which every page is taken.
	first int
	// spare is 1 + the slab that keeps its memory though none of its pages is
	// taken. Invariant: there is at most one.
	spare int
	// bytes is the size of all slabs.
	bytes int64
}

// take returns a page. What is in it is left over from its last use.
func (p *pages) take() uint32 {
	for p.first < len(p.used) && p.used[p.first] == ^uint64(0) {
		p.first++
	}
	if p.first == len(p.used) {
		p.slabs = append(p.slabs, nil)
		p.used = append(p.used, make([]uint64, slabWords)...)
	}
	page := p.first*64 + bits.TrailingZeros64(^p.used[p.first])
	slab := page / slabPages
	if size := (page%slabPages + 1) * pageSize; len(p.slabs[slab]) < size {
		if p.count == 0 {
			size = 64 // of a table of a few keys, a page would be the larger part
		} else {
			// A sixteenth more than there is: no copy is large, and not much is idle.
			size = min(size+p.count/16*pageSize, slabPages*pageSize)
		}
		p.extend(slab, size)
	}
	if p.spare == slab+1 {
		p.spare = 0
	}
	p.used[page/64] |= 1 << (page % 64)
	p.count++
	return uint32(page)
}

// give takes a page back.
func (p *pages) give(page uint32) {
	slab := int(page / slabPages)
	p.used[page/64] &^= 1 << (page % 64)
	p.count--
	p.first = min(p.first, int(page/64))
	if p.usedOf(slab) != [slabWords]uint64{} {
		return
	}
	if p.spare == 0 {
		p.spare = slab + 1
		return
	}
	p.bytes -= int64(len(p.slabs[slab]))
	p.slabs[slab] = nil
}

// lower moves what is in a page to one before it, if one is free, and returns where it is. There is
// a free one somewhere.
func (p *pages) lower(page uint32) uint32 {
	free := p.take()
	if free > page {
		p.give(free)
		return page
	}
	copy(p.at(free)[:pageSize], p.at(page))
	p.give(page)
	return free
}

// usedOf is the part of used for a slab.
func (p *pages) usedOf(slab int) [slabWords]uint64 {
	return [slabWords]uint64(p.used[slab*slabWords:])
}

// at returns the memory from the beginning of the page on. It is valid until the
// next take or ensure.
func (p *pages) at(page uint32) []byte {
	return p.slabs[page/slabPages][page%slabPages*pageSize:]
}

// ensure makes the first page at least size bytes long. All others are whole.
func (p *pages) ensure(page uint32, size int) {
	if have := len(p.at(page)); have < size {
		p.extend(0, min(max(2*have, size), pageSize))
	}
}

func (p *pages) extend(slab, size int) {
	longer := make([]byte, size)
	copy(longer, p.slabs[slab])
	p.bytes += int64(size - len(p.slabs[slab]))
	p.slabs[slab] = longer
}

// size is the memory that the pages take, their bookkeeping included.
func (p *pages) size() int64 {
	return p.bytes + int64(cap(p.slabs))*24 + int64(cap(p.used))*8
}
