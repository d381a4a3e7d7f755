package metrics

import (
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/factory"
	"github.com/rvinformer/informer/internal/subject"
)

// Labels tell informers apart. All are optional.
type Labels = subject.Labels

// source is an informer of this library: a ResourceVersionInformer, a HandlerRegistration, an
// objectcache.Informer.
type source interface{ Status() informer.Status }

// Collector collects the metrics of informers and budgets. It is safe for concurrent use.
// NewCollector makes one.
type Collector struct {
	mu        sync.Mutex
	last      int
	factories map[int]*factory.Factory
	sources   map[int]labeled
	budgets   map[int]namedBudget

	// turn is held while a scrape asks the informers, and guards past. Two scrapes that ask at one
	// time could each see an end that the other does not.
	turn sync.Mutex
	past map[Labels]*past
}

// labeled is an informer that was added.
type labeled struct {
	Labels
	source source
}

type namedBudget struct {
	name   string
	budget *informer.Budget
}

var _ prometheus.Collector = (*Collector)(nil)

// NewCollector returns a Collector without informers. It shows informer.DefaultBudget as the budget
// "default".
func NewCollector() *Collector {
	c := &Collector{factories: map[int]*factory.Factory{}, sources: map[int]labeled{}, budgets: map[int]namedBudget{}}
	c.AddBudget("default", informer.DefaultBudget())
	return c
}

// AddFactory adds all informers that a factory has at the time of a scrape. Of those that are
// client-go's, only rvinformer_synced and rvinformer_condition are known. It panics if f is nil.
func (c *Collector) AddFactory(f *factory.Factory) (remove func()) {
	if f == nil {
		panic("metrics: AddFactory of no factory")
	}
	return add(c, c.factories, f)
}

// Add adds an informer until remove is called. Text of the labels that is not valid UTF-8 is
// replaced. It panics if source is nil.
func (c *Collector) Add(labels Labels, source interface{ Status() informer.Status }) (remove func()) {
	if source == nil {
		panic("metrics: Add of no informer")
	}
	return add(c, c.sources, labeled{labels, source})
}

// AddBudget adds a budget other than the default one until remove is called. Budgets of one name
// are added up. What is not valid UTF-8 in a name is replaced. It panics if budget is nil.
func (c *Collector) AddBudget(name string, budget *informer.Budget) (remove func()) {
	if budget == nil {
		panic("metrics: AddBudget of no budget")
	}
	return add(c, c.budgets, namedBudget{strings.ToValidUTF8(name, "\uFFFD"), budget})
}

func add[T any](c *Collector, all map[int]T, one T) (remove func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.last++
	id := c.last
	all[id] = one
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(all, id)
	}
}

// added returns what was added and not removed.
func (c *Collector) added() (factories []*factory.Factory, sources map[int]labeled, budgets []namedBudget) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return values(c.factories), maps.Clone(c.sources), values(c.budgets)
}

// read asks all informers how they are.
func (c *Collector) read(now time.Time) (all []*reading, budgets []namedBudget) {
	c.turn.Lock()
	defer c.turn.Unlock()
	factories, sources, budgets := c.added()
	all = readings(factories, sources, now)
	c.past = settle(c.past, all)
	return all, budgets
}

func values[T any](of map[int]T) []T {
	return slices.AppendSeq(make([]T, 0, len(of)), maps.Values(of))
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
	all, budgets := c.read(time.Now())
	for _, r := range sorted(all) {
		for i := range families {
			f := &families[i]
			f.read(r, func(kind string, value float64, histogram *informer.Histogram) {
				to <- &metric{desc: f.desc, kind: f.kind, labels: r.pairs(f.by, kind), value: value, histogram: histogram}
			})
		}
	}
	for name, b := range sums(budgets) {
		for _, f := range budgetFamilies {
			to <- prometheus.MustNewConstMetric(f.desc, prometheus.GaugeValue, f.read(b), name)
		}
	}
}
