package informertest

import (
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Backup is what a [Server] held at one time. It does not change with the server, and can be
// restored more than once.
type Backup struct {
	of     *store // whose it is
	rv     uint64
	tables []backedUp
}

// backedUp is one resource with its objects, in the order of their keys.
type backedUp struct {
	resource Resource
	objects  []*object
}

// Backup returns what the server holds now: its objects and its resource version, but not its
// history.
func (s *Server) Backup() *Backup { return s.store.backup() }

// Restore makes the server hold again what it did at a backup of its own: the same objects with the
// same UIDs and resource versions, and the sequence as it was, so that resource versions given
// since then are given again for something else. As when etcd is restored and the API servers
// restarted, the history is forgotten as by [Server.Compact], running watches end without an error,
// and lagging replicas show the restored state.
//
// A resource that was removed since is served again. One that was added since stays, without
// objects.
//
// Restore panics, before it changes anything, where there is no backup or it is that of another
// server.
func (s *Server) Restore(b *Backup) {
	switch {
	case b == nil:
		panic("informertest: Restore without a Backup")
	case b.of != s.store:
		panic("informertest: Restore with a Backup that is not of this Server")
	}
	s.store.restore(b)
}

// RemoveResource ends the serving of a resource, as when its CustomResourceDefinition is deleted:
// every object is deleted, which watches are told, the watches end, and from then on the resource
// is unknown, with 404, and not in discovery. [Server.AddResource] brings it back empty, and with
// no history: a watch from before that gets 410 Expired. A resource that is not served is none to
// remove.
func (s *Server) RemoveResource(gvr schema.GroupVersionResource) { s.store.removeResource(gvr) }

func (s *store) backup() *Backup {
	s.mu.RLock()
	defer s.mu.RUnlock()
	b := &Backup{of: s, rv: s.rv}
	for _, t := range s.tables {
		b.tables = append(b.tables, backedUp{resource: t.resource, objects: t.objects(s.rv)})
	}
	return b
}

func (s *store) restore(b *Backup) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, t := range s.tables {
		t.restore(nil)
	}
	for _, saved := range b.tables {
		gvr := saved.resource.GroupVersionResource
		if s.tables[gvr] == nil {
			s.addLocked(saved.resource)
		}
		s.tables[gvr].restore(saved.objects)
	}
	s.compacted = b.rv
	s.moveLocked(b.rv)
	s.restartReplicas()
	s.tellRestoredLocked()
}

// restore makes the objects, in the order of their keys, all that the table holds, and ends the
// watches.
func (t *table) restore(objects []*object) {
	t.first = t.end()
	t.log = nil
	t.born = 0 // the compaction that comes with it says more
	t.index = index{}
	for _, o := range objects {
		t.index.insert(&entry{key: t.resource.key(o.namespace, o.name), newest: &revision{rv: o.rv, object: o}})
	}
	for c := range t.cursors {
		c.state = cursorEnded
	}
	t.changed.fire()
}

func (s *store) removeResource(gvr schema.GroupVersionResource) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.tables[gvr]
	if t == nil {
		return
	}
	for _, o := range t.objects(s.rv) {
		s.deleteLocked(t, o)
	}
	t.removed = true
	t.changed.fire()
	delete(s.tables, gvr)
	s.regroupLocked(gvr.GroupVersion())
}
