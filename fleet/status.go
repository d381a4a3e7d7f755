package fleet

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/rvinformer/informer"
)

// Cluster is how a cluster of a fleet is.
type Cluster struct {
	// Name is that of Add, and Server the address.
	Name, Server string
	// State is how its discovery is, since Since.
	State ClusterState
	Since time.Time
	// Discovered is when a discovery was last answered, zero before.
	Discovered time.Time
	// Missing are errors for what the groups name and the cluster lacks, and for what could not be
	// discovered.
	Missing []error
	// LastError is why the last discovery failed or, if it did not, what is wrong with a target (a
	// *TargetError) or what Known returned (a *UnitError), and LastErrorTime when the discovery
	// failed. It is nil again after a success.
	LastError     error
	LastErrorTime time.Time
	// Units counts the units that are followed here, Informers their informers, and SyncedInformers
	// those that have synced.
	Units, Informers, SyncedInformers int
	// Synced tells that units are followed and that everything that they follow has synced. A
	// target that has failed to get an informer has not.
	Synced bool
}

// Clusters returns how the clusters are, sorted by name.
func (f *Fleet) Clusters() []Cluster {
	f.mu.Lock()
	defer f.mu.Unlock()
	clusters := make([]Cluster, 0, len(f.clusters))
	for _, c := range f.clusters {
		clusters = append(clusters, c.statusLocked())
	}
	slices.SortFunc(clusters, func(a, b Cluster) int { return strings.Compare(a.Name, b.Name) })
	return clusters
}

// Cluster returns how a cluster is; false if there is none of that name.
func (f *Fleet) Cluster(name string) (Cluster, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	c := f.clusters[name]
	if c == nil {
		return Cluster{}, false
	}
	return c.statusLocked(), true
}

func (c *cluster) statusLocked() Cluster {
	s := Cluster{
		Name: c.name, Server: c.host, State: c.log.state, Since: c.log.since, Discovered: c.log.answered,
		LastError: c.log.err, LastErrorTime: c.log.failed, Units: len(c.units), Synced: c.hasSyncedLocked(),
	}
	for _, u := range slices.SortedFunc(maps.Values(c.units), func(a, b *run) int { return a.unit.Compare(b.unit) }) {
		for _, err := range u.missing {
			if !slices.ContainsFunc(s.Missing, func(other error) bool { return other.Error() == err.Error() }) {
				s.Missing = append(s.Missing, err)
			}
		}
		s.LastError = cmp.Or(s.LastError, u.err)
		for _, name := range sortedNames(u.subscriptions) {
			sub := u.subscriptions[name]
			s.LastError = cmp.Or(s.LastError, sub.err)
			if sub.lease == nil {
				continue
			}
			s.Informers++
			if closed(sub.lease.Informer.HasSyncedChecker().Done()) {
				s.SyncedInformers++
			}
		}
	}
	return s
}

// HasSynced reports whether the clusters of these names, or all if there are none, have synced: see
// Cluster.Synced.
func (f *Fleet) HasSynced(names ...string) bool {
	first, err := f.firstUnsynced(names)
	return first == nil && err == nil
}

// WaitForSync waits until the clusters of these names, or all if there are none, have synced: see
// Cluster.Synced. It includes clusters that are added while it waits, unless there are names, and
// does not wait for those that are removed.
//
// The error wraps the cause of ctx, and says what has not synced, and why. It wraps ErrNoCluster if
// there is no cluster of a name.
func (f *Fleet) WaitForSync(ctx context.Context, names ...string) error {
	for {
		c, err := f.firstUnsynced(names)
		if c == nil {
			return err
		}
		if err := c.wait(ctx); err != nil {
			return f.whyUnsynced(err, names)
		}
	}
}

// wait waits until the cluster has synced, or is removed. The error is the cause of ctx.
func (c *cluster) wait(ctx context.Context) error {
	for {
		synced, moved := c.awaited()
		if moved == nil {
			return nil
		}
		select {
		case <-synced:
		case <-moved:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// awaited returns what to wait for until the cluster has synced: one of its informers, and other
// changes. Both are nil if there is nothing to wait for.
func (c *cluster) awaited() (synced, moved <-chan struct{}) {
	c.fleet.mu.Lock()
	defer c.fleet.mu.Unlock()
	if c.gone {
		return nil, nil
	}
	for u := range c.unsyncedLocked {
		return u.synced, c.fleet.moved
	}
	return nil, nil
}

// firstUnsynced returns a cluster of names that has not synced, nil if there is none.
func (f *Fleet) firstUnsynced(names []string) (*cluster, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	selected, err := f.selectLocked(names)
	for _, c := range selected {
		if !c.hasSyncedLocked() {
			return c, nil
		}
	}
	return nil, err
}

// selectLocked returns the clusters of names, or all if there are none.
func (f *Fleet) selectLocked(names []string) (selected []*cluster, err error) {
	if len(names) == 0 {
		return slices.Collect(maps.Values(f.clusters)), nil
	}
	for _, name := range names {
		c := f.clusters[name]
		if c == nil {
			return nil, &ClusterError{Cluster: name, Err: ErrNoCluster}
		}
		selected = append(selected, c)
	}
	return selected, nil
}

// whyUnsynced is the error for what has not synced when a wait ends.
func (f *Fleet) whyUnsynced(cause error, names []string) error {
	const most = 10 // reasons in an error
	f.mu.Lock()
	selected, err := f.selectLocked(names)
	var all []unsynced
	for _, c := range selected {
		all = slices.AppendSeq(all, c.unsyncedLocked)
	}
	f.mu.Unlock()
	if len(all) == 0 {
		return err
	}
	slices.SortFunc(all, func(a, b unsynced) int { return strings.Compare(a.what.String(), b.what.String()) })
	var whys []string
	for _, u := range all[:min(most, len(all))] {
		whys = append(whys, u.String())
	}
	if more := len(all) - most; more > 0 {
		whys = append(whys, fmt.Sprintf("and %d more", more))
	}
	return fmt.Errorf("fleet: not synced: %w: %s", cause, strings.Join(whys, "; "))
}

// unsynced is something that has not synced.
type unsynced struct {
	// what is a cluster, a Unit or a Target.
	what fmt.Stringer
	// informer is nil where there is none, and err says why.
	informer informer.ResourceVersionInformer
	err      error
	// synced is closed when it has; nil where another change has to come before.
	synced <-chan struct{}
}

func (u unsynced) String() string {
	why := u.err
	if u.informer != nil {
		condition := u.informer.Status().Condition
		why = fmt.Errorf("%s: %s", condition.Reason, condition.Message)
	}
	return fmt.Sprintf("%v: %v", u.what, why)
}

func (c *cluster) String() string { return c.name }

var errNotFollowed = errors.New("no unit of it is followed")

func (c *cluster) hasSyncedLocked() bool {
	for range c.unsyncedLocked {
		return false
	}
	return true
}

// unsyncedLocked yields what has not synced of the cluster.
func (c *cluster) unsyncedLocked(yield func(unsynced) bool) {
	if len(c.units) == 0 {
		yield(unsynced{what: c, err: errNotFollowed})
		return
	}
	for _, r := range c.units {
		for u := range r.unsyncedLocked {
			if !yield(u) {
				return
			}
		}
	}
}

// unsyncedLocked yields what has not synced of the unit.
func (r *run) unsyncedLocked(yield func(unsynced) bool) {
	if !r.followed {
		why := r.cluster.log.err
		if why == nil {
			why = errors.New(r.cluster.log.state.String())
		}
		yield(unsynced{what: r.unit, err: why})
		return
	}
	if r.err != nil && !yield(unsynced{what: r.unit, err: r.err}) {
		return
	}
	for _, sub := range r.subscriptions {
		if u, is := sub.unsynced(); is && !yield(u) {
			return
		}
	}
}

// unsynced returns the subscription if it has not synced. One that ends, or parts, is not waited
// for.
func (sub *subscription) unsynced() (u unsynced, is bool) {
	switch sub.stage {
	case failed:
		return unsynced{what: sub.target, err: sub.err}, true
	case following:
		synced := sub.lease.Informer.HasSyncedChecker().Done()
		return unsynced{what: sub.target, informer: sub.lease.Informer, synced: synced}, !closed(synced)
	}
	return unsynced{}, false
}
