package informertest

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// patience is how long a request waits for a resource version that is not there yet, as in a
// kube-apiserver.
const patience = 3 * time.Second

// replica is a second view of a store that stands still: what a kube-apiserver shows that gets no
// news from etcd. Guarded by the lock of the store.
type replica struct {
	rv    uint64
	views map[schema.GroupVersionResource]view
}

// view is what a replica knows of one table.
type view struct {
	table *table
	// A table with the objects, and without a history.
	state *table
	// Where the writes after the view begin. It is a cursor that is never read, so that compactions
	// leave them to it.
	pin *cursor
}

func (s *store) newReplica() *replica {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := &replica{}
	s.replicas[r] = struct{}{}
	r.look(s)
	return r
}

// look makes the state of now what the replica shows.
func (r *replica) look(s *store) {
	r.rv, r.views = s.rv, map[schema.GroupVersionResource]view{}
	for gvr, t := range s.tables {
		pin := &cursor{store: s, table: t, rv: s.rv, next: t.end()}
		t.cursors[pin] = struct{}{}
		state := newTable(t.resource, t.born)
		state.restore(t.objects(s.rv))
		r.views[gvr] = view{table: t, state: state, pin: pin}
	}
}

// forget takes what the replica holds of the tables from them.
func (r *replica) forget() {
	for _, v := range r.views {
		delete(v.table.cursors, v.pin)
	}
}

func (s *store) dropReplica(r *replica) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.replicas, r)
	r.forget()
}

// restartReplicas is for a sequence that was set back: every API server starts again then, from the
// state of now.
func (s *store) restartReplicas() {
	for r := range s.replicas {
		r.forget()
		r.look(s)
	}
}

// of is what the replica knows of a table: nothing, if that is younger than the replica.
func (r *replica) of(t *table) view {
	v := r.views[t.resource.GroupVersionResource]
	if v.table != t {
		return view{table: t, state: newTable(t.resource, t.born)}
	}
	return v
}

// follow returns a cursor for the writes after the view, which is of a resource version.
func (v view) follow(s *store, rv uint64) *cursor {
	if v.pin == nil {
		c := &cursor{store: s, table: v.table, rv: rv, next: v.table.first}
		if v.table.first > 0 {
			c.state = cursorBehind
		}
		return c
	}
	c := *v.pin
	c.backlog = slices.Clone(c.backlog)
	return &c
}

// presentLocked is the replica, or nil when it was given up since the request found it.
func (s *store) presentLocked(r *replica) *replica {
	if _, ok := s.replicas[r]; !ok {
		return nil
	}
	return r
}

// reachedLocked is the resource version that a request sees: the store's, or that of a replica.
func (s *store) reachedLocked(r *replica) uint64 {
	if r != nil {
		return min(r.rv, s.rv)
	}
	return s.rv
}

// await waits until what the request sees has reached a resource version, but not for longer than
// patience. Whoever reads then looks for himself whether it has.
func (s *store) await(done <-chan struct{}, x *exchange, rv uint64) {
	var timer *time.Timer
	for {
		faulty := x.wait()
		s.mu.Lock()
		if s.reachedLocked(x.replica()) >= rv {
			s.mu.Unlock()
			return
		}
		moved := s.moved.wait()
		s.mu.Unlock()
		if timer == nil {
			timer = time.NewTimer(patience)
			defer timer.Stop()
		}
		select {
		case <-faulty:
		case <-moved:
		case <-done:
			return
		case <-x.stop:
			return
		case <-timer.C:
			return
		}
	}
}

// replica is the one that answers the request, nil when the server itself does. Of several it is
// the oldest.
func (x *exchange) replica() *replica {
	if x.many.Load() == 0 {
		return nil
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, m := range x.meetings {
		if m.fault.replica != nil {
			return m.fault.replica
		}
	}
	return nil
}
