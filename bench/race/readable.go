package race

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/labels"
	krt "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"
)

// ReadOrder is what a program of readable caches is told on its input.
type ReadOrder struct {
	Contestant string
	Figure     Figure
	// Target is the server that an informer follows. It has samples.
	Target Target
	// Objects is how many a store is filled with.
	Objects int
	// Profile is a file for a profile of the heap where memory is measured, and Profile+".cpu" for
	// one of the CPU.
	Profile string
}

// The contestants.
const (
	ClientGoTyped    = "client-go-typed"
	OursTyped        = "objectcache-typed"
	ClientGoDynamic  = "client-go-dynamic"
	OursUnstructured = "objectcache-unstructured"

	ControllerRuntime     = "controller-runtime"
	ControllerRuntimeOurs = "controllerruntime"
)

// Operators are the contestants of the figure Operator.
var Operators = []string{ControllerRuntime, ControllerRuntimeOurs}

// Readables are the contestants in the order of the tables.
var Readables = []string{ClientGoTyped, OursTyped, ClientGoDynamic, OursUnstructured}

// Figure is what is measured of a readable cache, in a process of its own.
type Figure string

const (
	// StoreMemory is that of a store: filled, and after each object was updated ten times.
	StoreMemory Figure = "store"
	// Reading is how fast a filled store is read.
	Reading Figure = "read"
	// Informing is what an informer with a namespace index takes from its start on, through a list
	// in which nothing changed.
	Informing Figure = "informer"
	// Operator is what controller-runtime's cache takes, and how fast a controller reads it.
	Operator Figure = "operator"
)

// ReadCosts are what a readable cache has cost. A cost that a figure does not measure is zero.
type ReadCosts struct {
	// Live is what is live per object, on the heap after a collection and outside of it, and
	// LiveUpdated the same after the updates.
	Live, LiveUpdated float64
	// Add and Update are the CPU times of one of these on a store.
	Add, Update time.Duration

	// Peaks are those of a process with an informer.
	Peaks Peaks
	// StartCPU is the CPU time until it had synced, and StartWall the time.
	StartCPU, StartWall time.Duration
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

// Read measures one figure.
func (c Readable) Read(ctx context.Context, o ReadOrder) (costs ReadCosts, err error) {
	costs.Decoded = -1
	switch o.Figure {
	case StoreMemory:
		err = c.store(o, &costs)
	case Reading:
		err = c.read(o, &costs)
	case Informing:
		return o.Informing(ctx, func(ctx context.Context, loss *Loss) (*Running, error) { return c.Open(ctx, &o.Target, loss) }, nil)
	default:
		err = fmt.Errorf("no figure %q", o.Figure)
	}
	return costs, err
}
