package shards

import (
	"cmp"
	"slices"
	"time"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/fleet"
)

// Status is what a replica knows of the fleet. All times are its own.
type Status struct {
	// Identity is how Leases name this replica.
	Identity string
	// WorkUntil is when work ends unless the member Lease is renewed before; zero if this replica
	// may not work.
	WorkUntil time.Time
	// TermChanged is when this replica was allowed to work, or not any more, for the last time.
	TermChanged time.Time
	// Joined tells that this replica takes part in the plan, or did before: it is known to itself
	// and has settled.
	Joined bool
	// Members are all replicas that have a Lease, sorted by identity, the dead ones included.
	Members []Member
	// Units are all units, sorted.
	Units []Unit
	// Gaps are ranges of hashes that no unit covers, for each group of a cluster that has shards.
	Gaps []fleet.Unit
	// Problems are what this replica tries again at present.
	Problems []Problem
}

// Member is a replica as another one sees it.
type Member struct {
	Identity string
	Alive    bool
	// Planning tells that it gets units: it has settled, does not leave, and has the same units as
	// this replica.
	Planning bool
	// Leaving tells that it takes no units: it stops, or does not see the Leases.
	Leaving bool
	Since   time.Time // when it was seen first, or first again after it had expired
	Renewed time.Time // when its last renewal was seen
	Units   int       // how many it owns
}

// Unit is a unit and its owner.
type Unit struct {
	fleet.Unit
	Lease string // the name of its Lease
	// Owner is the member that its Lease names; empty for nobody.
	Owner string
	Epoch int64
	// Planned is the member that is to own it; empty for nobody.
	Planned string
	Weight  int64 // as published; zero if not known
	// Uncovered tells that it has no living owner.
	Uncovered bool
	// Since is when this replica has seen the present owner, or the unit uncovered, for the first
	// time.
	Since time.Time
	// Tenure is what this replica does with the unit; nil if nothing.
	Tenure *Tenure
}

// Tenure is what a replica does with a unit.
type Tenure struct {
	Phase    Phase
	Since    time.Time
	Epoch    int64 // zero before the Lease is written
	Restarts int   // how often RunUnit was called again
	Err      error // of the last attempt that failed
}

// Uncovered returns the units without a living owner.
func (s Status) Uncovered() []Unit {
	return slices.DeleteFunc(slices.Clone(s.Units), func(u Unit) bool { return !u.Uncovered })
}

// Owned returns the units that this replica owns.
func (s Status) Owned() []Unit {
	return slices.DeleteFunc(slices.Clone(s.Units), func(u Unit) bool { return u.Tenure == nil || u.Tenure.Epoch == 0 })
}

// states are the members and units as of the last look.
type states struct {
	members []Member
	units   []Unit
	gaps    []fleet.Unit
	joined  bool
}

// recordStates keeps for Status what a look has found.
func (d *decider) recordStates(v *view, leases []unitLease) {
	d.Replica.mu.Lock()
	before := make(map[fleet.Unit]Unit, len(d.states.units))
	for _, u := range d.states.units {
		before[u.Unit] = u
	}
	joined := d.states.joined || v.decides()
	d.Replica.mu.Unlock()

	now := states{gaps: gaps(d.units), joined: joined}
	counts := map[string]int{}
	for i, u := range d.units {
		s := v.standing(leases[i])
		unit := Unit{
			Unit: u, Lease: d.names[i], Owner: leases[i].holder, Epoch: leases[i].epoch, Planned: d.plan.owner(i),
			Weight: leases[i].weight, Uncovered: s == unowned || s == dead || s == suspect, Since: v.now,
		}
		if b, ok := before[u]; ok && b.Owner == unit.Owner && b.Uncovered == unit.Uncovered {
			unit.Since = b.Since
		}
		counts[unit.Owner]++
		now.units = append(now.units, unit)
	}
	for _, m := range v.members {
		if m.identity != "" {
			now.members = append(now.members, Member{
				Identity: m.identity, Alive: !m.expired(v.now), Planning: v.plans(m), Leaving: m.leaving,
				Since: m.since, Renewed: m.renewed, Units: counts[m.identity],
			})
		}
	}
	slices.SortFunc(now.members, func(a, b Member) int { return cmp.Compare(a.Identity, b.Identity) })

	d.Replica.mu.Lock()
	defer d.Replica.mu.Unlock()
	d.states = now
}

// Status is a snapshot.
func (r *Replica) Status() Status {
	s := Status{Identity: r.identity}
	s.WorkUntil, s.TermChanged = r.terms.until()
	r.mu.Lock()
	defer r.mu.Unlock()
	s.Members, s.Gaps = slices.Clone(r.states.members), slices.Clone(r.states.gaps)
	s.Units, s.Joined = slices.Clone(r.states.units), r.states.joined
	s.Problems = r.problems.list(time.Now())
	for i := range s.Units {
		if t := r.tenures[s.Units[i].Unit]; t != nil {
			now := t.now()
			s.Units[i].Tenure = &now
		}
	}
	return s
}

// gaps are the ranges that the shards of a group leave out. units are sorted, so that the shards of
// a group follow each other.
func gaps(units []fleet.Unit) []fleet.Unit {
	var found []fleet.Unit
	for len(units) > 0 {
		first := units[0]
		n := slices.IndexFunc(units, func(u fleet.Unit) bool {
			return u.Cluster != first.Cluster || u.Group != first.Group || u.Shard.Key != first.Shard.Key
		})
		if n < 0 {
			n = len(units)
		}
		found = append(found, gapsOf(units[:n])...)
		units = units[n:]
	}
	return found
}

// gapsOf are the gaps in the shards of one group, which are sorted by their start.
func gapsOf(shards []fleet.Unit) []fleet.Unit {
	var found []fleet.Unit
	gap := shards[0]
	gap.Shard = informer.Shard{Key: gap.Shard.Key}
	covered := uint64(0) // all hashes below it
	for _, u := range shards {
		if u.Shard.Start > covered {
			gap.Shard.Start, gap.Shard.End = covered, u.Shard.Start
			found = append(found, gap)
		}
		if u.Shard.End == 0 {
			return found
		}
		covered = max(covered, u.Shard.End)
	}
	gap.Shard.Start, gap.Shard.End = covered, 0
	return append(found, gap)
}
