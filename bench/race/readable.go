package race

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/labels"
	krt "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"
)

// The contestants with readable caches.
const (
	ClientGoTyped    = "client-go-typed"
	OursTyped        = "objectcache-typed"
	ClientGoDynamic  = "client-go-dynamic"
	OursUnstructured = "objectcache-unstructured"
	OursCustom       = "objectcache-custom"

	ControllerRuntime     = "controller-runtime"
	ControllerRuntimeOurs = "controllerruntime"
)

// ReadCosts are what a readable cache has cost. A cost that a scenario does not measure is zero.
type ReadCosts struct {
	// Live is what is live per object, on the heap after a collection and outside of it, and
	// LiveUpdated the same after the updates.
	Live, LiveUpdated float64
	// Add and Update are the CPU times of one of these on a store.
	Add, Update time.Duration
	// Decoded is how many objects it decoded in the list without changes; -1 if it does not say.
	Decoded int64

	// CPU times of reading one object by key: one that was not read before, and one that was just
	// read; and of a DeepCopy of it.
	Get, GetHot, DeepCopy time.Duration
	// ListMatching is the CPU time, and ListMatchingWall the time, of listing by labels what is
	// about one object in a hundred, with a selector that was not used before; Matched is how many
	// it found.
	ListMatching, ListMatchingWall time.Duration
	Matched                        int
	// Namespace is the CPU time of listing a namespace of 500.
	Namespace time.Duration
}

// Readable is a contestant of readable caches.
type Readable struct {
	Name string
	// Object makes object i of a sample cluster after some updates, as a client decodes it.
	Object func(i, revision int) krt.Object
	// Store opens an empty store with an index of namespaces.
	Store func() cache.Indexer
	// Open runs an informer with an index of namespaces.
	Open func(ctx context.Context, t *Target, loss *Loss) (*Running, error)
	// Match lists by labels; the default is client-go's way to do that, which its listers have.
	Match func(of cache.Indexer, selector labels.Selector) (int, error)
}

// Contestant is c among others.
func (c Readable) Contestant() Contestant {
	return Contestant{Entry: Entry{Name: c.Name, Scenarios: []Scenario{StoreMemory, Reading, Informing}}, Run: c.run}
}

func (c Readable) run(ctx context.Context, o Order) (r Result, err error) {
	r.Read, r.Objects = &ReadCosts{Decoded: -1}, o.Target.Objects
	switch o.Scenario {
	case StoreMemory:
		err = c.store(o, r.Read)
	case Reading:
		err = c.read(o, r.Read)
	case Informing:
		return o.Informing(ctx, func(ctx context.Context, loss *Loss) (*Running, error) { return c.Open(ctx, &o.Target, loss) }, nil)
	default:
		err = fmt.Errorf("no scenario %q", o.Scenario)
	}
	return r, err
}
