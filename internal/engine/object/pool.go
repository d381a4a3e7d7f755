package object

import (
	"sync"

	"github.com/rvinformer/informer/internal/leaf/wire"
)

// Pool keeps Raws that are no longer in use, for their memory: most objects of a set are about as
// large as the others. The garbage collector empties it. A nil Pool keeps none.
type Pool struct{ free sync.Pool }

// Shared is the pool of all informers of the process.
var Shared Pool

// pooledBytes is how large an object may be that is kept.
const pooledBytes = 64 << 10

// get returns an object whose encoding is empty and has room for so many bytes.
func (p *Pool) get(room int) *Raw {
	r := p.take()
	// What is much larger than needed would spend the budget on nothing.
	if have := cap(r.encoding); have < room || have > room+room/4 {
		r.encoding = make([]byte, 0, room+room/8)
	}
	r.encoding, r.pooled = r.encoding[:0], p != nil
	return r
}

func (p *Pool) take() *Raw {
	if p != nil {
		if r, ok := p.free.Get().(*Raw); ok {
			return r
		}
	}
	return &Raw{}
}

// Put takes r back, whose loan is over. A copy, and an object that was taken back before, stay as
// they are.
func (p *Pool) Put(r *Raw) {
	if !r.pooled {
		return
	}
	r.pooled = false
	wire.Poison(r.encoding)
	if cap(r.encoding) <= pooledBytes {
		r.decoded.Store(nil)
		p.free.Put(r)
	}
}
