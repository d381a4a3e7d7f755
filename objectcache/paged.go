package objectcache

import (
	"slices"
	"unsafe"
)

const (
	pageBits  = 10
	pageItems = 1 << pageBits
)

// paged is an array that grows without copying what it has, except for its first page. Its zero
// value is empty.
type paged[T any] struct {
	pages [][]T
	len   uint32
}

// at returns the item of an index below len. The pointer is valid until grow.
func (p *paged[T]) at(i uint32) *T { return &p.pages[i>>pageBits][i&(pageItems-1)] }

// grow adds zero items so that there are n.
func (p *paged[T]) grow(n uint32) {
	for ; p.len < n; p.len++ {
		page := int(p.len >> pageBits)
		if page == len(p.pages) {
			p.pages = append(p.pages, nil)
		}
		last := p.pages[page]
		if len(last) == cap(last) {
			room := pageItems
			if page == 0 {
				room = min(pageItems, max(4, 2*len(last)))
			}
			last = append(make([]T, 0, room), last...)
		}
		p.pages[page] = last[:len(last)+1]
	}
}

// sparse reports whether fewer than half of the items are in use, and a page could be cut off.
func (p *paged[T]) sparse(used int) bool {
	return len(p.pages) > 1 && int(p.len) > 2*used+pageItems
}

// lastPage is the index of the first item of the last page.
func (p *paged[T]) lastPage() uint32 { return (p.len - 1) &^ (pageItems - 1) }

// cut drops the items from n on, which is the first of a page.
func (p *paged[T]) cut(n uint32) {
	if p.len <= n {
		return
	}
	pages := int(n >> pageBits)
	clear(p.pages[pages:])
	p.pages, p.len = p.pages[:pages], n
	if cap(p.pages) > 4*pages {
		p.pages = slices.Clone(p.pages)
	}
}

func (p *paged[T]) sizeBytes() int64 {
	n := cap(p.pages) * int(unsafe.Sizeof([]T(nil)))
	for _, page := range p.pages {
		n += cap(page) * int(unsafe.Sizeof(*new(T)))
	}
	return int64(n)
}
