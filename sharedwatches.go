package informer

import (
	"maps"
	"slices"
	"sync"

	"github.com/rvinformer/informer/internal/source"
)

// sharedWatches are the watches that the handlers of a shared informer have in common: one set for each shard that it has followed.
type sharedWatches struct {
	mu      sync.Mutex
	watches map[Shard]*source.Shared
}

// of returns those of a shard.
func (w *sharedWatches) of(s Shard) *source.Shared {
	w.mu.Lock()
	defer w.mu.Unlock()
	shared := w.watches[s]
	if shared == nil {
		if w.watches == nil {
			w.watches = map[Shard]*source.Shared{}
		}
		shared = source.NewShared()
		w.watches[s] = shared
	}
	return shared
}

// wait waits until all have ended.
func (w *sharedWatches) wait() {
	w.mu.Lock()
	all := slices.Collect(maps.Values(w.watches))
	w.mu.Unlock()
	for _, shared := range all {
		shared.Wait()
	}
}
