// Package race runs contestants through scenarios and measures them. Each kind of
// contestants is a program of its own, with what it needs and nothing else, so
// that its memory is its own: see Main.
package race

import (
	"context"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/rvinformer/informer"
)

// PageSize is what lists are read in, where they are read in pages.
const PageSize = 500

// Entry is what is known of a contestant before it runs.
type Entry struct {
	Name string
	// Floor is the contestant that reads the same bytes in the same way and throws
	// them away; of a store, what it is compared with. A floor is its own.
	Floor     string
	Scenarios []Scenario
	// Memory is what it starts again with.
	Memory Memory
}

// TakesPart tells whether the contestant is made for a scenario.
func (e Entry) TakesPart(s Scenario) bool { return slices.Contains(e.Scenarios, s) }

// IsFloor tells whether the contestant is a floor.
func (e Entry) IsFloor() bool { return e.Floor == e.Name }

// Contestant is one way to follow pods, or to remember objects. It has one of the functions.
type Contestant struct {
	Entry
	// Connect makes what all its informers share.
	Connect func(*Target) (Source, error)
	// Open, of one that takes part in Storage, makes an empty store instead.
	Open func() Store
	// Run obeys all orders on its own.
	Run func(context.Context, Order) (Result, error)
}

// Source follows sets of pods over one client.
type Source interface {
	// Follow starts to follow until ctx ends.
	Follow(ctx context.Context, f Follow) *Following
}

// Follow says what to follow, and which handler is told.
type Follow struct {
	Namespace string // empty for all
	// Shard is the part that one of ours follows.
	Shard informer.Shard
	// Handlers is the number of handlers that share an informer of ours. Added and Updated are
	// called for the first of them. Zero is one handler with an informer of its own.
	Handlers int
	// Added and Updated are called for each object, one call at a time. A floor,
	// which sees no objects, calls only Updated, at the start and the end of a burst.
	Added   func(resourceVersion string)
	Updated func(resourceVersion string)
	// Storage is what one of ours goes on from, if it is not nil.
	Storage *informer.ResourceVersionStorage
	// Checkpoint is the file that one of ours goes on from and keeps, if it is named.
	Checkpoint string
}

// Handler is the handler of an informer, ours or client-go's, that calls Added and Updated.
func (f Follow) Handler() informer.ResourceEventHandlerFuncs {
	return informer.ResourceEventHandlerFuncs{
		AddFunc:    func(obj interface{}) { f.Added(obj.(metav1.Object).GetResourceVersion()) },
		UpdateFunc: func(_, obj interface{}) { f.Updated(obj.(metav1.Object).GetResourceVersion()) },
	}
}

// Following is an informer under way.
type Following struct {
	// Synced is closed when each object was handed over.
	Synced <-chan struct{}
	// Wait returns after everything has ended. The context must have.
	Wait func()
	// Audit compares what is known with the server, and returns an error if something differs. A
	// floor has none, and reads the set once more instead.
	Audit func(context.Context) error
}

// Target is the server that is followed.
type Target struct {
	Host  string
	CA    []byte
	Token string
	// Objects is the number of pods, Changed how many of them have changed already,
	// and Events that of changes in the burst of each watch. The last of these makes
	// LastVersion.
	Objects     int
	Changed     int
	Events      int
	LastVersion string
	// PIDs are the processes of a server that is no podserver.
	PIDs []int
	// Control is the address of the controls of a podserver, empty for any other server.
	Control string
	// meter, of the process that follows, counts what comes from the server.
	meter *meter
}

// Config is how to reach the server, without a limit of the rate of requests.
func (t *Target) Config() *rest.Config {
	return &rest.Config{
		Host:            t.Host,
		BearerToken:     t.Token,
		TLSClientConfig: rest.TLSClientConfig{CAData: t.CA},
		QPS:             -1,
		Dial:            t.meter.dial(),
	}
}
