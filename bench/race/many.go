package race

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/bench/podserver/extra"
	"github.com/rvinformer/informer/factory"
)

// Cluster is one of many servers that a process follows.
type Cluster struct {
	Target
	// Troubled tells that it is not waited for.
	Troubled bool
}

// Many is what is followed where there are many servers: each resource of each cluster.
type Many struct {
	Clusters  []Cluster
	Resources []string
	// Budget is that of all informers, in bytes.
	Budget int64
	// HTTP1 asks for connections without HTTP/2.
	HTTP1 bool
	// Paged reads lists in pages instead of watch-lists.
	Paged bool
	// Handling is how long a handler takes for an object.
	Handling time.Duration
	// Times is how often informers are added and removed.
	Times int

	// Control is the address of the controls of the servers.
	Control string
	// Settle is how long informers are left alone, once all have synced, before it is measured what
	// they hold.
	Settle time.Duration
	// Outage, if it is not 0, is how long the servers go away after that. For plain GETs, they
	// stay, and as many watches are opened.
	Outage time.Duration
}

// ManyCosts are what informers of many servers have cost.
type ManyCosts struct {
	Informers int
	// BudgetPeak is the most that was in use of the budget.
	BudgetPeak int64
	// GoroutinesLeft and BytesLeft are what there is more after informers were added and
	// removed, in all.
	GoroutinesLeft int
	BytesLeft      int64

	// SyncedRSS is the peak until all had synced that nothing is wrong with, and RSS what is
	// resident in all when they are idle.
	SyncedRSS, RSS int64
	// Before and After are what the servers had used before, and when all had synced.
	Before, After extra.Usage
	Outage        *FleetOutage `json:",omitempty"`
}

// startStopwatch measures this process from now on. It counts what comes from all clusters
// together.
func (m *Many) startStopwatch() *stopwatch {
	all := &Target{meter: &meter{}}
	for i := range m.Clusters {
		m.Clusters[i].meter = all.meter
	}
	return all.startStopwatch()
}

func (m *Many) budget() *informer.Budget { return informer.NewBudget(max(m.Budget, 1)) }

// member is an informer of a cluster.
type member = *factory.Lease[informer.ResourceVersionInformer]

// acquire starts an informer of each resource of a cluster, with leases of a factory. Each has a
// configuration, but for what it lists and watches.
func acquire(f *factory.Factory, of Cluster, config *rest.Config, resources []string, configure func(resource int) informer.InformerConfig) (members []member, err error) {
	lws, err := informer.NewDynamicListerWatcherFactory(config)
	if err != nil {
		return nil, err
	}
	for i, name := range resources {
		resource := schema.GroupVersionResource{Version: "v1", Resource: name}
		lease, err := f.AcquireResourceVersion(resource, factory.InformerOptions{Cluster: of.Host}, func() informer.ResourceVersionInformer {
			config := configure(i)
			config.ListerWatcher = lws.ForResource("", resource)
			return informer.NewResourceVersionInformer(name, config)
		})
		if err != nil {
			return nil, err
		}
		if err := lease.Start(); err != nil {
			return nil, err
		}
		members = append(members, lease)
	}
	return members, nil
}

// synced waits until all informers have synced.
func synced(ctx context.Context, members []member) error {
	for _, m := range members {
		if err := done(ctx, m.Informer.HasSyncedChecker().Done()); err != nil {
			return err
		}
	}
	return nil
}
