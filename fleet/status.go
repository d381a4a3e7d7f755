package fleet

import (
	"cmp"
	"context"
	"errors"
	"fmt"
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
	// Missing are errors for what the groups name and the cluster lacks, and for what could not be discovered.
	Missing []error
	// LastError is why the last discovery failed or, if it did not, why a target has no informer (a *TargetError) or what Known returned (a *UnitError), and LastErrorTime when the discovery
	// failed. It is nil again after a success.
	LastError     error
	LastErrorTime time.Time
	// Units counts the units that are followed here, Informers their informers, and SyncedInformers those that have synced.
	Units, Informers, SyncedInformers int
	// Synced tells that units are followed and that all that they follow has synced, what has failed to get an informer included.
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
		Name: c.name, Server: c.config.Host, State: c.log.state, Since: c.log.since, Discovered: c.log.answered,
		LastError: c.log.err, LastErrorTime: c.log.failed, Units: len(c.units), Synced: c.unsyncedLocked() == nil,
	}
	for _, u := range sortedRuns(c.units) {
		for _, err := range u.missing {
			if !slices.ContainsFunc(s.Missing, func(other error) bool { return other.Error() == err.Error() }) {
				s.Missing = append(s.Missing, err)
			}
		}
		s.LastError = cmp.Or(s.LastError, u.err)
		for _, name := range sortedNames(u.feeds) {
			fd := u.feeds[name]
			s.LastError = cmp.Or(s.LastError, fd.err)
			if fd.lease == nil {
				continue
			}
			s.Informers++
			if closed(fd.lease.Informer.HasSyncedChecker().Done()) {
				s.SyncedInformers++
			}
		}
	}
	return s
}

func sortedRuns(units map[Unit]*run) []*run {
	runs := make([]*run, 0, len(units))
	for _, r := range units {
		runs = append(runs, r)
	}
	slices.SortFunc(runs, func(a, b *run) int { return a.unit.Compare(b.unit) })
	return runs
}

// HasSynced reports whether the clusters of these names, or all if there are none, have synced: see Cluster.Synced.
func (f *Fleet) HasSynced(names ...string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	unsynced, _ := f.unsyncedLocked(names, true)
	return len(unsynced) == 0
}

// WaitForSync waits until the clusters of these names, or all if there are none, have synced: see Cluster.Synced. It includes clusters that are added
// while it waits, unless there are names, and does not wait for those that are removed.
//
// The error wraps the cause of ctx, and says what has not synced, and why. It wraps ErrNoCluster if there is no cluster of a name.
func (f *Fleet) WaitForSync(ctx context.Context, names ...string) error {
	for {
		f.mu.Lock()
		moved := f.moved
		unsynced, err := f.unsyncedLocked(names, false)
		f.mu.Unlock()
		if err != nil || len(unsynced) == 0 {
			return err
		}
		select {
		case <-moved:
		case <-unsynced[0].synced:
		case <-ctx.Done():
			return f.whyUnsynced(context.Cause(ctx), names)
		}
	}
}

// whyUnsynced is the error for what has not synced when a wait ends.
func (f *Fleet) whyUnsynced(cause error, names []string) error {
	const most = 10 // reasons in an error
	f.mu.Lock()
	unsynced, err := f.unsyncedLocked(names, false)
	f.mu.Unlock()
	if err != nil || len(unsynced) == 0 {
		return err
	}
	var whys []string
	for _, u := range unsynced[:min(most, len(unsynced))] {
		whys = append(whys, u.String())
	}
	if more := len(unsynced) - most; more > 0 {
		whys = append(whys, fmt.Sprintf("and %d more", more))
	}
	return fmt.Errorf("fleet: not synced: %w: %s", cause, strings.Join(whys, "; "))
}

// unsyncedLocked returns what has not synced of the clusters of names; only the first of it will do if first is true.
func (f *Fleet) unsyncedLocked(names []string, first bool) (all []unsynced, err error) {
	for _, name := range names {
		if f.clusters[name] == nil {
			return nil, &ClusterError{Cluster: name, Err: ErrNoCluster}
		}
	}
	for name, c := range f.clusters {
		if len(names) > 0 && !slices.Contains(names, name) {
			continue
		}
		all = append(all, c.unsyncedLocked()...)
		if first && len(all) > 0 {
			break
		}
	}
	slices.SortFunc(all, func(a, b unsynced) int { return strings.Compare(a.what, b.what) })
	return all, nil
}

// unsynced is something that has not synced.
type unsynced struct {
	what string
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
	return fmt.Sprintf("%s: %v", u.what, why)
}

func (c *cluster) unsyncedLocked() (all []unsynced) {
	if len(c.units) == 0 {
		return []unsynced{{what: c.name, err: errors.New("no unit of it is followed")}}
	}
	for _, r := range c.units {
		all = append(all, r.unsyncedLocked()...)
	}
	return all
}

func (r *run) unsyncedLocked() (all []unsynced) {
	if !r.followed {
		why := r.cluster.log.err
		if why == nil {
			why = errors.New(r.cluster.log.state.String())
		}
		return []unsynced{{what: r.unit.String(), err: why}}
	}
	if r.err != nil {
		all = append(all, unsynced{what: r.unit.String(), err: r.err})
	}
	for _, fd := range r.feeds {
		switch {
		case fd.stage == failed:
			all = append(all, unsynced{what: fd.target.String(), err: fd.err})
		case fd.stage == following && !closed(fd.lease.Informer.HasSyncedChecker().Done()):
			all = append(all, unsynced{what: fd.target.String(), informer: fd.lease.Informer, synced: fd.lease.Informer.HasSyncedChecker().Done()})
		}
	}
	return all
}
