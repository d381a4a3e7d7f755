package fleet

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/klog/v2"

	"github.com/rvinformer/informer/internal/leaf/backoff"
	"github.com/rvinformer/informer/internal/leaf/failure"
)

// Run follows all units of the fleet, as clusters come and go, until ctx ends. It returns after the
// last call of a handler has returned and checkpoints are saved. A unit that RunUnit follows is
// left to it.
func (f *Fleet) Run(ctx context.Context) {
	var running sync.WaitGroup
	defer running.Wait()
	over := make(chan struct{}, 1)
	for {
		changed, runs := f.beginAll(ctx)
		for _, r := range runs {
			running.Go(func() {
				_ = r.follow() // that the cluster was removed, or that ctx has ended
				select {
				case over <- struct{}{}:
				default:
				}
			})
		}
		select {
		case <-changed:
		case <-over:
		case <-ctx.Done():
			return
		}
	}
}

// RunUnit follows a unit until ctx ends. It returns after the last call of a handler has returned
// and checkpoints are saved. The informers run with the values of ctx, so that an epoch
// (informer.WithEpoch) is in the context of each batch.
//
// It returns nil when ctx has ended, and otherwise a *UnitError: of ErrNoUnit, of ErrUnitRunning,
// or of ErrRemoved when the cluster was removed meanwhile, as it also was if it is in the fleet
// again.
func (f *Fleet) RunUnit(ctx context.Context, u Unit) error {
	r, err := f.begin(ctx, u)
	if err == nil {
		err = r.follow()
	}
	if err != nil {
		return &UnitError{Unit: u, Err: err}
	}
	return nil
}

func (f *Fleet) begin(ctx context.Context, u Unit) (*run, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.beginLocked(ctx, u)
}

// beginAll begins all units that nobody runs.
func (f *Fleet) beginAll(ctx context.Context) (changed <-chan struct{}, runs []*run) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if ctx.Err() != nil {
		return f.changed, nil
	}
	for _, u := range f.unitsLocked() {
		if r, err := f.beginLocked(ctx, u); err == nil {
			runs = append(runs, r)
		}
	}
	return f.changed, runs
}

func (f *Fleet) beginLocked(ctx context.Context, u Unit) (*run, error) {
	c, g := f.clusters[u.Cluster], f.groupOf(u)
	switch {
	case c == nil || g == nil:
		return nil, ErrNoUnit
	case c.units[u] != nil:
		return nil, ErrUnitRunning
	}
	r := &run{unit: u, group: g, cluster: c, subscriptions: map[schema.GroupResource]*subscription{}, awake: make(chan struct{}, 1)}
	r.ctx, r.cancel = context.WithCancel(ctx)
	c.enterLocked(ctx, r)
	return r, nil
}

// run is a unit that is followed.
type run struct {
	unit    Unit
	group   *group
	cluster *cluster
	session *session
	// ctx ends with that of the caller, or when the cluster is removed.
	ctx    context.Context
	cancel context.CancelFunc
	// awake has one element when a subscription has come to an end that was waited for.
	awake chan struct{}
	// asked tells that Known was answered, and known are the resources of its answer for which it is
	// still open whether the cluster serves them. first is the first complete catalog.
	asked bool
	known []schema.GroupVersionResource
	first *catalog
	// lacks has what the group names and the cluster did not serve last, as text.
	lacks map[string]bool
	// waits are for the ends of subscriptions.
	waits sync.WaitGroup

	// subscriptions are written by follow with the fleet's lock, so that follow reads them without.
	subscriptions map[schema.GroupResource]*subscription
	// The rest is guarded by the fleet's lock.

	// missing are the errors of the catalog that was followed last; followed tells that there was
	// one.
	missing  []error
	followed bool
	// err is why it is not known what the sink knows.
	err error
}

// follow follows the unit until ctx ends or the cluster is removed.
func (r *run) follow() error {
	defer r.cluster.leave(r)
	defer r.end()
	pauses, retry := backoff.OrDefault(nil), time.NewTimer(time.Hour)
	retry.Stop()
	defer retry.Stop()
	for mayRetry, armed := true, false; ; {
		found, news := r.newest()
		if found != nil && !r.adopt(r.ctx, found, mayRetry) && (mayRetry || !armed) {
			retry.Reset(pauses.Step())
			armed = true
		}
		select {
		case <-news:
			pauses, mayRetry = backoff.OrDefault(nil), true
		case <-retry.C:
			mayRetry, armed = true, false
		case <-r.awake:
			mayRetry = false
		case <-r.ctx.Done():
			if closed(r.cluster.removed) {
				return ErrRemoved
			}
			return nil
		}
	}
}

// newest returns the newest catalog, and a channel that is closed when there is a newer one.
func (r *run) newest() (*catalog, <-chan struct{}) {
	f := r.cluster.fleet
	f.mu.Lock()
	defer f.mu.Unlock()
	return r.session.catalog, r.session.news
}

// end ends all informers, and waits for them.
func (r *run) end() {
	r.cancel()
	var last []<-chan struct{}
	for _, sub := range r.subscriptions {
		if sub.lease != nil {
			last = append(last, sub.lease.Release())
		}
	}
	for _, ended := range last {
		<-ended
	}
	r.waits.Wait()
	for _, sub := range r.subscriptions {
		r.logConfigure(sub, nil)
	}
	r.cluster.troubles.end(r.ctx, r.unit.String(), time.Now())
}

// adopt makes the subscriptions what a catalog asks for, as far as that goes at once: the end of an
// informer wakes the run. Subscriptions that have failed are tried again if retry is true. It
// reports whether none has failed.
func (r *run) adopt(ctx context.Context, found *catalog, retry bool) (well bool) {
	wanted, missing := r.group.choose(found)
	if found.complete() {
		r.logLacks(missing)
	}
	for _, name := range sortedNames(r.subscriptions) {
		r.adjust(ctx, name, wanted, found, retry)
	}
	for _, name := range sortedNames(wanted) {
		if ctx.Err() != nil {
			break
		}
		r.ensure(ctx, name, wanted[name], retry)
	}
	if retry && found.complete() && (!r.asked || len(r.known) > 0) {
		if r.first == nil {
			r.first = found
		}
		r.remember(ctx, found)
	}
	defer r.cluster.greet(r.ctx)
	f := r.cluster.fleet
	f.mu.Lock()
	defer f.mu.Unlock()
	r.missing, r.followed = append(missing, found.missing()...), true
	broadcast(&f.moved)
	for _, sub := range r.subscriptions {
		if sub.stage == failed {
			return false
		}
	}
	return r.err == nil
}

// logLacks logs what the group names and the cluster lacks, once for as long as it does.
func (r *run) logLacks(missing []error) {
	lacks := make(map[string]bool, len(missing))
	for _, err := range missing {
		text := err.Error()
		if lacks[text] = true; !r.lacks[text] {
			klog.FromContext(r.ctx).Info("Fleet lacks a resource", "cluster", r.unit.Cluster, "group", r.unit.Group, "problem", text)
		}
	}
	r.lacks = lacks
}

// remember parts from what the sink knows of resources that are gone.
func (r *run) remember(ctx context.Context, found *catalog) {
	if !r.asked {
		f := r.cluster.fleet
		known, err := f.known(ctx, r.unit)
		f.mu.Lock()
		r.err = err
		f.mu.Unlock()
		if err != nil {
			r.cluster.troubles.begin(ctx, r.unit.String(), reasonKnown, err.Error(), time.Now())
			return
		}
		r.cluster.troubles.end(ctx, r.unit.String(), time.Now())
		r.known, r.asked = slices.Clone(known), true
	}
	r.known = slices.DeleteFunc(r.known, func(resource schema.GroupVersionResource) (settled bool) {
		gone := &subscription{target: Target{Unit: r.unit, Resource: resource}, owed: true, doubt: r.first}
		name := resource.GroupResource()
		if r.subscriptions[name] != nil || found.find(name) != nil {
			return true
		}
		if !r.isGone(ctx, gone, found) {
			return false // another discovery has to agree, or the server has not answered
		}
		r.part(ctx, name, gone)
		return true
	})
	if len(r.known) > 0 && found == r.first {
		r.session.triggers.see()
	}
}

func (f *Fleet) known(ctx context.Context, u Unit) (known []schema.GroupVersionResource, err error) {
	if f.config.Known == nil {
		return nil, nil
	}
	err = failure.Guard(ctx, func(error) {}, func() error {
		known, err = f.config.Known(ctx, u)
		return err
	})
	if err != nil {
		return nil, &UnitError{Unit: u, Err: err}
	}
	return known, nil
}

func sortedNames[V any](of map[schema.GroupResource]V) []schema.GroupResource {
	return slices.SortedFunc(maps.Keys(of), compareResources)
}
