package objectcache

import (
	"math"
	"reflect"
	"sync"

	"github.com/hashicorp/golang-lru/v2/simplelru"
	"k8s.io/apimachinery/pkg/runtime"
)

// defaultHotBytes is StoreOptions.HotBytes where it is zero.
const defaultHotBytes = 8 << 20

const (
	// noteBytes is about what a note takes in memory, and bytesPerNote is for how many bytes of
	// decoded objects there is one.
	noteBytes = 128
	// hotEntry is about what an object takes beside itself: its place in the list and in the map.
	hotEntry     = 192
	bytesPerNote = 8 << 10
)

// hot has decoded objects by their slots, the least recently used of which go first. Its objects
// are shared: no reader may change them. A nil hot keeps none.
//
// A reader that wants an object of its own pays for a copy if the object becomes hot. So where
// there is no room without dropping another, an object becomes hot when it is read again: most that
// are read once never are.
//
// Whoever adds or drops an object holds the store's lock, for reading at least to add, for writing
// to drop. So hot never has an object that the store has replaced.
type hot struct {
	limit int64

	mu    sync.Mutex
	bytes int64
	lru   *simplelru.LRU[uint32, hotObject]
	// notes are of states that were read once and are not hot. Bytes has theirs, too.
	notes *simplelru.LRU[state, struct{}]
	// weights are of the types of the objects.
	weights map[reflect.Type]*weight
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
	h := &hot{limit: limit, weights: map[reflect.Type]*weight{}}
	// The only error is a size that is not positive. The bytes are the limit.
	h.lru, _ = simplelru.NewLRU(math.MaxInt, func(_ uint32, o hotObject) { h.bytes -= o.bytes })
	h.notes, _ = simplelru.NewLRU(max(1, int(min(limit/bytesPerNote, math.MaxInt32))), func(state, struct{}) { h.bytes -= noteBytes })
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

// wants reports whether an object of a type that was decoded from so many bytes is worth a copy. If
// not, it is the next time.
func (h *hot) wants(of state, t reflect.Type, encoded int) bool {
	if h == nil {
		return false
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.bytes+h.weightLocked(t).estimate(t, encoded) <= h.limit || h.notes.Remove(of) {
		return true
	}
	h.bytes += noteBytes
	h.notes.Add(of, struct{}{})
	h.trim()
	return false
}

func (h *hot) weightLocked(t reflect.Type) *weight {
	w := h.weights[t]
	if w == nil {
		w = &weight{}
		h.weights[t] = w
	}
	return w
}

// add keeps obj, which was decoded from so many bytes. If there is one already, that one stays. It
// returns the one that is shared from now on.
func (h *hot) add(slot, born uint32, obj runtime.Object, encoded int) runtime.Object {
	if h == nil {
		return obj
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if o, ok := h.lru.Get(slot); ok {
		return o.object
	}
	o := hotObject{object: obj, born: born, bytes: hotEntry + h.weightLocked(reflect.TypeOf(obj)).of(obj, encoded)}
	h.bytes += o.bytes
	h.lru.Add(slot, o)
	h.trim()
	return obj
}

// trim drops objects until the rest is within the limit. The caller holds mu.
func (h *hot) trim() {
	for h.bytes > h.limit && h.lru.Len() > 0 {
		h.lru.RemoveOldest()
	}
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
