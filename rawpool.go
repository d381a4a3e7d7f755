package informer

import (
	"sync"

	"github.com/rvinformer/informer/internal/wire"
)

// rawPool has RawObjects that are of no more use to anybody, for their memory:
// most objects of a set are about as large as the others. Informers share it, and
// the garbage collector empties it.
type rawPool struct{ free sync.Pool }

var rawObjects rawPool

// pooledBytes is how large an object may be that is kept.
const pooledBytes = 64 << 10

// get returns an object whose encoding is empty and has room for so many bytes. A
// nil pool has none kept.
func (p *rawPool) get(room int) *RawObject {
	o := p.take()
	// What is much larger than needed would spend the budget on nothing.
	if have := cap(o.encoding); have < room || have > room+room/4 {
		o.encoding = make([]byte, 0, room+room/8)
	}
	o.encoding = o.encoding[:0]
	return o
}

func (p *rawPool) take() *RawObject {
	if p != nil {
		if o, ok := p.free.Get().(*RawObject); ok {
			return o
		}
	}
	return &RawObject{}
}

// put takes an object back whose loan is over.
func (p *rawPool) put(o *RawObject) {
	wire.Poison(o.encoding)
	if cap(o.encoding) <= pooledBytes {
		o.decoded.Store(nil)
		p.free.Put(o)
	}
}
