package race

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"runtime/pprof"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr/funcr"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/bench/podserver/extra"
	"github.com/rvinformer/informer/factory"
)

// FleetOrder is what the program that follows a fleet is told.
type FleetOrder struct {
	Clusters  []Cluster
	Resources []string
	// Floor reads the lists of all resources and throws them away: the servers side by side, and
	// the lists of each one after the other over one connection.
	Floor bool
	// Control is the address of what controls the servers.
	Control string
	// Settle is how long informers are left alone, once all have synced, before it is measured what
	// they hold.
	Settle time.Duration
	// Outage, if it is not 0, is how long the servers go away after that. With Floor, they stay,
	// and as many watches are opened.
	Outage time.Duration
	// Budget is that of all informers, in bytes.
	Budget int64
	// Leases takes leases of a factory for each resource, instead of package fleet with its
	// discovery.
	Leases bool
	// Paged reads lists in pages instead of watch-lists.
	Paged bool
	// Profile, if set, begins the names of files for profiles.
	Profile string
}

// FleetResult is what it has cost.
type FleetResult struct {
	Informers int
	Objects   int64
	// Wall and CPU are until those have synced that nothing is wrong with. PeakRSS is that of the
	// whole run, and SyncedRSS the peak until then.
	Wall, CPU          time.Duration
	PeakRSS, SyncedRSS int64
	// Received is what had come off the sockets until then, in bytes.
	Received int64
	// Goroutines, StackBytes and LiveBytes are what each idle informer holds, with its share of all
	// the rest; RSS is that of the process then.
	Goroutines, StackBytes, LiveBytes float64
	RSS                               int64
	// Before and After are what the servers had used before, and when all had synced.
	Before, After extra.FleetUsage
	Outage        *FleetOutage `json:",omitempty"`
}

// FleetOutage is what became of the informers while all servers were away, and after; or of as many
// bare watches.
type FleetOutage struct {
	// Most and All are how long it took from the return of the servers until 95 of 100 informers,
	// and all of them, had told of the change that had happened meanwhile.
	Most, All time.Duration
	// CPU is what the process used from the return until then, and AwayCPU in the outage.
	CPU, AwayCPU time.Duration
	// Usage is that of the servers at their return, and After when all informers were current.
	Usage, After extra.FleetUsage
	// Listed is how many objects were told as added, which is none where watches went on.
	Listed int64
}

// outagePatience is how long informers may take to come back.
const outagePatience = 8 * time.Minute

// FollowFleet follows a fleet in the way that is measured. It returns once all clusters have synced
// that nothing is wrong with. The function that it returns ends all, and waits; it is nil if
// nothing has begun.
type FollowFleet func(context.Context, FollowedFleet) (stop func(), err error)

// FollowedFleet is what is followed: each of the resources in each of the clusters.
type FollowedFleet struct {
	Clusters  []Cluster
	Resources []string
	Factory   *factory.Factory
	Budget    *informer.Budget
	// Config is that of the informer of a resource of a cluster, by their places above, with what
	// it lists and watches left out.
	Config func(cluster, resource int) informer.InformerConfig
}

// FleetMain is the program that follows a fleet: it obeys one order. The caller gives the function
// that follows the clusters. So this package does not import package fleet, whose code would take
// memory in the programs of all other contestants.
func FleetMain(follow FollowFleet) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := obeyFleet(ctx, follow); err != nil {
		fmt.Fprintln(os.Stderr, "fleet:", err)
		os.Exit(1)
	}
}

func obeyFleet(ctx context.Context, follow FollowFleet) (err error) {
	// The log of 25,000 informers is made, and not read.
	klog.SetLogger(funcr.New(func(string, string) {}, funcr.Options{}))
	f := &fleet{factory: factory.New(), stop: func() {}}
	if err := json.NewDecoder(os.Stdin).Decode(&f.FleetOrder); err != nil {
		return fmt.Errorf("orders: %w", err)
	}
	if f.result.Before, err = extra.Fleet(ctx, f.Control, extra.FleetUsagePath); err != nil {
		return err
	}
	if f.Floor {
		if err = f.readFloor(ctx); err == nil && f.Outage > 0 {
			err = f.openFloor(ctx)
		}
	} else {
		err = f.run(ctx, follow)
	}
	f.stop()
	f.factory.Shutdown()
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(f.result)
}

// fleet follows many clusters.
type fleet struct {
	FleetOrder
	factory *factory.Factory
	// stop ends what follows, and waits.
	stop  func()
	added atomic.Int64
	// current has, for each informer, when it was told of a change, as a time in nanoseconds since
	// began.
	current []atomic.Int64
	began   time.Time
	result  FleetResult
}

// readFloor measures the reading of the same lists.
func (f *fleet) readFloor(ctx context.Context) error {
	clients := make([]*http.Client, len(f.Clusters))
	of := meterOf(f.Clusters)
	runtime.GC()
	clock := of.startStopwatch()
	errs := make([]error, len(f.Clusters))
	var reading sync.WaitGroup
	for i, cluster := range f.Clusters {
		client, err := rest.HTTPClientFor(cluster.Config())
		if err != nil {
			return err
		}
		clients[i] = client
		reading.Go(func() { errs[i] = f.readLists(ctx, client, cluster) })
	}
	reading.Wait()
	var r Result
	clock.stop(&r)
	f.result.Wall, f.result.CPU, f.result.Received = r.Wall, r.CPU, r.Received
	if err := errors.Join(errs...); err != nil {
		return err
	}
	for _, client := range clients {
		client.CloseIdleConnections()
	}
	var err error
	if f.result.After, err = extra.Fleet(ctx, f.Control, extra.FleetUsagePath); err != nil {
		return err
	}
	f.result.PeakRSS, err = peakRSS()
	return err
}

func (f *fleet) readLists(ctx context.Context, client *http.Client, cluster Cluster) error {
	for _, resource := range f.Resources {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, cluster.Host+"/api/v1/"+resource, nil)
		if err != nil {
			return err
		}
		response, err := client.Do(request)
		if err != nil {
			return err
		}
		_, err = io.Copy(io.Discard, response.Body)
		response.Body.Close()
		if err != nil {
			return err
		}
		if response.StatusCode != http.StatusOK {
			return fmt.Errorf("%s of %s: %s", resource, cluster.Host, response.Status)
		}
	}
	return nil
}

// run measures informers until they have synced, then idle, then through an outage.
func (f *fleet) run(ctx context.Context, follow FollowFleet) (err error) {
	f.result.Informers = len(f.Clusters) * len(f.Resources)
	f.current = make([]atomic.Int64, f.result.Informers)
	f.began = time.Now()
	budget := informer.NewBudget(max(f.Budget, 1))
	runtime.GC()
	stopProfile, err := f.profileCPU("sync")
	if err != nil {
		return err
	}
	clock := meterOf(f.Clusters).startStopwatch()
	if f.Leases {
		err = f.followLeases(ctx, budget)
	} else {
		var stop func()
		stop, err = follow(ctx, FollowedFleet{Clusters: f.Clusters, Resources: f.Resources, Factory: f.factory, Budget: budget,
			Config: func(cluster, resource int) informer.InformerConfig { return f.config(cluster, resource, budget) }})
		if stop != nil {
			f.stop = stop
		}
	}
	if err != nil {
		return err
	}
	var r Result
	clock.stop(&r)
	stopProfile()
	f.result.Wall, f.result.CPU, f.result.Received, f.result.Objects = r.Wall, r.CPU, r.Received, f.added.Load()
	if f.result.SyncedRSS, err = peakRSS(); err != nil {
		return err
	}
	if f.result.After, err = extra.Fleet(ctx, f.Control, extra.FleetUsagePath); err != nil {
		return err
	}
	if err := f.idle(); err != nil {
		return err
	}
	if f.Outage > 0 {
		if err := f.outage(ctx); err != nil {
			return err
		}
	}
	f.result.PeakRSS, err = peakRSS()
	return err
}

// config is that of an informer.
func (f *fleet) config(cluster, resource int, budget *informer.Budget) informer.InformerConfig {
	current := &f.current[cluster*len(f.Resources)+resource]
	config := informer.InformerConfig{
		ExampleObject: &informer.RawObject{},
		Budget:        budget,
		Handler: informer.ResourceEventHandlerFuncs{
			AddFunc:    func(interface{}) { f.added.Add(1) },
			UpdateFunc: func(interface{}, interface{}) { current.Store(int64(time.Since(f.began))) },
		},
		ErrorHandler: func(*informer.Reflector, error) {},
	}
	if f.Paged {
		config.ListMode = informer.ListModePaged
	}
	return config
}

// followLeases takes a lease for each resource of each cluster, and waits for those of clusters
// that nothing is wrong with.
func (f *fleet) followLeases(ctx context.Context, budget *informer.Budget) error {
	var awaited []member
	for i, cluster := range f.Clusters {
		lws, err := informer.NewDynamicListerWatcherFactory(cluster.Config())
		if err != nil {
			return err
		}
		for k, name := range f.Resources {
			resource := schema.GroupVersionResource{Version: "v1", Resource: name}
			lease, err := f.factory.AcquireResourceVersion(resource, factory.InformerOptions{Cluster: cluster.Host}, func() informer.ResourceVersionInformer {
				config := f.config(i, k, budget)
				config.ListerWatcher = lws.ForResource("", resource)
				return informer.NewResourceVersionInformer(name, config)
			})
			if err != nil {
				return err
			}
			if err := lease.Start(); err != nil {
				return err
			}
			if !cluster.Troubled {
				awaited = append(awaited, lease)
			}
		}
	}
	for _, m := range awaited {
		if err := done(ctx, m.Informer.HasSyncedChecker().Done()); err != nil {
			return err
		}
	}
	return nil
}

// idle notes what informers hold that wait.
func (f *fleet) idle() error {
	time.Sleep(max(time.Second, f.Settle)) // for what they listed with to be let go
	settled := settledMemory()
	debug.FreeOSMemory()
	rss, err := residentMemory()
	if err != nil {
		return err
	}
	n := float64(f.result.Informers)
	f.result.RSS = rss
	f.result.StackBytes, f.result.LiveBytes = float64(settled.StackInuse)/n, float64(settled.HeapAlloc)/n
	f.result.Goroutines = float64(runtime.NumGoroutine()) / n
	return errors.Join(f.profile("idle", "heap"), f.profile("idle", "goroutine"))
}

// outage has the servers go away, and measures until all informers are current again.
func (f *fleet) outage(ctx context.Context) (err error) {
	o := &FleetOutage{}
	f.result.Outage = o
	added := f.added.Load()
	stopProfile, err := f.profileCPU("away")
	if err != nil {
		return err
	}
	before := cpuTime()
	if _, err := extra.Fleet(ctx, f.Control, extra.FleetLeavePath); err != nil {
		return err
	}
	select {
	case <-time.After(f.Outage):
	case <-ctx.Done():
		return ctx.Err()
	}
	stopProfile()
	if stopProfile, err = f.profileCPU("return"); err != nil {
		return err
	}
	defer func() { stopProfile() }()
	back, used := time.Since(f.began), cpuTime()
	o.AwayCPU = used - before
	if o.Usage, err = extra.Fleet(ctx, f.Control, extra.FleetReturnPath); err != nil {
		return err
	}
	for deadline := time.Now().Add(outagePatience); f.count() < f.result.Informers; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			return fmt.Errorf("%d of %d informers are current %v after the return", f.count(), f.result.Informers, outagePatience)
		}
	}
	o.CPU = cpuTime() - used
	var took []time.Duration
	for i := range f.current {
		took = append(took, time.Duration(f.current[i].Load())-back)
	}
	slices.Sort(took)
	o.Most, o.All, o.Listed = took[len(took)*95/100-1], took[len(took)-1], f.added.Load()-added
	o.After, err = extra.Fleet(ctx, f.Control, extra.FleetUsagePath)
	return err
}

// count returns how many informers are current.
func (f *fleet) count() (n int) {
	for i := range f.current {
		if f.current[i].Load() > 0 {
			n++
		}
	}
	return n
}

// profile writes a profile of a name at a moment.
func (f *fleet) profile(moment, name string) error {
	if f.Profile == "" {
		return nil
	}
	file, err := os.Create(f.Profile + "." + moment + "." + name)
	if err != nil {
		return err
	}
	return errors.Join(pprof.Lookup(name).WriteTo(file, 0), file.Close())
}

// profileCPU begins a profile of the CPU, and returns what ends it.
func (f *fleet) profileCPU(moment string) (stop func(), err error) {
	if f.Profile == "" {
		return func() {}, nil
	}
	return cpuProfile(f.Profile + "." + moment)
}
