package deltaqueue

import (
	"k8s.io/client-go/tools/cache"

	"github.com/rvinformer/informer/internal/leaf/keytable"
	"github.com/rvinformer/informer/internal/leaf/moment"
)

// Delta is one observed change of one key.
type Delta struct {
	// Type is Added, Updated or Deleted for a change that a watch told, Replaced
	// for an object that a generation showed, Sync for a resync.
	Type cache.DeltaType
	// Key is "namespace/name" or "name".
	Key string
	// Version is the object's, as the server sent it; empty where a sweep found
	// the deletion.
	Version keytable.Version
	// Object is the object, or nil where a sweep found the deletion.
	Object interface{}
	// Bytes is the size of Object, for the account only.
	Bytes int64
	// Arrived is when the delta was read off its connection, or a sweep found the deletion.
	Arrived moment.Moment
}

// FinalStateUnknown reports whether d is a deletion that a sweep found: the
// last state of the object was not seen.
func (d Delta) FinalStateUnknown() bool {
	return d.Type == cache.Deleted && d.Object == nil
}

// hasState reports whether d says which object it is of, and in which version.
func (d Delta) hasState() bool { return d.Version != (keytable.Version{}) || d.Object != nil }

// Merge adds newer to the deltas of a key that wait for the consumer, so that
// at most one object waits, and no deletion is lost: the result is a deletion,
// or another delta, or a deletion followed by another delta.
//
// The deltas are the caller's own: Merge may write to their array.
func Merge(waiting []Delta, newer Delta) []Delta {
	if len(waiting) == 0 {
		return append(waiting, newer)
	}
	deletion := waiting[0].Type == cache.Deleted
	newest := waiting[len(waiting)-1]
	switch {
	case newer.Type == cache.Sync:
		// What waits is at least as new as what a resync repeats.
		return waiting
	case newer.Type == cache.Deleted && deletion && (len(waiting) > 1 || !waiting[0].FinalStateUnknown()):
		// The consumer knows the object that was deleted first. Of the one that
		// came after it and is gone again it was never told.
		clear(waiting[1:]) // or their array holds its object
		return waiting[:1]
	case newer.Type == cache.Deleted:
		return append(waiting[:0], newer)
	case newer.Type == cache.Replaced && newest.FinalStateUnknown():
		// A generation shows what an earlier one had missed: it lives.
		return append(waiting[:0], newer)
	}
	if newest.Type == cache.Added {
		newer.Type = cache.Added
	}
	if deletion {
		return append(waiting[:1], newer)
	}
	return append(waiting[:0], newer)
}
