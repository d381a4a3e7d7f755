package shards

import (
	"context"
	"errors"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/fleet"
	"github.com/rvinformer/informer/internal/leaf/backoff"
)

// The causes with which a tenure ends.
var (
	errMoved   = errors.New("the plan gives the unit to another member")
	errRemoved = errors.New("the unit is gone")
	errLost    = errors.New("another owner has the lease")
	errStopped = errors.New("the replica stops")
	errStale   = errors.New("the sink has a larger epoch")
)

// The pauses before a unit is run again that has ended by itself.
const (
	firstPause   = time.Second
	longestPause = 30 * time.Second
)

// tenure is the time for which this replica owns a unit: from the write that makes it the owner to
// the one that releases it.
type tenure struct {
	unit fleet.Unit
	name string // of the Lease
	from unitLease
	ctx  context.Context // ends with the term, or when the unit is given up
	end  context.CancelCauseFunc

	mu     sync.Mutex
	state  Tenure
	rank   uint64 // of the Lease that states the epoch; zero while this replica writes one
	stored int64  // the largest epoch that the sink has reported
	// halt ends the RunUnit under way.
	halt context.CancelCauseFunc
}

// Phase is what a replica does with a unit that it owns, or takes.
type Phase string

const (
	// Acquiring: the Lease is being written.
	Acquiring Phase = "Acquiring"
	// Running: RunUnit is under way.
	Running Phase = "Running"
	// Waiting: RunUnit has returned by itself, and is called again after a pause.
	Waiting Phase = "Waiting"
	// Ending: RunUnit is to return.
	Ending Phase = "Ending"
	// Releasing: the Lease is being released.
	Releasing Phase = "Releasing"
)

func newTenure(u fleet.Unit, name string, from unitLease, term context.Context) *tenure {
	t := &tenure{unit: u, name: name, from: from, state: Tenure{Phase: Acquiring, Since: time.Now()}}
	t.ctx, t.end = context.WithCancelCause(term)
	return t
}

// giveUp ends the tenure. The first cause counts.
func (t *tenure) giveUp(cause error) {
	if t.ctx.Err() == nil {
		t.end(cause)
		t.enter(Ending)
	}
}

func (t *tenure) enter(phase Phase) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if phase == Ending && t.state.Phase != Running && t.state.Phase != Waiting {
		return // it ends soon
	}
	t.state.Phase, t.state.Since = phase, time.Now()
}

// owns takes note of the Lease that makes this replica the owner.
func (t *tenure) owns(lease rankedLease) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.state.Epoch, t.rank = epochOf(lease.Lease), lease.rank
}

// fail takes note of an error; nil of the end of one.
func (t *tenure) fail(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.state.Err = err
}

func (t *tenure) now() Tenure {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.state
}

// lost reports whether a Lease shows that this replica is not the owner any more.
func (t *tenure) lost(l unitLease, identity string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.rank == 0 || l.rank <= t.rank {
		return false // known before this replica has written it
	}
	return l.deleted || l.holder != identity || l.epoch != t.state.Epoch
}

// serve takes the unit, runs it until the tenure ends, and releases it.
func (t *tenure) serve(work Work, ledger *ledger, weight int64) {
	defer t.end(errStopped)
	lease, err := ledger.acquire(t.ctx, t.unit, t.name, t.from, weight)
	if err != nil {
		t.fail(err)
		return
	}
	t.owns(lease)
	for pauses := t.pauses(); t.ctx.Err() == nil; {
		started := time.Now()
		err := t.run(work)
		if t.ctx.Err() != nil {
			break
		}
		if errors.Is(err, errStale) {
			if !t.raise(ledger) {
				return
			}
			// A sink that does not say which epoch it has may refuse many.
			if time.Since(started) < firstPause && backoff.Sleep(t.ctx, firstPause) != nil {
				break
			}
			continue
		}
		if time.Since(started) > longestPause {
			pauses = t.pauses()
		}
		t.failed(err)
		if backoff.Sleep(t.ctx, pauses.Step()) != nil {
			break
		}
	}
	t.release(ledger)
}

// pauses are those between calls of RunUnit that return by themselves. They go to this replica's
// account: the unit stays here, because a plan that depended on failures would differ from replica
// to replica.
func (t *tenure) pauses() wait.Backoff {
	return wait.Backoff{Duration: firstPause, Cap: longestPause, Steps: 10, Factor: 2, Jitter: 0.2}
}

// run calls RunUnit. The error is errStale if the sink has reported that.
func (t *tenure) run(work Work) error {
	ctx, halt := context.WithCancelCause(t.ctx)
	defer halt(nil)
	t.mu.Lock()
	t.halt, t.stored = halt, 0
	t.mu.Unlock()
	t.enter(Running)
	err := work.RunUnit(context.WithValue(informer.WithEpoch(ctx, t.now().Epoch), staleKey{}, t.stale), t.unit)
	if errors.Is(context.Cause(ctx), errStale) || errors.Is(err, ErrStaleEpoch) {
		return errStale
	}
	return err
}

// stale is called by the handler of a unit whose epoch the sink has refused.
func (t *tenure) stale(stored int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.stored = max(t.stored, stored)
	t.halt(errStale)
}

// failed takes note that RunUnit has returned by itself.
func (t *tenure) failed(err error) {
	if err == nil {
		err = errors.New("RunUnit has returned before its context has ended")
	}
	t.mu.Lock()
	t.state.Err = err
	t.state.Restarts++
	t.mu.Unlock()
	t.enter(Waiting)
}

// raise gives the unit an epoch above what the sink has stored, and reports false if this replica
// is not the owner, or the tenure ends.
func (t *tenure) raise(ledger *ledger) bool {
	t.mu.Lock()
	epoch, stored := t.state.Epoch, t.stored
	t.state.Restarts++
	t.state.Err = ErrStaleEpoch
	t.rank = 0
	t.mu.Unlock()
	t.enter(Waiting)
	ledger.stale.Add(1)
	for t.ctx.Err() == nil {
		lease, err := ledger.raise(t.ctx, t.name, epoch, stored)
		switch {
		case err == nil:
			t.owns(lease)
			return true
		case errors.As(err, new(errNotOwner)):
			t.giveUp(errLost)
			return false
		}
		t.fail(err)
		if backoff.Sleep(t.ctx, firstPause) != nil {
			break
		}
	}
	t.release(ledger)
	return false
}

// release gives the unit back after RunUnit has returned, so that another replica need not wait for
// this one to expire. When the term is over, the unit is kept: the next term goes on with it,
// unless another replica has taken it by then. A Lease that seems lost may only have lost its
// labels. It gives up when no unit could be released in time.
func (t *tenure) release(ledger *ledger) {
	if errors.Is(context.Cause(t.ctx), errTermOver) {
		return
	}
	t.enter(Releasing)
	term := ledger.mayRelease()
	for conflicts := 0; term != nil && term.ctx.Err() == nil; {
		err := ledger.release(term.ctx, t.name, t.now().Epoch)
		if err == nil || errors.As(err, new(errNotOwner)) {
			ledger.mayRelease()
			return
		}
		t.fail(err)
		if apierrors.IsConflict(err) {
			conflicts++
		}
		isRace := apierrors.IsConflict(err) && conflicts < manyConflicts
		if !isRace {
			_ = backoff.Sleep(term.ctx, firstPause/2)
		}
	}
}
