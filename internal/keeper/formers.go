package keeper

import (
	"slices"
	"sync"

	"github.com/rvinformer/informer/internal/shard"
)

// formers are the shards that were left before the content of a store was read. It may be of one of them, and is the informer's to replace.
type formers struct {
	mu     sync.Mutex
	shards []shard.Shard
	ended  bool
}

// leave notes that a shard is left for another one.
func (f *formers) leave(former shard.Shard) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.ended && !slices.Contains(f.shards, former) {
		f.shards = append(f.shards, former)
	}
}

// any reports whether one of the shards is such.
func (f *formers) any(such func(shard.Shard) bool) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.ContainsFunc(f.shards, such)
}

// end notes that the content was read.
func (f *formers) end() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.shards, f.ended = nil, true
}
