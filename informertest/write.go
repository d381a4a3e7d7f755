package informertest

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// WriteType says what a [Write] did.
type WriteType int

const (
	Created  WriteType = iota + 1 // an object came into being
	Updated                       // an object has a new state
	Deleted                       // an object is gone
	Restored                      // the sequence, or the whole state, went back: what exists now follows, each object as Kept
	Kept                          // an object exists after what was Restored
)

func (t WriteType) String() string {
	switch t {
	case Created:
		return "created"
	case Updated:
		return "updated"
	case Deleted:
		return "deleted"
	case Restored:
		return "restored"
	case Kept:
		return "kept"
	}
	return fmt.Sprintf("WriteType(%d)", int(t))
}

// Write is one change to the objects of a [Server].
type Write struct {
	Resource schema.GroupVersionResource // empty for Restored
	Type     WriteType
	Key      string    // namespace/name, or name for cluster scoped resources; empty for Restored
	UID      types.UID // of the object, also of one that is deleted; empty for Restored
	// ResourceVersion is that of the write; of Kept the object's, of Restored the server's.
	ResourceVersion string
	Time            time.Time
}

// Observe has a function called for every write from now on, whoever makes it: in the order of the
// sequence, before any client can see it, and never twice at once. It is called while the server is
// locked, so it must be quick and must not call the server, stop included. After stop has returned
// it is not called any more.
//
// After [Server.Restore], and [Server.SetResourceVersion] backwards, it is told Restored and then
// Kept for each object that there is, resource by resource.
//
// Observe panics without a function.
func (s *Server) Observe(observer func(Write)) (stop func()) {
	if observer == nil {
		panic("informertest: Observe without a function")
	}
	return s.store.observe(observer)
}

func (s *store) observe(observer func(Write)) (stop func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := new(byte)
	s.observers[key] = observer
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.observers, key)
	}
}

// tellLocked tells the observers of a write of an object under a resource version.
func (s *store) tellLocked(kind WriteType, r Resource, o *object, rv uint64) {
	if len(s.observers) == 0 {
		return
	}
	w := Write{
		Resource:        r.GroupVersionResource,
		Type:            kind,
		Key:             r.key(o.namespace, o.name),
		UID:             o.uid,
		ResourceVersion: s.versions.format(rv),
		Time:            time.Now(),
	}
	for _, observer := range s.observers {
		observer(w)
	}
}

// tellRestoredLocked tells the observers that the state went back, and what it is now.
func (s *store) tellRestoredLocked() {
	for _, observer := range s.observers {
		observer(Write{Type: Restored, ResourceVersion: s.versions.format(s.rv), Time: time.Now()})
	}
	for _, t := range s.tables {
		for _, o := range t.each(selection{}, "", s.rv) {
			s.tellLocked(Kept, t.resource, o, o.rv)
		}
	}
}
