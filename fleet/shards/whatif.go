package shards

import (
	"github.com/rvinformer/informer/fleet"
)

// Plan returns the identity of the member that is to own each unit, as replicas decide that plan
// together. The members are named by the Identity of their Config. A nil weight means that all
// units weigh the same, and one of zero is not known. Without identities, all owners are empty.
//
// It is for what-if questions: how evenly a fleet is shared, and what moves when members come or
// go.
func Plan(identities []string, units []fleet.Unit, weight func(fleet.Unit) int64) []string {
	leases := make([]unitLease, len(units))
	for i, u := range units {
		if weight != nil {
			leases[i].weight = weight(u)
		}
	}
	members := make([]string, len(identities))
	for i, identity := range identities {
		members[i] = identity + "_" // as a process of it is called, without what tells processes apart
	}
	owners := make([]string, len(units))
	for i, place := range share(members, loadsOf(units, leases)) {
		if place != nobody {
			owners[i] = identities[place]
		}
	}
	return owners
}

// Times returns the configuration with the times that a replica uses: the defaults where they are
// zero. The error says which of them cannot be.
func (c Config) Times() (Config, error) { return c.completeTimes() }
