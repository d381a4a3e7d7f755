package keytable

import "math/bits"

const (
	pageBits = 10
	pageSize = 1 << pageBits
	// slabPages is what one word of bits can tell the use of.
	slabPages = 64
)

// pages hands out pages by number. It cuts them from slabs of 64, of which the
// garbage collector sees only that they have no pointers. A slab that nothing
// uses goes back to it, but for one, so that to give and take a page at the
// border does not allocate each time.
type pages struct {
	slabs [][]byte
	// used has, for each slab, a bit for each page that is taken. Invariant: their
	// sum is count, and each such page lies within its slab, but for the very
	// first page, which may be short.
	used  []uint64
	count int
	// first is a slab below which every page is taken.
	first int
	// spare is 1 + the slab that keeps its memory though none of its pages is
	// taken. Invariant: there is at most one.
	spare int
	// bytes is the size of all slabs.
	bytes int64
}

// take returns a page. What is in it is left over from its last use.
func (p *pages) take() uint32 {
	for p.first < len(p.slabs) && p.used[p.first] == ^uint64(0) {
		p.first++
	}
	slab := p.first
	if slab == len(p.slabs) {
		p.slabs = append(p.slabs, nil)
		p.used = append(p.used, 0)
	}
	page := bits.TrailingZeros64(^p.used[slab])
	if size := (page + 1) * pageSize; len(p.slabs[slab]) < size {
		if p.count == 0 {
			size = 64 // of a table of a few keys, a page would be the larger part
		} else {
			// An eighth more than there is: no copy is large, and not much is idle.
			size = min(size+p.count/8*pageSize, slabPages*pageSize)
		}
		p.extend(slab, size)
	}
	if p.spare == slab+1 {
		p.spare = 0
	}
	p.used[slab] |= 1 << page
	p.count++
	return uint32(slab*slabPages + page)
}

// give takes a page back.
func (p *pages) give(page uint32) {
	slab := int(page / slabPages)
	p.used[slab] &^= 1 << (page % slabPages)
	p.count--
	p.first = min(p.first, slab)
	if p.used[slab] != 0 {
		return
	}
	if p.spare == 0 {
		p.spare = slab + 1
		return
	}
	p.bytes -= int64(len(p.slabs[slab]))
	p.slabs[slab] = nil
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
