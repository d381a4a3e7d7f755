package shard

import (
	"strings"
	"sync"
	"sync/atomic"
)

// Extent is the shard that is followed, which may change, and the part of it that was listed. It is safe for concurrent use. The zero value
// follows the whole set, and nothing was listed. A nil Extent is that of a user who follows the whole set for ever, and keeps track of lists otherwise.
//
// A list shows what is in the shard when the list begins. If the shard is changed meanwhile, and changed back, what has left it is forgotten,
// and must be listed again. So every change takes from what the list under way can complete.
type Extent struct {
	// current is the shard, nil for the whole set.
	current atomic.Pointer[Shard]

	mu     sync.Mutex
	shard  Shard
	number int
	// listed is the part of the shard of which everything is known, but for what a watch has still to tell.
	listed extent
	// listing is what will be listed when the list under way is complete.
	listing extent
}

// extent is a range that may be empty.
type extent struct {
	Shard
	any bool
}

func (e extent) and(s Shard) extent {
	if !e.any {
		return e
	}
	common, any := e.And(s)
	return extent{common, any}
}

// Shard returns the shard, and the number of its changes.
func (x *Extent) Shard() (s Shard, number int) {
	if x == nil {
		return Shard{}, 0
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.shard, x.number
}

// Number returns the number of changes of the shard.
func (x *Extent) Number() int {
	if x == nil {
		return 0
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.number
}

// Change changes the shard, and reports whether it was another one.
func (x *Extent) Change(to Shard) bool {
	if to.IsAll() {
		to = Shard{}
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if to == x.shard {
		return false
	}
	x.shard = to
	x.number++
	if to.IsAll() {
		x.current.Store(nil)
	} else {
		x.current.Store(&to)
	}
	x.listed, x.listing = x.listed.and(to), x.listing.and(to)
	return true
}

// IsAll reports whether the shard is the whole set.
func (x *Extent) IsAll() bool { return x == nil || x.current.Load() == nil }

// LeavesOut reports whether an object is not in the shard.
func (x *Extent) LeavesOut(key, uid string) bool {
	if x == nil {
		return false
	}
	s := x.current.Load()
	return s != nil && !s.Includes(namespaceOf(key), uid)
}

// Excludes reports whether an object is not in the shard, as far as its UID, if that is needed, is known.
func (x *Extent) Excludes(key, uid string) bool {
	if x == nil {
		return false
	}
	s := x.current.Load()
	return s != nil && (uid != "" || s.Key != ByUID) && !s.Includes(namespaceOf(key), uid)
}

// Forgets reports whether what is known under a key is forgotten because the shard was changed: an object that is not in it, or one that a
// consumer has only begun to take in and of which the UID, if that is needed, is not known.
func (x *Extent) Forgets(key, uid string, begun bool) bool {
	return x.LeavesOut(key, uid) || begun && uid == "" && x.isByUID()
}

func (x *Extent) isByUID() bool {
	if x == nil {
		return false
	}
	s := x.current.Load()
	return s != nil && s.Key == ByUID
}

// Sweeps reports whether an object is gone if the list under way does not show it: it has been in the shard since that list began, as far as its
// UID, if that is needed, is known.
func (x *Extent) Sweeps(key, uid string) bool {
	if x == nil {
		return true
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	l := x.listing
	switch {
	case !l.any:
		return false
	case uid == "" && l.Key == ByUID && !l.IsAll():
		return l.Shard == x.shard
	}
	return l.Includes(namespaceOf(key), uid)
}

// SweepsAll reports whether the list under way is of the whole set, and was never of less.
func (x *Extent) SweepsAll() bool {
	if x == nil {
		return true
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.listing.any && x.listing.IsAll()
}

// namespaceOf is the namespace in a key, "namespace/name" or "name".
func namespaceOf(key string) string {
	return key[:max(strings.IndexByte(key, '/'), 0)]
}

// Begin begins a list of the shard as it was after that number of changes, or, if a part was listed, of what is missing. It reports whether that
// is still the shard.
func (x *Extent) Begin(number int) bool {
	if x == nil {
		return true
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.number != number {
		return false
	}
	x.listing = extent{x.shard, true}
	return true
}

// End notes that the list under way is complete.
func (x *Extent) End() {
	if x == nil {
		return
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.listed = x.listing
}

// Forget notes that nothing was listed.
func (x *Extent) Forget() {
	if x == nil {
		return
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.listed = extent{}
}

// Resume notes that everything in a shard is known, because it was saved, but for what was not in others that came since.
func (x *Extent) Resume(saved Shard, since ...Shard) {
	if x == nil {
		return
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.listed = extent{saved, true}.and(x.shard)
	for _, s := range since {
		x.listed = x.listed.and(s)
	}
}

// Missing returns the parts of the shard that were not listed. None says that nothing was.
func (x *Extent) Missing() (parts Parts, none bool) {
	if x == nil {
		return nil, false
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if !x.listed.any {
		return Of(x.shard), true
	}
	return x.shard.Without(x.listed.Shard), false
}

// Complete reports whether all of the shard was listed.
func (x *Extent) Complete() bool {
	if x == nil {
		return true
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.listed.any && x.listed.Contains(x.shard)
}
