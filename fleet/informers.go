package fleet

import (
	"cmp"
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"

	"github.com/rvinformer/informer"
)

// Informer is an informer that the fleet runs. It belongs to the fleet, which ends it. It may be kept
// for longer: its methods then say how it was, and those that need an informer that runs return an
// error of informer.ErrNotRunning or informer.ErrStopped. It never runs again; Fleet.Informers has
// the next one.
type Informer struct {
	// Target is what it follows.
	Target Target
	Operations
}

// Operations are the methods of an informer.ResourceVersionInformer but for those that run it.
type Operations interface {
	HasSynced() bool
	HasSyncedChecker() cache.DoneChecker
	LastSyncResourceVersion() string
	Status() informer.Status
	DeadLetters() []informer.DeadLetter
	Audit(ctx context.Context, opts informer.AuditOptions) (informer.AuditReport, error)
	Redeliver(ctx context.Context, opts informer.RedeliverOptions) error
	WaitUntil(ctx context.Context, resourceVersion string) error
}

// Informers returns the informers that follow a resource of a cluster now, sorted by group and shard:
// one for each shard of each group that has the resource. An empty Version stands for the version
// that is followed. The slice is empty if the fleet has no such cluster, if this process does not follow
// the resource, or if its informer has not begun or ends. The slice is the caller's.
func (f *Fleet) Informers(cluster string, resource schema.GroupVersionResource) []Informer {
	f.mu.Lock()
	defer f.mu.Unlock()
	c := f.clusters[cluster]
	if c == nil {
		return nil
	}
	var all []Informer
	for _, r := range c.units {
		sub := r.subscriptions[resource.GroupResource()]
		if sub == nil || sub.stage != following || cmp.Or(resource.Version, sub.target.Resource.Version) != sub.target.Resource.Version {
			continue
		}
		all = append(all, Informer{sub.target, sub.lease.Informer})
	}
	slices.SortFunc(all, func(a, b Informer) int { return a.Target.Unit.Compare(b.Target.Unit) })
	return all
}
