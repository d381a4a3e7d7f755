package flow

import (
	"k8s.io/client-go/tools/cache"

	"github.com/rvinformer/informer/api"
	"github.com/rvinformer/informer/internal/engine/deltaqueue"
	"github.com/rvinformer/informer/internal/leaf/keytable"
)

// Notice is what a handler is given of a key: one call, or one Event.
type Notice struct {
	Type api.EventType
	// Object may be a cache.DeletedFinalStateUnknown.
	Object  interface{}
	Version string
}

// MaxNotices is how many notices an entry has at most: the end of an object, and
// one that came after it.
const MaxNotices = 2

// Notices adds to to what the handler is to be given of an entry, whose deltas it is
// to see as given, when these are compared with what it has acknowledged.
func (f *Flow) Notices(to []Notice, e *deltaqueue.Entry, deltas []deltaqueue.Delta) []Notice {
	known, exists, unsettled := f.Versions.Delivered(e.Key)
	for _, d := range deltas {
		replaced := d.Type != cache.Deleted && exists && !known.SameObject(d.Version)
		switch {
		case replaced:
			to = append(to, Notice{api.Deleted, f.Intake.Tombstone(d.Key, known), known.ResourceVersion})
			exists = false
		case d.Type == cache.Deleted && (exists || unsettled || e.Resumed || e.Again()):
			to = append(to, f.deletion(d, known))
		case d.Type == cache.Deleted:
			e.Unseen() // The deletion of an object that the handler never saw is not delivered.
		}
		if d.Type == cache.Deleted {
			exists, unsettled = false, false
			continue
		}
		change := presence(d, known, exists)
		switch {
		case change == api.Synced && (unsettled || e.Again()): // it may have begun to take another version in
			change = api.Updated
		case change == api.Synced && f.SkipUnchanged:
			continue
		}
		to = append(to, Notice{change, d.Object, d.Version.ResourceVersion})
	}
	return to
}

// deletion is the notice of a deletion: d's object, unless it is another one
// than the handler knows.
func (f *Flow) deletion(d deltaqueue.Delta, known keytable.Version) Notice {
	if d.FinalStateUnknown() || !known.SameObject(d.Version) {
		return Notice{api.Deleted, f.Intake.Tombstone(d.Key, known), known.ResourceVersion}
	}
	return Notice{api.Deleted, d.Object, d.Version.ResourceVersion}
}

// presence is what an object that is there is to a handler that knows another
// version of it, if it exists.
func presence(d deltaqueue.Delta, known keytable.Version, exists bool) api.EventType {
	switch {
	case !exists:
		return api.Added
	case d.Type == cache.Replaced && known.ResourceVersion != "" && known.ResourceVersion == d.Version.ResourceVersion:
		return api.Synced
	default:
		return api.Updated
	}
}

// Deltas returns what an entry says of a key as client-go's queues hand it out, with
// a tombstone where the final state is not known, and before an object that took the
// place of another of its name.
func (f *Flow) Deltas(key string, seen []deltaqueue.Delta) (deltas cache.Deltas) {
	last, exists := f.Versions.Get(key)
	for _, d := range seen {
		unseen := d.FinalStateUnknown()
		replaced := exists && d.Type != cache.Deleted && !last.SameObject(d.Version)
		if unseen || replaced {
			deltas = append(deltas, cache.Delta{Type: cache.Deleted, Object: f.Intake.Tombstone(key, last)})
		}
		if !unseen {
			deltas = append(deltas, cache.Delta{Type: d.Type, Object: d.Object})
		}
		exists = exists && d.Type != cache.Deleted
	}
	return deltas
}
