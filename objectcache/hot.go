package objectcache

import (
	"math"
	"sync"

	"github.com/hashicorp/golang-lru/v2/simplelru"
	"k8s.io/apimachinery/pkg/runtime"
)

// defaultHotBytes is StoreOptions.HotBytes where it is zero.
const defaultHotBytes = 8 << 20

// decodedPerEncoded is how much larger a decoded object is than its bytes, about: a typed pod takes 3.3 times its protobuf,
// an unstructured object 4.8 times its JSON.
const decodedPerEncoded = 4

// hot has decoded objects by their slots, the least recently used of which go first. Its objects are shared: no reader may change
// them. A nil hot keeps none.
//
// Whoever adds or drops an object holds the store's lock, for reading at least to add, for writing to drop. So hot never has
// an object that the store has replaced.
type hot struct {
	limit int64

	mu    sync.Mutex
	bytes int64
	lru   *simplelru.LRU[uint32, hotObject]
}

type hotObject struct {
	object runtime.Object
	born   uint32
	bytes  int64
}

// newHot returns nil if the limit is negative.
func newHot(limit int64) *hot {
	if limit < 0 {
		return nil
	}
	if limit == 0 {
		limit = defaultHotBytes
	}
	h := &hot{limit: limit}
	// The only error is a size that is not positive. The bytes are the limit.
	h.lru, _ = simplelru.NewLRU(math.MaxInt, func(_ uint32, o hotObject) { h.bytes -= o.bytes })
	return h
}

// get returns the object of a state of a slot, nil if it is not hot.
func (h *hot) get(slot, born uint32) runtime.Object {
	if h == nil {
		return nil
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if o, ok := h.lru.Get(slot); ok && o.born == born {
		return o.object
	}
	return nil
}

// add keeps obj, which was decoded from so many bytes. If there is one already, that one stays. It returns the one that is shared
// from now on.
func (h *hot) add(slot, born uint32, obj runtime.Object, encoded int) runtime.Object {
	if h == nil {
		return obj
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if o, ok := h.lru.Get(slot); ok {
		return o.object
	}
	o := hotObject{object: obj, born: born, bytes: int64(encoded) * decodedPerEncoded}
	h.bytes += o.bytes
	h.lru.Add(slot, o)
	for h.bytes > h.limit {
		h.lru.RemoveOldest()
	}
	return obj
}

func (h *hot) drop(slot uint32) {
	if h == nil {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.lru.Remove(slot)
}

func (h *hot) sizeBytes() int64 {
	if h == nil {
		return 0
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.bytes
}
