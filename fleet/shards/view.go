package shards

import (
	"fmt"
	"slices"
	"time"

	"github.com/rvinformer/informer/fleet"
)

// view is what a replica knows when it decides. Decisions are functions of it alone.
type view struct {
	now      time.Time
	identity string
	name     string // of the own member Lease
	digest   string // of the own units
	settle   time.Duration
	fresh    time.Duration // how long the watch may not show the own Lease
	// termSince is when the term has begun; zero without a term.
	termSince time.Time
	members   map[string]memberLease
	fleetName string
	// elsewhere are the clusters and groups (resourcesOf) of units that this replica does not have,
	// and whose owners are alive.
	elsewhere map[string]bool
}

// lookElsewhere finds the units that overlap with those of this replica: they are of the same
// cluster and group in other shards, because another configuration is being rolled out. known are
// the names of the Leases of this replica's units.
func (v *view) lookElsewhere(leases map[string]unitLease, known map[string]bool) {
	v.elsewhere = map[string]bool{}
	for name, l := range leases {
		if s := v.standing(l); !known[name] && s != unowned && s != dead {
			v.elsewhere[resourcesOf(l.text)] = true
		}
	}
}

// standing is how a unit's owner stands, as this replica sees it.
type standing int

const (
	unowned standing = iota // no Lease, or nobody's
	mine                    // the Lease names this replica
	living                  // the owner is alive
	suspect                 // the owner has expired, and the API server has not confirmed that
	dead                    // the owner has expired
)

// standing returns how the owner of a unit stands.
func (v *view) standing(l unitLease) standing {
	switch l.holder {
	case "":
		return unowned
	case v.identity:
		return mine
	}
	m, known := v.members[memberName(v.fleetName, l.holder)]
	switch {
	case known && !m.expired(v.now):
		return living
	case known && m.dead:
		return dead
	}
	return suspect
}

// plans reports whether a member takes part in the plan: it is alive, has been for a while, stays,
// and knows the same units.
func (v *view) plans(m memberLease) bool {
	return !m.expired(v.now) && !m.leaving && !m.deleted && m.units == v.digest && m.renewals > 0 && v.now.Sub(m.since) >= v.settle
}

// decides reports whether this replica takes part in the plan, and sees what the others do. One
// that has just come, or whose watch lags, keeps what it has and takes nothing.
func (v *view) decides() bool {
	own, ok := v.members[v.name]
	return ok && v.plans(own) && !v.blind() &&
		!v.termSince.IsZero() && v.now.Sub(v.termSince) >= v.settle
}

// blind reports whether the watch has not shown the renewals of this replica for too long.
func (v *view) blind() bool {
	return v.now.Sub(v.members[v.name].watched) >= v.fresh
}

// planners are the identities of the members that take part in the plan, sorted.
func (v *view) planners() []string {
	var planners []string
	for _, m := range v.members {
		if v.plans(m) {
			planners = append(planners, m.identity)
		}
	}
	slices.Sort(planners)
	return planners
}

// double names the problem of a replica whose Identity another one that runs has too.
const double = "having an Identity of its own"

// double returns an error if another process has the same Identity, and has renewed its Lease since this
// one sees it. One that was started again in its place does not count: its Lease was released, or is not
// renewed any more.
func (v *view) double() error {
	other := ""
	for name, m := range v.members {
		if name != v.name && m.renewals > 1 && !m.leaving && !m.expired(v.now) && baseOf(m.identity) == baseOf(v.identity) {
			other = max(other, m.identity)
		}
	}
	if other == "" {
		return nil
	}
	return fmt.Errorf("another replica that runs has the Identity %q too, and is %s in the Leases", baseOf(v.identity), other)
}

// next is when the view changes by itself: a member expires or has settled.
func (v *view) next() time.Time {
	next := v.now.Add(time.Minute)
	soonest := func(t time.Time) {
		if t.After(v.now) && t.Before(next) {
			next = t
		}
	}
	for _, m := range v.members {
		if m.identity == "" || m.dead {
			continue
		}
		soonest(m.expires())
		soonest(m.since.Add(v.settle))
	}
	soonest(v.members[v.name].watched.Add(v.fresh))
	if !v.termSince.IsZero() {
		soonest(v.termSince.Add(v.settle))
	}
	return next
}

// action is what to do about a unit that this replica does not run.
type action int

const (
	leave   action = iota
	take           // become its owner
	free           // release its Lease, which names this replica
	confirm        // ask the API server whether its owner is dead
)

// about decides about a unit that this replica does not run. planned is who is to own it; empty for
// nobody.
func (v *view) about(u fleet.Unit, l unitLease, planned string) action {
	decides := v.decides()
	standing := v.standing(l)
	if standing != mine && v.elsewhere[resourcesOf(unitText(u))] {
		return leave // nothing fences the owners of two units that overlap from each other
	}
	switch standing {
	case mine:
		if decides && planned != "" && planned != v.identity {
			return free
		}
		return take // it was this replica's before the term, or the write that took it seemed to fail
	case unowned, dead:
		if decides && planned == v.identity {
			return take
		}
	case suspect:
		if decides && planned == v.identity {
			return confirm
		}
	}
	return leave
}

// plan is who is to own what, computed anew only when something in it changes.
type plan struct {
	members []string
	loads   []load
	owners  []int
}

// update computes the plan for members and for units with their Leases.
func (p *plan) update(members []string, units []fleet.Unit, leases []unitLease) {
	loads := loadsOf(units, leases)
	if slices.Equal(members, p.members) && slices.Equal(loads, p.loads) {
		return
	}
	*p = plan{members: members, loads: loads, owners: share(members, loads)}
}

// owner is who is to own the unit at a place; empty for nobody.
func (p *plan) owner(i int) string {
	if p.owners[i] == nobody {
		return ""
	}
	return p.members[p.owners[i]]
}

// loadsOf are units with their published weights. One whose weight is not known counts as the
// average of the others.
func loadsOf(units []fleet.Unit, leases []unitLease) []load {
	var sum, known int64
	for _, l := range leases {
		if l.weight > 0 {
			sum += rounded(l.weight)
			known++
		}
	}
	average := rounded(max(1, sum/max(1, known)))
	loads := make([]load, len(units))
	for i, u := range units {
		loads[i] = load{text: u.String(), weight: average}
		if w := rounded(leases[i].weight); w > 0 {
			loads[i].weight = w
		}
	}
	return loads
}
