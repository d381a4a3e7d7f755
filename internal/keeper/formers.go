package keeper

import (
	"slices"
	"sync"

	"github.com/rvinformer/informer/internal/shard"
)

// formers are the changes of the shard before the content of a store was read.
//
// The content may be of a shard that was left: it is the informer's to replace all the same. And an object of it that was not in each shard that came since
// is forgotten, as if it had been read before: the consumer may have forgotten it too.
type formers struct {
	mu    sync.Mutex
	left  []shard.Shard
	set   []shard.Shard // in the place of one that was left
	ended bool
}

// change notes that a shard is left for another one.
func (f *formers) change(from, to shard.Shard) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.ended {
		return
	}
	if !slices.Contains(f.left, from) {
		f.left = append(f.left, from)
	}
	if !slices.Contains(f.set, to) {
		f.set = append(f.set, to)
	}
}

// any reports whether one of the shards that were left is such.
func (f *formers) any(such func(shard.Shard) bool) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.ContainsFunc(f.left, such)
}

// forgets reports whether an object was not in each shard that was set, as far as its UID is known.
func (f *formers) forgets(key, uid string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return uid != "" && slices.ContainsFunc(f.set, func(s shard.Shard) bool { return !shard.Of(s).Includes(key, uid) })
}

// narrow reports whether a shard is more than one of those that were set.
func (f *formers) narrow(of shard.Shard) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.ContainsFunc(f.set, func(s shard.Shard) bool { return !s.Contains(of) })
}

// resume notes that everything in a shard was saved, of which the rest is known that was in each shard that was set. It excludes change, so that
// each shard is taken into account, by this or by its Extent.
func (f *formers) resume(x *shard.Extent, saved shard.Shard) {
	f.mu.Lock()
	defer f.mu.Unlock()
	x.Resume(saved, f.set...)
}

// end notes that the content was read.
func (f *formers) end() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.left, f.set, f.ended = nil, nil, true
}
