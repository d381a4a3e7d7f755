// Package follow brings what clusters have into a database. A fleet finds the resources of each
// cluster and follows them; the handler and the checkpoint of each informer are a sink's, so that a
// batch is acknowledged when its transaction is committed.
package follow

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/factory"
	"github.com/rvinformer/informer/fleet"
	"github.com/rvinformer/informer/mirror/internal/display"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
)

const (
	// The clients' own brakes. A cluster with hundreds of resources starts that many lists at once;
	// the server's priority and fairness does the rest.
	clientQPS, clientBurst = 50, 300
	// maxWorkers is how many batches of one resource may be on their way into the database: while
	// one is committed, the next is brought there.
	maxWorkers = 2
	// maxAttempts is how often a row is tried that the database refuses.
	maxAttempts = 6
	// maxWaiting bounds the bytes of all objects that are read and not in the database yet. Beyond
	// it the informers stop reading from their servers.
	maxWaiting = 4 << 20
)

// secrets are what OmitSecrets leaves out.
var secrets = schema.GroupResource{Resource: "secrets"}

func isSecrets(r schema.GroupVersionResource) bool { return r.GroupResource() == secrets }

// Config says what to mirror. Database and Say are required.
type Config struct {
	Database  Database
	Say       func(line string) // gets what is said once, such as that nothing can be written
	Resources []string          // patterns of package fleet; none = all
	// OmitSecrets leaves out the resource secrets, whatever Resources says.
	OmitSecrets bool
	Shards      int // of each cluster; 0 = 1
	Prune       []string
	PageSize    int64 // of lists; 0 = the informer's default
	BeginAnew   bool  // replace the rows and the checkpoint of another cluster
	// Relist looks at all objects again, also where a checkpoint says how far the database is. Only
	// a list tells when the database is up to date: a watch that goes on from a checkpoint tells
	// what has happened since, but never that this was all.
	Relist   bool
	Patience Patience // for a first sync
}

// Mirror is one run. It is Work for replicas that share it.
type Mirror struct {
	*fleet.Fleet
	config  Config
	members *factory.Factory
	outage  *outage
	began   time.Time
	last    atomic.Pointer[[]display.Row] // after the end
	// removals are the goroutines that wait for the informers of removed clusters.
	removals sync.WaitGroup
	// redelivering is held while rows are tried again: an informer has one redelivery at a time.
	redelivering sync.Mutex

	mu       sync.Mutex
	feeds    map[fleet.Target]*feed // see feed.target
	followed map[string]bool        // clusters that have an informer for each resource
	progress map[display.Place]progress
}

// New prepares a run without clusters. The error is about the Resources.
func New(config Config) (m *Mirror, err error) {
	m = &Mirror{
		config: config, members: factory.New(), began: time.Now(),
		outage: newOutage("database "+config.Database.String(), config.Say),
		feeds:  map[fleet.Target]*feed{}, followed: map[string]bool{}, progress: map[display.Place]progress{},
	}
	// By namespace, because a row is found by its name: of an object that is created anew, the shard
	// by UID is another one, whose owner may be faster than the owner that sees the deletion.
	group := fleet.Group{Resources: config.Resources, Shards: config.Shards, ShardBy: informer.ShardByNamespace}
	if config.OmitSecrets {
		group.Except = []string{secrets.Resource}
	}
	m.Fleet, err = fleet.New(fleet.Config{
		Groups:    []fleet.Group{group},
		Budget:    informer.NewBudget(maxWaiting),
		Factory:   m.members,
		Configure: m.configure,
		Known:     m.known,
	})
	return m, err
}

// Add adds a cluster.
func (m *Mirror) Add(name string, client *rest.Config) error {
	client = rest.CopyConfig(client)
	client.UserAgent = "rvinformer-mirror"
	client.QPS, client.Burst = clientQPS, clientBurst
	return m.Fleet.Add(name, client)
}

// Put adds a cluster, or replaces the one of this name.
func (m *Mirror) Put(name string, client *rest.Config) error {
	if _, is := m.Cluster(name); is {
		m.Remove(name)
	}
	return m.Add(name, client)
}

// configure is what the fleet asks for before it starts an informer, and again after an error: the
// rows have to be known before anything is followed, or those of objects that are gone would stay.
func (m *Mirror) configure(ctx context.Context, t fleet.Target) (informer.InformerConfig, error) {
	place := m.config.Database.Place(t)
	storage, err := place.Storage(ctx)
	if err != nil {
		return informer.InformerConfig{}, err
	}
	f := &feed{target: fleet.Target{Unit: t.Unit, Resource: t.Resource}, to: place.Handler(), outage: m.outage, began: time.Now()}
	m.mu.Lock()
	m.feeds[f.target] = f
	m.mu.Unlock()
	return informer.InformerConfig{
		Storage:           storage,
		BatchHandler:      f,
		Checkpoint:        newCheckpoint(ctx, place.Checkpoint(), f, m.config.Relist),
		BeginAnew:         m.config.BeginAnew,
		ExampleObject:     &informer.RawObject{},
		Prune:             m.config.Prune,
		MaxAttempts:       maxAttempts,
		Workers:           min(maxWorkers, m.config.Database.Writers()),
		WatchListPageSize: m.config.PageSize,
		ErrorHandler:      func(*informer.Reflector, error) {}, // the status has it
	}, nil
}

// known is what the fleet asks when a unit has an informer for each of its resources. It includes
// what other shards have: a shard without rows of a resource has nothing to delete.
func (m *Mirror) known(ctx context.Context, u fleet.Unit) ([]schema.GroupVersionResource, error) {
	known, err := m.config.Database.Known(ctx, u)
	if err != nil {
		return nil, err
	}
	m.mu.Lock()
	first := !m.followed[u.Cluster]
	m.followed[u.Cluster] = true
	m.mu.Unlock()
	if first && m.config.OmitSecrets && slices.ContainsFunc(known, isSecrets) {
		m.config.Say(u.Cluster + ": the database has Secrets of an earlier run, which are not followed: name them with --resources, or delete their rows")
	}
	return known, nil
}

// RunUnit follows a unit until the context ends. What is not written then, its next owner writes.
func (m *Mirror) RunUnit(ctx context.Context, u fleet.Unit) error {
	defer m.outage.forget(func(of fleet.Unit) bool { return of == u })
	return m.Fleet.RunUnit(ctx, u)
}

// Remove removes a cluster, as Fleet.Remove does. Its changes that are not written by then are
// dropped. Run waits for it.
func (m *Mirror) Remove(name string) {
	removed := m.Fleet.Remove(name)
	m.removals.Go(func() {
		<-removed
		m.outage.forget(func(of fleet.Unit) bool { return of.Cluster == name })
	})
}

// Run runs work, which is Fleet.Run or that of a replica, and meanwhile during and the functions
// beside. It ends when the context ends, during returns, or the database is found to be unusable.
// The functions beside have to return when their context ends, which is before the work ends: that
// would look like trouble to a display. Run returns after the batches in progress are written and
// all goroutines have ended. The error is that of work and during and what was not written, or what
// is wrong with the database.
func (m *Mirror) Run(ctx context.Context, work, during func(context.Context) error, beside ...func(context.Context)) error {
	ctx, cancel := context.WithCancel(m.config.Database.Context(ctx))
	defer cancel()
	working, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	var workers, others sync.WaitGroup
	var failed error
	workers.Go(func() {
		defer cancel()
		failed = work(working)
	})
	others.Go(func() { m.redeliverGone(ctx) })
	for _, run := range beside {
		others.Go(func() { run(ctx) })
	}
	err := during(ctx)
	cancel()
	others.Wait()
	rows := m.Rows()
	m.last.Store(&rows)
	stop()
	workers.Wait()
	m.removals.Wait()
	if unusable := m.config.Database.Err(); unusable != nil {
		return unusable
	}
	return errors.Join(err, failed, m.outage.unwritten())
}

// Follow is Fleet.Run as work for Run.
func (m *Mirror) Follow(ctx context.Context) error {
	m.Fleet.Run(ctx)
	return nil
}

func placeOf(t fleet.Target) display.Place {
	return display.Place{Cluster: t.Cluster, Resource: t.Resource.GroupResource()}
}
