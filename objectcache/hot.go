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

// hot has decoded objects, the least recently used of which go first. Its objects are shared: nobody may change them.
//
// Whoever adds or drops an object holds the store's lock, for reading at least to add, for writing to drop. So hot never has
// an object that the store has replaced.
type hot struct {
	limit int64

	mu    sync.Mutex
	bytes int64
	lru   *simplelru.LRU[string, hotObject]
}

type hotObject struct {
	object runtime.Object
	bytes  int64
}

// newHot returns nil, which keeps nothing, if the limit is negative.
func newHot(limit int64) *hot {
	if limit < 0 {
		return nil
	}
	if limit == 0 {
		limit = defaultHotBytes
	}
	h := &hot{limit: limit}
	// The only error is a size that is not positive. The bytes are the limit.
	h.lru, _ = simplelru.NewLRU(math.MaxInt, func(_ string, o hotObject) { h.bytes -= o.bytes })
	return h
}

func (h *hot) get(key string) (runtime.Object, bool) {
	if h == nil {
		return nil, false
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	o, ok := h.lru.Get(key)
	return o.object, ok
}

// add keeps obj, unless there is one: the one that stays is returned. It takes over obj, which was decoded from so many
// bytes.
func (h *hot) add(key string, obj runtime.Object, encoded int) runtime.Object {
	if h == nil {
		return obj
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if o, ok := h.lru.Get(key); ok {
		return o.object
	}
	o := hotObject{object: obj, bytes: int64(encoded)*decodedPerEncoded + int64(len(key))}
	h.bytes += o.bytes
	h.lru.Add(key, o)
	for h.bytes > h.limit {
		h.lru.RemoveOldest()
	}
	return obj
}

func (h *hot) drop(key string) {
	if h == nil {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.lru.Remove(key)
}

func (h *hot) purge() {
	if h == nil {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.lru.Purge()
}

func (h *hot) size() int64 {
	if h == nil {
		return 0
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.bytes
}
