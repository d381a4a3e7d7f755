package informertest

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
)

// Inject makes a fault happen to requests from now on, until it is healed: by the function
// returned, which may be called more than once, or by [Server.Heal]. Effects on the content of a
// response also meet responses under way, in the order of its arrival: hang, cut, slow, delay, and on
// watches garbage, mistyped, unversioned, oversize, error-event, close, lag, repeat, swap and those
// about bookmarks. Inject panics when the fault is invalid; [ParseFault] of its text then gives an
// error.
//
// Several faults may be there at once. A request counts with every one that it matches, in the
// order of their injection, whatever the others do to it. What is done then, in this order: it
// hangs; its connection is reset; the client is told to leave its connection; it is answered with a
// status, that of the fault injected first (a refused watch-list is a status too);
// sendInitialEvents is ignored; a lagging replica answers; a list is foreign, or has the token that
// it was asked with; a watch is closed; it ends with an ERROR event; bookmarks are withheld; an
// item or event takes its time; it is made garbage, or else mistyped, or else unversioned, or else
// padded; an event is swapped; an event is repeated; and of the bytes that come out of all this,
// the lowest cut and the lowest speed hold, and nothing passes while anything hangs. Refused
// connections come before all that. [Options].Wrap stands outside of it.
func (s *Server) Inject(f Fault) (heal func()) {
	if err := f.validate(); err != nil {
		panic(fmt.Sprintf("informertest: fault %q: %v", f, err))
	}
	active := s.faults.inject(f)
	if f.Effect.kind == effectRefuse {
		s.conns.cut()
	}
	return func() { s.faults.heal(active) }
}

// Heal takes all faults away. What hangs goes on, or ends if its time is over; a lagging replica
// catches up.
func (s *Server) Heal() { s.faults.heal() }

// faults are the faults of a server, and the requests that they may meet.
type faults struct {
	store *store

	mu     sync.Mutex
	dice   *rand.Rand
	active []*activeFault
	// The requests under way, in the order of their arrival.
	exchanges []*exchange
}

// activeFault is a fault that was injected and is not healed. Guarded by the lock of its faults.
type activeFault struct {
	Fault
	skipped, met int
	replica      *replica // of effectLag, else nil
}

func newFaults(s *store, seed uint64) *faults {
	return &faults{store: s, dice: rand.New(rand.NewPCG(seed, 0))}
}

// roll reports whether one in n comes.
func (f *faults) roll(n int) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.rollLocked(n)
}

func (f *faults) rollLocked(n int) bool { return n <= 1 || f.dice.IntN(n) == 0 }

// pick returns a number below n.
func (f *faults) pick(n int) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.dice.IntN(n)
}

// meetsLocked counts a matching request, and reports whether the fault meets it.
func (f *faults) meetsLocked(a *activeFault) bool {
	if a.skipped < a.Skip {
		a.skipped++
		return false
	}
	if a.Times > 0 && a.met == a.Times || !f.rollLocked(a.Odds) {
		return false
	}
	a.met++
	return true
}

func (f *faults) inject(fault Fault) *activeFault {
	fault.Verbs = slices.Clone(fault.Verbs)
	a := &activeFault{Fault: fault}
	if fault.Effect.kind == effectLag {
		a.replica = f.store.newReplica()
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.active = append(f.active, a)
	for _, x := range f.exchanges {
		if a.matches(x.inquiry) && slices.Contains(a.Effect.traits().underWay, x.verb) && f.meetsLocked(a) {
			x.add(a)
		}
	}
	return a
}

// heal takes the faults given away, or all.
func (f *faults) heal(which ...*activeFault) {
	f.mu.Lock()
	healed := func(a *activeFault) bool { return len(which) == 0 || slices.Contains(which, a) }
	var gone []*activeFault
	f.active = slices.DeleteFunc(f.active, func(a *activeFault) bool {
		if healed(a) {
			gone = append(gone, a)
		}
		return healed(a)
	})
	for _, x := range f.exchanges {
		x.remove(gone)
	}
	f.mu.Unlock()
	for _, a := range gone {
		if a.replica != nil {
			f.store.dropReplica(a.replica)
		}
	}
}

// enter adds a request with the faults that meet it.
func (f *faults) enter(x *exchange) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, a := range f.active {
		if a.matches(x.inquiry) && f.meetsLocked(a) {
			x.add(a)
		}
	}
	f.exchanges = append(f.exchanges, x)
}

func (f *faults) leave(x *exchange) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if i := slices.Index(f.exchanges, x); i >= 0 {
		f.exchanges = slices.Delete(f.exchanges, i, i+1)
	}
}

// refusesAll reports whether every connection is refused, and counts none.
func (f *faults) refusesAll() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.ContainsFunc(f.active, func(a *activeFault) bool {
		return a.Effect.kind == effectRefuse && a.skipped == a.Skip && a.Times == 0 && a.Odds <= 1
	})
}

// refuses reports whether a connection that arrives is refused.
func (f *faults) refuses() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	refused := false
	for _, a := range f.active {
		if a.Effect.kind == effectRefuse && f.meetsLocked(a) {
			refused = true
		}
	}
	return refused
}
