package fleet

import (
	"cmp"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/internal/report"
	"github.com/rvinformer/informer/internal/subject"
	"github.com/rvinformer/informer/metrics"
	"github.com/rvinformer/informer/statuspage"
)

// ShowOn shows the fleet on a status page and in metrics until remove is called; either may be nil.
// It adds all informers of its Factory, its Budget, and the discovery of each cluster, as an
// informer that has the label informer="discovery" and no resource. That one has synced when a
// discovery was answered, and its condition is Failing, Forbidden, ServerUnreachable or so while
// discovery fails or is not complete.
func (f *Fleet) ShowOn(page *statuspage.Page, collector *metrics.Collector) (remove func()) {
	b := &board{page: page, metrics: collector, shown: map[*cluster][]func(){}}
	if page != nil {
		b.always = append(b.always, page.AddFactory(f.config.Factory))
	}
	if collector != nil {
		b.always = append(b.always, collector.AddFactory(f.config.Factory), collector.AddBudget("fleet", f.config.Budget))
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.boards[b] = true
	for _, c := range f.clusters {
		b.show(c)
	}
	return func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		delete(f.boards, b)
		b.clear()
	}
}

// board is a page and a collector that show the fleet. It is guarded by the fleet's lock.
type board struct {
	page    *statuspage.Page
	metrics *metrics.Collector
	// always and shown have what takes off the page what is on it.
	always []func()
	shown  map[*cluster][]func()
}

func (b *board) show(c *cluster) {
	labels, source := subject.Labels{Cluster: c.name, Informer: "discovery"}, discoverySource{c}
	if b.page != nil {
		b.shown[c] = append(b.shown[c], b.page.Add(labels, source))
	}
	if b.metrics != nil {
		b.shown[c] = append(b.shown[c], b.metrics.Add(labels, source))
	}
}

func (b *board) hide(c *cluster) {
	for _, remove := range b.shown[c] {
		remove()
	}
	delete(b.shown, c)
}

func (b *board) clear() {
	for c := range b.shown {
		b.hide(c)
	}
	for _, remove := range b.always {
		remove()
	}
	b.always = nil
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
		s.Condition.Reason, s.Condition.Message = report.ReasonOf(wrong), wrong.Error()
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
