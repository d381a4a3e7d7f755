// Package shards lets many processes share the work of one fleet. Each process runs a Replica:
//
//	replica, err := shards.New(shards.Config{
//		Client:    clientset.CoordinationV1(), // of the coordinating cluster; its rest.Config without a rate limit: QPS -1
//		Namespace: "mirror",
//		Name:      "mirror",
//		Work:      clusters,                   // a *fleet.Fleet
//	})
//	err = replica.Run(ctx)
//
// The work is made of units (fleet.Unit). Each unit has at most one owner, which runs it. The
// owners agree through Leases in one namespace of one cluster, the coordinating cluster. There is
// no leader, and replicas do not talk to each other.
//
// # Words
//
// A member is a replica whose member Lease is alive. An owner is the member that the Lease of a
// unit names. An epoch is a number that each owner of a unit gets: no two get the same, and it
// grows from owner to owner. A term is the time for which a replica may work: from a renewal of its
// member Lease until the renewal deadline. A unit is uncovered while it has no living owner.
//
// # Leases
//
// Each replica has a member Lease, which client-go's leaderelection renews. Each unit has a Lease
// that is written when its owner changes, and not renewed: its holder is alive as long as the
// member Lease of the holder is. An annotation has the epoch. All writes are conditional on the
// resource version.
//
// A replica starts a unit in four cases only: the unit has no Lease, its Lease names no owner, its
// Lease names this replica, or the member Lease of its holder has expired. Expired means that this
// replica has observed no renewal for the time that the Lease states, by its own monotonic clock,
// and that the API server confirms it. Clocks of different machines are never compared.
//
// # Who owns what
//
// All replicas compute the same plan from the Leases: rendezvous hashing over the members, where no
// member gets more than a quarter above the average, by weight. A member that joins takes its share
// from the others; one that leaves hands its own out. A new member takes part after SettleTime. The
// replica that owns a unit and sees that the plan gives it to another member ends it: it cancels
// the context of RunUnit, waits until RunUnit has returned, and then releases the Lease. The other
// member sees the release in its watch and takes the unit with the next epoch.
//
// Members plan together only if they have the same units. While a configuration is rolled out,
// members with different units leave each other's units alone, and share out what has no owner.
// Units must not overlap, because no epoch fences the owners of two units from each other. A change
// of the shards of a group is safe as far as the Leases show it: a replica does not take a shard
// while another member owns a unit of the same cluster and group that it does not know. Two that
// see nothing owned at the same moment are not kept apart: to change shards or the resources of
// groups, end all replicas first, or have the sink refuse replicas that divide the work in another
// way.
//
// # The sink decides
//
// Leases alone cannot stop a process that was paused in the middle of a write. So each context of
// RunUnit has the epoch (informer.EpochOf, Event.Epoch), and the sink stores one for each unit. A
// new owner claims the unit first: the sink stores its epoch, unless the one that is stored is
// larger, before it loads the checkpoint. Otherwise the owner before it could still save after
// that. Each transaction that writes compares the epochs, and is refused if they differ; StaleEpoch
// is what the handler then returns. What else a sink keeps for the unit, the checkpoint above all,
// needs the same check.
//
// An epoch is above all that the replica has seen of the unit, and begins with the time, by the
// clock of the replica. Its last digits are random. So the epochs of two owners differ, also if the
// Lease is deleted or restored from a backup while one of them is paused. If clocks differ, and no
// replica remembers the epoch of before, the new one may be smaller than that of the sink. Then the
// sink refuses it, StaleEpoch reports the one that is stored, and the owner continues above that.
//
// # When the coordinating cluster fails
//
// Work goes on until the renewal deadline, and no longer: all contexts of RunUnit end RenewDeadline
// after the last renewal was sent that has succeeded. When the API server is back, each replica
// goes on with the units that its Leases still name, under new epochs. While the API server is only
// slow, and answers within a third of RenewDeadline, nothing changes except that handovers take
// longer.
//
// The page docs/replicas.md has the protocol, the guarantees, the permissions that a replica needs,
// and a table of failures.
package shards
