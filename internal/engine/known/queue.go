package known

import (
	"slices"

	"github.com/rvinformer/informer/internal/engine/deltaqueue"
	"github.com/rvinformer/informer/internal/engine/journal"
	"github.com/rvinformer/informer/internal/leaf/keytable"
)

var (
	_ deltaqueue.Known    = (*Versions)(nil)
	_ deltaqueue.Refusals = (*Versions)(nil)
)

// Attach has each change of the queue written to journal, if there is one, and changed, if there
// is one, called after it. It is called before each run: the queue of a run writes to its own.
func (v *Versions) Attach(journal *journal.Journal, changed func()) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.journal, v.changed = journal, changed
}

// Begin begins a generation. It and the methods below are the queue's.
func (v *Versions) Begin() uint64 {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.writing().Begin()
}

// Set notes that the handler has acknowledged a version.
func (v *Versions) Set(key string, version keytable.Version, generation uint64) {
	v.mu.Lock()
	table := v.writing()
	if v.journal != nil {
		v.journal.Acknowledge(key, version, table.Compare(key, version))
	}
	v.changes.Add(1)
	table.Set(key, version, generation)
	changed := v.changed
	v.mu.Unlock()
	if changed != nil {
		changed()
	}
}

// Delete notes that the handler has acknowledged a deletion, or that what it was not told of has come
// and gone.
func (v *Versions) Delete(key string) (existed bool) {
	v.mu.Lock()
	v.endLetter(key)
	if v.journal != nil {
		v.journal.Forget(key, v.unsettled.letterOf(key))
	}
	v.changes.Add(1)
	existed = v.writing().Delete(key)
	changed := v.changed
	v.mu.Unlock()
	if changed != nil {
		changed()
	}
	return existed
}

// Show notes that a generation shows key, and reports whether it, or one from since on, did before.
// It compares the version that is shown with the one that the handler has.
func (v *Versions) Show(key string, version keytable.Version, generation, since uint64) (again bool, c keytable.Comparison) {
	v.mu.Lock()
	defer v.mu.Unlock()
	unsettled := v.settleShown(key, generation)
	again, c = v.writing().Show(key, version, generation, since)
	if unsettled { // the handler may have another version than the known one
		c.SameVersion = false
	}
	return again, c
}

// UnmarkedFrom returns some keys that a generation did not show, but for those that are not in the
// shard of the informer: others may have added them. It ends with the unsettled keys that the table
// does not have.
func (v *Versions) UnmarkedFrom(cursor keytable.Cursor, generation uint64, most int) (keys []string, next keytable.Cursor) {
	v.mu.RLock()
	defer v.mu.RUnlock()
	keys, next = v.reading().UnmarkedFrom(cursor, generation, most)
	if v.shard != nil && !v.shard.IsAll() {
		keys = slices.DeleteFunc(keys, v.isOutside)
	}
	if next != 0 {
		return keys, next
	}
	for key, d := range v.unsettled.all() {
		if known := v.reading().Compare(key, keytable.Version{}).Known; !known && d.shown < generation {
			keys = append(keys, key)
		}
	}
	return keys, next
}

// isOutside reports whether a key of the table is not in the shard. The caller holds the lock.
func (v *Versions) isOutside(key string) bool {
	version, _ := v.reading().Get(key)
	return surelyOutside(*v.shard, key, string(version.UID))
}
