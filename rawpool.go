package informer

import (
	"sync"

	"github.com/rvinformer/informer/internal/wire"
)

// rawPool keeps RawObjects that are of no more use to anybody, for their memory:
// most objects of a set are about as large as the others. What it keeps is little:
// it goes from the consumer back to the reader, of which one is not far ahead of
// the other, or waits for it.
type rawPool struct {
	mu   sync.Mutex
	free []*RawObject
}

const (
	// pooledObjects is how many are kept at most, and pooledBytes how large each may
	// be.
	pooledObjects = 32
	pooledBytes   = 64 << 10
)

// get returns an object whose encoding is empty and has room for so many bytes. A
// nil pool has none kept.
func (p *rawPool) get(room int) *RawObject {
	o := p.take()
	// What is much larger than needed would be more than the budget counts.
	if have := cap(o.encoding); have < room || have > 2*room+1024 {
		o.encoding = make([]byte, 0, room)
	}
	o.encoding = o.encoding[:0]
	return o
}

func (p *rawPool) take() *RawObject {
	if p == nil {
		return &RawObject{}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.free) == 0 {
		return &RawObject{}
	}
	last := len(p.free) - 1
	o := p.free[last]
	p.free[last] = nil
	p.free = p.free[:last]
	return o
}

// put takes an object back whose loan is over.
func (p *rawPool) put(o *RawObject) {
	wire.Poison(o.encoding)
	if cap(o.encoding) > pooledBytes {
		return
	}
	o.decoded.Store(nil)
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.free) < pooledObjects {
		p.free = append(p.free, o)
	}
}
