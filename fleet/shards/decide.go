package shards

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/rvinformer/informer/fleet"
	"github.com/rvinformer/informer/internal/leaf/backoff"
)

const (
	// gather is how long changes are gathered before they are looked at, because they come in
	// crowds.
	gather = 10 * time.Millisecond
	// discardAfter is after how many lease durations the Lease of a dead member is deleted.
	discardAfter = 10
)

// decider is what Replica.decide keeps from one look to the next.
type decider struct {
	*Replica
	life     context.Context
	beside   sync.WaitGroup // tenures and chores
	stopping bool
	plan     plan
	units    []fleet.Unit
	names    []string        // of the Leases of units
	known    map[string]bool // the same names
	digest   string
	weighed  time.Time

	mu       sync.Mutex
	attempts map[string]attempt // by the name of what is done
}

// attempt is something that is done beside the decisions, or that has failed: a chore, or the taking of
// a unit.
type attempt struct {
	underWay  bool
	conflicts int       // in a row
	retry     time.Time // when it may be tried again
}

// manyConflicts in a row are no race.
const manyConflicts = 3

// decide looks at everything whenever something has changed, until ctx has ended and all units are
// given up.
func (r *Replica) decide(ctx, life context.Context) {
	life, end := context.WithCancel(life)
	d := &decider{Replica: r, life: life, weighed: time.Now(), attempts: map[string]attempt{}}
	defer d.beside.Wait()
	defer end() // no chore matters any more
	stop := ctx.Done()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		changed := r.config.Work.Changed()
		next, over := d.look()
		if over {
			return
		}
		timer.Reset(time.Until(next))
		select {
		case <-r.wake:
		case <-changed:
		case <-timer.C:
		case <-stop:
			stop, d.stopping = nil, true
			continue
		}
		_ = backoff.Sleep(life, gather)
	}
}

// look decides about all units, and returns when to look again if nothing happens until then. It is
// over when the replica stops and has no units any more.
func (d *decider) look() (next time.Time, over bool) {
	d.readUnits()
	members, leases, synced := d.seen.snapshot()
	v := &view{
		now: time.Now(), identity: d.identity, name: d.member.name, digest: d.digest, settle: d.config.SettleTime,
		fresh: d.config.RenewDeadline, members: members, fleetName: d.config.Name,
	}
	term := d.terms.get()
	if term != nil {
		v.termSince = term.since
	}
	ofUnits := make([]unitLease, len(d.units))
	for i := range d.units {
		ofUnits[i] = leases[d.names[i]]
	}
	d.problem(double, v.double())
	d.plan.update(v.planners(), d.units, ofUnits)

	v.lookElsewhere(leases, d.known)

	own := d.ownTenures()
	d.endTenures(v, own, leases)
	if d.stopping && len(own) == 0 {
		return next, true
	}
	next = v.next()
	if synced && term != nil && !d.stopping {
		d.begin(v, term, own, ofUnits)
		next = d.readAgain(v, leases, next)
		d.freeUnknown(own, leases)
		d.weigh(v.now, own, leases)
		d.discard(v, leases)
	}
	d.announce(members[d.member.name], d.stopping || term != nil && v.blind())
	d.recordStates(v, ofUnits)
	return d.earliestRetry(v.now, next), false
}

// readUnits asks the Work for its units.
func (d *decider) readUnits() {
	units := slices.Clone(d.config.Work.Units())
	slices.SortFunc(units, fleet.Unit.Compare)
	units = slices.Compact(units)
	if d.digest == "" || !slices.Equal(units, d.units) {
		d.units, d.digest = units, unitsDigest(units)
		d.names, d.known = make([]string, len(units)), make(map[string]bool, len(units))
		for i, u := range units {
			d.names[i] = unitName(d.config.Name, u)
			d.known[d.names[i]] = true
		}
	}
}

func (d *decider) ownTenures() map[fleet.Unit]*tenure {
	d.Replica.mu.Lock()
	defer d.Replica.mu.Unlock()
	return maps.Clone(d.tenures)
}

// endTenures gives up what this replica is not to own any more.
func (d *decider) endTenures(v *view, own map[fleet.Unit]*tenure, leases map[string]unitLease) {
	planned := make(map[fleet.Unit]string, len(d.units))
	for i, u := range d.units {
		planned[u] = d.plan.owner(i)
	}
	decides := v.decides()
	for u, t := range own {
		owner, exists := planned[u]
		switch {
		case t.lost(leases[t.name], d.identity):
			t.giveUp(errLost)
		case d.stopping:
			t.giveUp(errStopped)
		case !exists:
			t.giveUp(errRemoved)
		case decides && owner != "" && owner != d.identity:
			t.giveUp(errMoved)
		}
	}
}

// begin starts a tenure for each unit that this replica is to take.
func (d *decider) begin(v *view, term *term, own map[fleet.Unit]*tenure, leases []unitLease) {
	for i, u := range d.units {
		if own[u] != nil {
			continue
		}
		name, l := d.names[i], leases[i]
		switch v.about(u, l, d.plan.owner(i)) {
		case take:
			if d.claim(taking(u)) {
				d.start(newTenure(u, name, l, term.ctx), rounded(d.config.Weight(u)))
			}
		case free:
			d.free(l)
		case confirm:
			holder := memberName(d.config.Name, l.holder)
			known := v.members[holder]
			d.chore("confirming that "+l.holder+" has expired", func(ctx context.Context) error { return d.ledger.confirm(ctx, holder, known) })
		}
	}
}

// taking is the name of the attempt to take a unit.
func taking(u fleet.Unit) string { return "taking " + u.String() }

// start runs a tenure beside.
func (d *decider) start(t *tenure, weight int64) {
	d.Replica.mu.Lock()
	d.tenures[t.unit] = t
	d.Replica.mu.Unlock()
	d.beside.Go(func() {
		t.serve(d.config.Work, d.ledger, weight)
		d.ended(t)
	})
}

// ended forgets a tenure after it has ended.
func (d *decider) ended(t *tenure) {
	now := t.now()
	d.Replica.mu.Lock()
	delete(d.tenures, t.unit)
	d.Replica.mu.Unlock()
	name := taking(t.unit)
	switch {
	case now.Epoch > 0:
		d.problem(name, nil)
		d.succeeded(name)
	case apierrors.IsConflict(now.Err) || apierrors.IsAlreadyExists(now.Err):
		// Another replica was faster, as the watch will show.
		if d.failed(name, 1, d.config.RetryPeriod/4) >= manyConflicts {
			d.problem(name, now.Err)
		}
	default:
		d.problem(name, now.Err)
		d.failed(name, 0, d.config.RetryPeriod/2)
	}
	d.awake()
}

// readAgain reads Leases again where the watch has not shown in time what this replica has read or
// written, or has shown something else.
func (d *decider) readAgain(v *view, leases map[string]unitLease, next time.Time) time.Time {
	look := func(name string, k knowledge) {
		switch {
		case k.reread.IsZero():
		case k.reread.After(v.now):
			next = earlier(next, k.reread)
		default:
			d.chore("reading lease "+name, func(ctx context.Context) error { return d.ledger.readAgain(ctx, name) })
		}
	}
	for name, l := range leases {
		look(name, l.knowledge)
	}
	for name, m := range v.members {
		look(name, m.knowledge)
	}
	return next
}

// free releases a Lease that names this replica, which does not run the unit.
func (d *decider) free(l unitLease) {
	d.chore("releasing "+l.text, func(ctx context.Context) error { return d.ledger.release(ctx, l.name, l.epoch) })
}

// freeUnknown releases Leases of units that are no more.
func (d *decider) freeUnknown(own map[fleet.Unit]*tenure, leases map[string]unitLease) {
	for name, l := range leases {
		if l.holder == d.identity && !d.known[name] && !ownsLease(own, name) {
			d.free(l)
		}
	}
}

func ownsLease(own map[fleet.Unit]*tenure, name string) bool {
	for _, t := range own {
		if t.name == name {
			return true
		}
	}
	return false
}

// weigh publishes weights that have changed.
func (d *decider) weigh(now time.Time, own map[fleet.Unit]*tenure, leases map[string]unitLease) {
	if now.Sub(d.weighed) < weighEvery {
		return
	}
	d.weighed = now
	for u, t := range own {
		weight := d.config.Weight(u)
		now := t.now()
		if now.Phase == Running && differs(weight, leases[t.name].weight) {
			d.chore("weighing "+u.String(), func(ctx context.Context) error { return d.ledger.weigh(ctx, t.name, now.Epoch, rounded(weight)) })
		}
	}
}

// discard deletes the Leases of members that are long dead and own nothing, which the first of the
// planners does, and forgets such members once they have no Lease.
func (d *decider) discard(v *view, leases map[string]unitLease) {
	first := v.decides() && len(d.plan.members) > 0 && d.plan.members[0] == d.identity
	owners := make(map[string]bool)
	for _, l := range leases {
		owners[memberName(d.config.Name, l.holder)] = true
	}
	for name, m := range v.members {
		if owners[name] || v.now.Sub(m.renewed) <= discardAfter*max(m.duration, d.config.LeaseDuration) {
			continue
		}
		switch {
		case m.deleted:
			d.seen.drop(name)
		case first:
			d.chore("deleting the lease of the dead member "+m.identity, func(ctx context.Context) error { return d.ledger.discard(ctx, m) })
		}
	}
}

// announce writes into the member Lease what the other members must know. One that is blind renews
// its Lease, and would not see what is free for it: it says so, and the others do not wait for it.
func (d *decider) announce(own memberLease, leaving bool) {
	d.member.announce(map[string]string{labelUnits: d.digest, labelLeaving: strconv.FormatBool(leaving)})
	if own.version == "" || own.units == d.digest && own.leaving == leaving {
		return
	}
	d.chore("announcing", func(ctx context.Context) error {
		from := d.seen.asking()
		lease, err := d.member.announceNow(ctx)
		if lease != nil {
			d.seen.note(lease, from)
		}
		return err
	})
}

// chore does something beside, unless it is under way or has failed just now.
func (d *decider) chore(name string, do func(ctx context.Context) error) {
	if !d.claim(name) {
		return
	}
	d.beside.Go(func() {
		err := do(d.life)
		if err == nil || d.life.Err() == nil {
			d.problem(name, err)
		}
		if err == nil {
			d.succeeded(name)
		} else {
			d.failed(name, 0, d.config.RetryPeriod/2)
		}
		d.awake()
	})
}

// claim begins an attempt, unless it is under way or has failed just now.
func (d *decider) claim(name string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	a := d.attempts[name]
	if a.underWay || a.retry.After(time.Now()) {
		return false
	}
	a.underWay = true
	d.attempts[name] = a
	return true
}

func (d *decider) succeeded(name string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.attempts, name)
}

// failed ends an attempt that may be tried again after a pause. It returns how many conflicts there
// were in a row, with those of this attempt.
func (d *decider) failed(name string, conflicts int, pause time.Duration) (inARow int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	inARow = d.attempts[name].conflicts + conflicts
	d.attempts[name] = attempt{conflicts: inARow, retry: time.Now().Add(pause)}
	return inARow
}

// earliestRetry is next, or when an attempt may be made again before it. It forgets what was not tried
// again when it could have been.
func (d *decider) earliestRetry(now, next time.Time) time.Time {
	d.mu.Lock()
	defer d.mu.Unlock()
	for name, a := range d.attempts {
		switch {
		case a.retry.After(now):
			next = earlier(next, a.retry)
		case !a.underWay:
			delete(d.attempts, name)
		}
	}
	return next
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}
