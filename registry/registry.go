package registry

import (
	"reflect"
	"slices"
	"sync"

	"github.com/rvinformer/informer"
)

// Registry holds informers and their budgets. It is safe for concurrent use. The zero value is empty.
type Registry struct {
	mu sync.Mutex
	// entries are in the order in which they were added.
	entries []*entry
}

// Budget has a name in a Registry.
type Budget struct {
	Name string
	*informer.Budget
}

// entry is what one call has added: a source, a factory or a budget.
type entry struct {
	labels  Labels
	source  Source
	factory Factory
	budget  Budget
	removed chan struct{}
}

// New returns an empty registry.
func New() *Registry { return &Registry{} }

// Add adds an informer until remove is called. Several may have the same labels. It panics if
// source is nil.
func (r *Registry) Add(labels Labels, source Source) (remove func()) {
	if isNil(source) {
		panic("registry: Add of no informer")
	}
	return r.add(&entry{labels: labels, source: source})
}

// AddFactory adds all informers of a factory, those that it will have included, until remove is
// called. If f is another Registry, its budgets are added too. AddFactory panics if f is nil or r:
// no registry may be in itself, also not by way of others.
func (r *Registry) AddFactory(f Factory) (remove func()) {
	if isNil(f) || f == Factory(r) {
		panic("registry: AddFactory of no factory, or of the registry itself")
	}
	return r.add(&entry{factory: f})
}

// AddBudget adds a budget other than the default one until remove is called. Metrics add up budgets
// of one name. It panics if budget is nil.
func (r *Registry) AddBudget(name string, budget *informer.Budget) (remove func()) {
	if budget == nil {
		panic("registry: AddBudget of no budget")
	}
	return r.add(&entry{budget: Budget{name, budget}})
}

func (r *Registry) add(e *entry) (remove func()) {
	e.removed = make(chan struct{})
	r.mu.Lock()
	defer r.mu.Unlock()
	r.entries = append(r.entries, e)
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		if at := slices.Index(r.entries, e); at >= 0 {
			r.entries = slices.Delete(r.entries, at, at+1)
			close(e.removed)
		}
	}
}

// Informers returns all informers in the order in which they were added. It asks them nothing.
func (r *Registry) Informers() []Informer {
	entries := r.list()
	all := make([]Informer, 0, len(entries))
	for _, e := range entries {
		switch {
		case e.source != nil:
			all = append(all, Informer{Member: e, Source: e.source})
		case e.factory != nil:
			if more := e.factory.Informers(); len(all) == 0 {
				all = more // which is all, most often
			} else {
				all = append(all, more...)
			}
		}
	}
	return all
}

// Budgets returns all budgets that were added. Several may have the same name.
func (r *Registry) Budgets() (all []Budget) {
	for _, e := range r.list() {
		if other, ok := e.factory.(*Registry); ok {
			all = append(all, other.Budgets()...)
		} else if e.budget.Budget != nil {
			all = append(all, e.budget)
		}
	}
	return all
}

func (r *Registry) list() []*entry {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.entries)
}

func (e *entry) Labels() Labels        { return e.labels }
func (e *entry) Done() <-chan struct{} { return e.removed }

func isNil(x any) bool {
	v := reflect.ValueOf(x)
	return !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil()
}
