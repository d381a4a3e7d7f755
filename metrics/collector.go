package metrics

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/registry"
)

// Labels tell informers apart. All are optional.
type Labels = registry.Labels

// Collector collects the metrics of the informers and budgets of its registry. It is safe for
// concurrent use. NewCollector and Of make one.
//
// Of the informers that are client-go's, only rvinformer_synced, rvinformer_running and
// rvinformer_condition are known. Text of labels and of the names of budgets that is not valid
// UTF-8 is replaced. Budgets of one name are added up. The Collector also shows
// informer.DefaultBudget, as the budget "default".
type Collector struct {
	// Registry has what the Collector shows. Its methods Add, AddFactory and AddBudget add to it.
	registry.Registry

	// turn is held while a scrape asks the informers, and guards past. Two scrapes that ask at one
	// time could each see an end that the other does not.
	turn sync.Mutex
	past map[Labels]*past
}

var _ prometheus.Collector = (*Collector)(nil)

// NewCollector returns a Collector without informers.
func NewCollector() *Collector { return &Collector{} }

// Of returns a Collector of all that r has. What is added to the Collector itself is not in r.
func Of(r *registry.Registry) *Collector {
	c := NewCollector()
	c.AddFactory(r)
	return c
}

// read asks all informers how they are.
func (c *Collector) read(now time.Time) (all []*reading) {
	c.turn.Lock()
	defer c.turn.Unlock()
	all = readings(c.Informers(), now)
	c.past = settle(c.past, all)
	return all
}

// Describe sends the descriptors of all metrics that there may be.
func (c *Collector) Describe(to chan<- *prometheus.Desc) {
	for i := range families {
		to <- families[i].desc
	}
	for i := range budgetFamilies {
		to <- budgetFamilies[i].desc
	}
}

// Collect asks all informers for their Status, and sends their metrics.
func (c *Collector) Collect(to chan<- prometheus.Metric) {
	for _, r := range sorted(c.read(time.Now())) {
		for i := range families {
			f := &families[i]
			f.read(r, func(kind string, value float64, histogram *informer.Histogram) {
				to <- &metric{desc: f.desc, kind: f.kind, labels: r.pairs(f.by, kind), value: value, histogram: histogram}
			})
		}
	}
	for name, b := range c.budgets() {
		for _, f := range budgetFamilies {
			to <- prometheus.MustNewConstMetric(f.desc, prometheus.GaugeValue, f.read(b), name)
		}
	}
}
