package shards

import (
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/metrics"
	"github.com/rvinformer/informer/registry"
	"github.com/rvinformer/informer/statuspage"
)

// Registry returns a registry of the replica: the informer of Leases, and the fleet as an informer
// without a resource, whose label informer is "fleet" and the name. That one has synced when the
// replica has joined the plan for the first time, so that a rolling update waits for it. Its
// condition is
//
//   - ServerUnreachable while the member Lease is not renewed in time, so that the replica may not
//     work;
//   - Failing while a unit has no living owner for longer than two LeaseDurations, while no unit
//     covers a range of hashes, and while RunUnit of an own unit returns by itself;
//   - NotStarted before the replica has joined.
func (r *Replica) Registry() *registry.Registry { return &r.registry }

// ShowOn shows what Registry has on a status page and in metrics until remove is called; either may
// be nil.
func (r *Replica) ShowOn(page *statuspage.Page, collector *metrics.Collector) (remove func()) {
	offPage, offMetrics := func() {}, func() {}
	if page != nil {
		offPage = page.AddFactory(r.Registry())
	}
	if collector != nil {
		offMetrics = collector.AddFactory(r.Registry())
	}
	return func() {
		offPage()
		offMetrics()
	}
}

// coverage shows the fleet as if it were an informer.
type coverage struct{ replica *Replica }

// Status has a condition and nothing of an informer.
func (c coverage) Status() informer.Status {
	now := time.Now()
	s := c.replica.Status()
	status := informer.Status{Synced: s.Joined, LastContact: now, Condition: c.condition(s, now)}
	if len(s.Problems) > 0 {
		p := s.Problems[0]
		status.LastError, status.LastErrorTime, status.FailingSince = fmt.Errorf("%s: %w", p.Doing, p.Err), p.Last, p.Since
	}
	return status
}

func (c coverage) condition(s Status, now time.Time) informer.Condition {
	switch {
	case !s.Joined:
		return informer.Condition{Reason: informer.ReasonNotStarted, Message: "the replica has not joined yet"}
	case s.WorkUntil.IsZero():
		return informer.Condition{Reason: informer.ReasonServerUnreachable, Message: "the member lease is not renewed in time: nothing is followed", Since: s.TermChanged}
	}
	patience := 2 * c.replica.config.LeaseDuration
	if uncovered := s.Uncovered(); len(uncovered) > 0 {
		first := uncovered[0]
		for _, u := range uncovered {
			if u.Since.Before(first.Since) {
				first = u
			}
		}
		if now.Sub(first.Since) > patience {
			return informer.Condition{
				Reason: informer.ReasonFailing, Since: first.Since,
				Message: fmt.Sprintf("%d of %d units have no living owner, %s for %v", len(uncovered), len(s.Units), first.Unit, now.Sub(first.Since).Round(time.Second)),
			}
		}
	}
	if len(s.Gaps) > 0 {
		return informer.Condition{Reason: informer.ReasonFailing, Message: fmt.Sprintf("no unit covers %s", s.Gaps[0])}
	}
	for _, u := range s.Units {
		if u.Tenure != nil && u.Tenure.Phase == Waiting {
			return informer.Condition{Reason: informer.ReasonFailing, Since: u.Tenure.Since, Message: fmt.Sprintf("%s: %v", u.Unit, u.Tenure.Err)}
		}
	}
	return informer.Condition{Reason: informer.ReasonCurrent, Message: fmt.Sprintf("owns %d of %d units", len(s.Owned()), len(s.Units)), Since: s.TermChanged}
}

// gauge is a number of a replica.
type gauge struct {
	desc *prometheus.Desc
	kind prometheus.ValueType
	read func(r *Replica, s Status, now time.Time) float64
}

func describe(name, help string, kind prometheus.ValueType, read func(r *Replica, s Status, now time.Time) float64) gauge {
	return gauge{prometheus.NewDesc("rvinformer_fleet_"+name, help, []string{"fleet"}, nil), kind, read}
}

// gauges are the metrics of a replica. The page docs/replicas.md lists them.
var gauges = []gauge{
	describe("members", "Replicas that are alive, as this one sees it.", prometheus.GaugeValue,
		func(_ *Replica, s Status, _ time.Time) float64 {
			return count(s.Members, func(m Member) bool { return m.Alive })
		}),
	describe("may_work", "1 while this replica may work, 0 while its member Lease is not renewed in time.", prometheus.GaugeValue,
		func(_ *Replica, s Status, _ time.Time) float64 {
			if s.WorkUntil.IsZero() {
				return 0
			}
			return 1
		}),
	describe("units", "Units of the fleet.", prometheus.GaugeValue,
		func(_ *Replica, s Status, _ time.Time) float64 { return float64(len(s.Units)) }),
	describe("units_owned", "Units that this replica owns.", prometheus.GaugeValue,
		func(_ *Replica, s Status, _ time.Time) float64 { return float64(len(s.Owned())) }),
	describe("units_failing", "Units that this replica owns, and whose RunUnit has returned by itself.", prometheus.GaugeValue,
		func(_ *Replica, s Status, _ time.Time) float64 {
			return count(s.Units, func(u Unit) bool { return u.Tenure != nil && u.Tenure.Phase == Waiting })
		}),
	describe("units_uncovered", "Units that have no living owner.", prometheus.GaugeValue,
		func(_ *Replica, s Status, _ time.Time) float64 { return float64(len(s.Uncovered())) }),
	describe("uncovered_seconds", "For how long the unit has no living owner that lacks one for the longest time; 0 if all have one.", prometheus.GaugeValue,
		func(_ *Replica, s Status, now time.Time) float64 {
			var longest time.Duration
			for _, u := range s.Uncovered() {
				longest = max(longest, now.Sub(u.Since))
			}
			return longest.Seconds()
		}),
	describe("gaps", "Ranges of hashes that no unit covers.", prometheus.GaugeValue,
		func(_ *Replica, s Status, _ time.Time) float64 { return float64(len(s.Gaps)) }),
	describe("taken_total", "How often this replica has become the owner of a unit.", prometheus.CounterValue,
		func(r *Replica, _ Status, _ time.Time) float64 { return float64(r.ledger.taken.Load()) }),
	describe("stale_epochs_total", "How often a sink has refused an epoch of this replica.", prometheus.CounterValue,
		func(r *Replica, _ Status, _ time.Time) float64 { return float64(r.ledger.stale.Load()) }),
}

func count[T any](all []T, holds func(T) bool) float64 {
	n := 0
	for _, one := range all {
		if holds(one) {
			n++
		}
	}
	return float64(n)
}

var _ prometheus.Collector = (*Replica)(nil)

// Describe makes a Replica a prometheus.Collector.
func (r *Replica) Describe(to chan<- *prometheus.Desc) {
	for _, g := range gauges {
		to <- g.desc
	}
}

// Collect sends the metrics that begin with rvinformer_fleet_. They have the label fleet, the name
// of the fleet.
func (r *Replica) Collect(to chan<- prometheus.Metric) {
	s, now := r.Status(), time.Now()
	for _, g := range gauges {
		to <- prometheus.MustNewConstMetric(g.desc, g.kind, g.read(r, s, now), r.config.Name)
	}
}
