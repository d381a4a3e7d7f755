package informer

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/rvinformer/informer/internal/edge/report"
	"github.com/rvinformer/informer/internal/engine/flow"
	"github.com/rvinformer/informer/internal/leaf/rv"
)

// Belief is what an informer believes of one object. It is for people who ask why something is not
// as they expect.
type Belief struct {
	// Acknowledged is the state that the handler has acknowledged, or, of an objectcache.Informer,
	// that can be read; nil if there is none.
	Acknowledged *AcknowledgedState
	// Waiting is what was read since, and is not acknowledged yet; nil if there is nothing. Of an
	// objectcache.Informer, whose handlers are called after the store has changed, it is always
	// nil.
	Waiting *WaitingChange
	// Unsettled tells that the last call of the handler for the object has failed: the handler may
	// have begun to take in what it did not acknowledge.
	Unsettled bool
}

// AcknowledgedState identifies a state of an object.
type AcknowledgedState struct {
	// ResourceVersion is empty if the Storage was filled without it.
	ResourceVersion string
	// UID is empty where it is not known: the Storage was filled without it, and no list has shown
	// the object since.
	UID types.UID
	// ReadAfter and ReadBefore are bounds of the time when the informer read ResourceVersion. No
	// time is kept for an object: they are found from a few moments for which the informer knows
	// how far it had read then. The bounds are one to eleven minutes apart for the last minutes,
	// then some ten minutes, then hours. ReadAfter is zero if that was before the oldest such
	// moment, as for all objects of the first list, or of a checkpoint. ReadBefore is zero if it
	// may be just now. Both are zero for resource versions without an order.
	ReadAfter, ReadBefore time.Time
}

// WaitingChange is a change that is not acknowledged.
type WaitingChange struct {
	// ResourceVersion and UID are those of the newest change. That of a deletion that a list has
	// found out is the one of the last state known.
	ResourceVersion string
	UID             types.UID
	// Deleted tells that it is a deletion.
	Deleted bool
	// InHandler tells that the handler is called with it, or with an older change of the object,
	// right now.
	InHandler bool
	// Attempts is how often the handler has failed for it.
	Attempts int
	// Since is when the oldest change of the object that waits was read; zero if that is not known,
	// as of a deletion that a list has found out.
	Since time.Time
}

// Lookup returns what is believed of the object of a key.
func (i *resourceVersionInformer) Lookup(key string) (Belief, bool) {
	return lookup(i.flow, &i.reflector.setup.Report, key)
}

func lookup(f *flow.Flow, r *report.Report, key string) (b Belief, found bool) {
	l, unsettled := f.Look(key)
	b.Unsettled = unsettled
	if l.Exists {
		state := &AcknowledgedState{ResourceVersion: l.Known.ResourceVersion, UID: l.Known.UID}
		state.ReadAfter, state.ReadBefore = r.Read(state.ResourceVersion)
		b.Acknowledged = state
	}
	if l.Waits {
		b.Waiting = &WaitingChange{
			ResourceVersion: l.Newest.ResourceVersion, UID: l.Newest.UID, Deleted: l.Deleted, InHandler: l.Taken, Attempts: l.Attempts,
			Since: l.Arrived.Time(),
		}
	}
	return b, b != Belief{}
}

// Lookup returns what is believed of the object of a key, by the handler that is least far with it:
// the oldest state that one of them has acknowledged, none if one of them has none, and a change
// that waits for one of them. Of one handler, its registration knows.
func (s *SharedResourceVersionInformer) Lookup(key string) (all Belief, found bool) {
	for i, h := range s.Handlers() {
		b, known := h.Lookup(key)
		found = found || known
		if i == 0 {
			all = b
		} else {
			all = leastFar(all, b)
		}
	}
	return all, found
}

// leastFar is the belief of two handlers together.
func leastFar(a, b Belief) Belief {
	switch {
	case a.Acknowledged == nil || b.Acknowledged == nil:
		a.Acknowledged = nil
	case rv.Compare(b.Acknowledged.ResourceVersion, a.Acknowledged.ResourceVersion) == rv.Older:
		a.Acknowledged = b.Acknowledged
	}
	if a.Waiting == nil {
		a.Waiting = b.Waiting
	}
	a.Unsettled = a.Unsettled || b.Unsettled
	return a
}

// Lookup returns what is believed of the object of a key, as of ResourceVersionInformer.
func (h *HandlerRegistration) Lookup(key string) (Belief, bool) { return h.informer.Lookup(key) }
