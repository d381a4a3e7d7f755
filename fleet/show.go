package fleet

import (
	"cmp"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/internal/leaf/failure"
	"github.com/rvinformer/informer/metrics"
	"github.com/rvinformer/informer/registry"
	"github.com/rvinformer/informer/statuspage"
)

// Registry returns a registry of the fleet: all informers of its Factory, its Budget under the name
// "fleet", and the discovery of each cluster, as an informer that has the label informer="discovery"
// and no resource. That one has synced when a discovery was answered, and its condition is Failing,
// Forbidden, ServerUnreachable or so while discovery fails or is not complete.
func (f *Fleet) Registry() *registry.Registry { return &f.registry }

// ShowOn shows what Registry has on a status page and in metrics until remove is called; either may
// be nil.
func (f *Fleet) ShowOn(page *statuspage.Page, collector *metrics.Collector) (remove func()) {
	offPage, offMetrics := func() {}, func() {}
	if page != nil {
		offPage = page.AddFactory(f.Registry())
	}
	if collector != nil {
		offMetrics = collector.AddFactory(f.Registry())
	}
	return func() {
		offPage()
		offMetrics()
	}
}

// discoverySource shows the discovery of a cluster as if it were an informer.
type discoverySource struct{ cluster *cluster }

// Status is how discovery is.
func (d discoverySource) Status() informer.Status {
	c := d.cluster
	c.fleet.mu.Lock()
	defer c.fleet.mu.Unlock()
	now := c.statusLocked()
	s := informer.Status{Synced: !now.Discovered.IsZero() || now.State == ClusterIdle, LastError: now.LastError}
	if now.LastError != nil {
		s.LastErrorTime, s.FailingSince = cmp.Or(now.LastErrorTime, now.Since), now.Since
	}
	s.Condition = informer.Condition{Reason: informer.ReasonCurrent, Since: now.Since}
	switch wrong := firstError(now); {
	case wrong != nil:
		s.Condition.Reason, s.Condition.Message = failure.ReasonOf(wrong), wrong.Error()
	case now.State == ClusterIdle:
		s.Condition.Reason, s.Condition.Message = informer.ReasonNotStarted, "no unit of the cluster is followed here"
	case now.State == ClusterDiscovering:
		s.Condition.Reason, s.Condition.Message = informer.ReasonNotStarted, "looking for resources"
	}
	return s
}

func firstError(c Cluster) error {
	if c.LastError == nil && len(c.Missing) > 0 {
		return c.Missing[0]
	}
	return c.LastError
}
