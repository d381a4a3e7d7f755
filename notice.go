package informer

import (
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"

	"github.com/rvinformer/informer/internal/deltaqueue"
	"github.com/rvinformer/informer/internal/keytable"
)

// notice is what a handler is told of a key: one call, or one Event.
type notice struct {
	change EventType
	// object may be a cache.DeletedFinalStateUnknown.
	object  interface{}
	version string
}

// mostNotices is how many notices an entry has at most: the end of an object, and
// one that came after it.
const mostNotices = 2

// notices adds to to what the handler is to be told of an entry, whose deltas it is
// to see as given, when these are compared with what it has acknowledged.
func (i *resourceVersionInformer) notices(to []notice, e *deltaqueue.Entry, deltas []deltaqueue.Delta) []notice {
	known, exists, unsettled := i.storage.Delivered(e.Key)
	for _, d := range deltas {
		replaced := d.Type != cache.Deleted && exists && !known.SameObject(d.Version)
		switch {
		case replaced:
			to = append(to, notice{Deleted, i.intake.Tombstone(d.Key, known), known.ResourceVersion})
			exists = false
		case d.Type == cache.Deleted && (exists || unsettled || e.Resumed):
			to = append(to, i.deletion(d, known))
		}
		// Of what the handler was never told, it is not told the end.
		if d.Type == cache.Deleted {
			exists, unsettled = false, false
			continue
		}
		change := presence(d, known, exists)
		switch {
		case change == Synced && unsettled: // it may have begun to take another version in
			change = Updated
		case change == Synced && i.skipUnchanged:
			continue
		}
		to = append(to, notice{change, d.Object, d.Version.ResourceVersion})
	}
	return to
}

// deletion is what to tell of a deletion: d's object, unless it is another one
// than the handler knows.
func (i *resourceVersionInformer) deletion(d deltaqueue.Delta, known keytable.Version) notice {
	if d.FinalStateUnknown() || !known.SameObject(d.Version) {
		return notice{Deleted, i.intake.Tombstone(d.Key, known), known.ResourceVersion}
	}
	return notice{Deleted, d.Object, d.Version.ResourceVersion}
}

// presence is what an object that is there is to a handler that knows another
// version of it, if it exists.
func presence(d deltaqueue.Delta, known keytable.Version, exists bool) EventType {
	switch {
	case !exists:
		return Added
	case d.Type == cache.Replaced && known.ResourceVersion != "" && known.ResourceVersion == d.Version.ResourceVersion:
		return Synced
	default:
		return Updated
	}
}

// tell calls a handler.
func (n notice) tell(handler ResourceEventHandler, isInInitialList bool) {
	switch n.change {
	case Added:
		handler.OnAdd(n.object, isInInitialList)
	case Updated:
		handler.OnUpdate(nil, n.object)
	case Deleted:
		handler.OnDelete(n.object)
	case Synced:
		handler.OnSync(n.object)
	}
}

// event is the notice as a BatchHandler is given it.
func (n notice) event(e *deltaqueue.Entry) Event {
	event := Event{Type: n.change, Key: e.Key, ResourceVersion: n.version, IsInInitialList: e.Initial}
	tombstone, ok := n.object.(cache.DeletedFinalStateUnknown)
	if ok {
		n.object = tombstone.Obj
	}
	event.FinalStateUnknown = ok
	event.Object, _ = n.object.(runtime.Object)
	return event
}
