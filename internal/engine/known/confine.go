package known

import (
	"github.com/rvinformer/informer/api"
	"github.com/rvinformer/informer/internal/engine/object"
	"github.com/rvinformer/informer/internal/leaf/checkpoint"
	"github.com/rvinformer/informer/internal/leaf/keytable"
)

// Confine forgets what is not in the shard that an informer is about to follow. That is no edit:
// the checkpoint of the informer says that the rest is not what it is of. It is an edit if the
// informer before has followed less than that shard, because something of it may have been
// forgotten.
//
// Objects that the handler may have begun to take in have no UIDs here. Where the shard is by UID,
// they may be in another one. They stay if the program has filled the versions, or if all of the
// shard before is in this one. They are forgotten otherwise: an informer of this shard cannot see
// whether they are gone.
func (v *Versions) Confine(to api.Shard) {
	out := v.outside(to)
	if to.IsAll() {
		return
	}
	for cursor := keytable.Cursor(0); ; {
		keys, next := v.keysFrom(cursor)
		for _, key := range keys {
			v.forget(key, out)
		}
		if cursor = next; cursor == 0 {
			break
		}
	}
	for _, key := range v.UnsettledUnknown() {
		v.forget(key, out)
	}
}

// outside notes which shard is followed from now on, and returns what reports whether an object is
// none of it.
func (v *Versions) outside(to api.Shard) func(key string, version keytable.Version) bool {
	newest := ""
	if !to.IsAll() {
		newest = v.Newest() // of the forgotten objects, too: a list must not be older
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	before := v.shard
	v.shard = &to
	if newest != "" {
		v.reached = newest
	}
	if before != nil && !before.Contains(to) {
		v.edits++
		v.changes.Add(1)
	}
	if before == nil || to.Contains(*before) {
		return func(key string, version keytable.Version) bool {
			return surelyOutside(to, key, string(version.UID))
		}
	}
	return func(key string, version keytable.Version) bool {
		if version == (keytable.Version{}) {
			return !surelyInShard(to, key, "")
		}
		return !object.InShard(to, key, string(version.UID))
	}
}

func (v *Versions) forget(key string, out func(key string, version keytable.Version) bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if version, _ := v.reading().Get(key); !out(key, version) {
		return
	}
	if v.table != nil {
		v.changes.Add(1)
		v.table.Delete(key)
	}
	v.unsettled.remove(key)
}

// shardOf returns the shard of a checkpoint, nil for one that does not say what it is of.
func shardOf(metadata map[string]string) *api.Shard {
	if len(metadata) == 0 {
		return nil
	}
	s, err := api.ParseShard(checkpoint.SourceFrom(metadata).Shard)
	if err != nil {
		return nil
	}
	return &s
}
