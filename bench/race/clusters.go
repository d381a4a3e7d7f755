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
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/factory"
)

// Cluster is one of many servers that a process follows.
type Cluster struct {
	Target
	// Troubled tells that it is not waited for.
	Troubled bool
}

// meterOf counts what comes from all clusters together.
func meterOf(clusters []Cluster) *Target {
	all := &Target{meter: &meter{}}
	for i := range clusters {
		clusters[i].meter = all.meter
	}
	return all
}

// ClustersOrder is what the program that follows many clusters is told.
type ClustersOrder struct {
	Do        ClustersScenario
	Clusters  []Cluster
	Resources []string
	// Budget is that of all informers, in bytes.
	Budget int64
	// HTTP1 asks for connections without HTTP/2, and Bare for watches without informers.
	HTTP1, Bare bool
	// Handling is how long a handler takes for an object.
	Handling time.Duration
	// Times is how often informers are added and removed.
	Times int
	// Profile, if set, is a file for the heap of the idle informers.
	Profile string
}

// ClustersScenario is something that informers of many clusters have to do.
type ClustersScenario string

const (
	// StartClusters: until all are synced.
	StartClusters ClustersScenario = "start"
	// IdleClusters: their watches established.
	IdleClusters ClustersScenario = "idle"
	// ChurnClusters: informers are added and removed again and again.
	ChurnClusters ClustersScenario = "churn"
)

// ClustersResult is what it has cost.
type ClustersResult struct {
	Informers int
	Objects   int64
	Wall, CPU time.Duration
	PeakRSS   int64
	// Received is what came off the sockets, in bytes.
	Received int64
	// BudgetPeak is the most that was in use of the budget.
	BudgetPeak int64

	// Per idle informer, as those of Result; and resident memory.
	Goroutines, StackBytes, LiveBytes, InUseBytes, RSS float64

	// GoroutinesLeft and BytesLeft are what there is more after informers were added and
	// removed, in all.
	GoroutinesLeft int
	BytesLeft      int64
}

// ClustersMain is the program that follows many clusters: it obeys one order.
func ClustersMain() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := obeyClusters(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "clusters:", err)
		os.Exit(1)
	}
}

func obeyClusters(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	c := &clusters{ctx: ctx, factory: factory.New()}
	if err := json.NewDecoder(os.Stdin).Decode(&c.ClustersOrder); err != nil {
		return fmt.Errorf("orders: %w", err)
	}
	c.budget = informer.NewBudget(max(c.Budget, 1))
	c.result.Informers = len(c.Clusters) * len(c.Resources)
	do := map[ClustersScenario]func() error{StartClusters: c.start, IdleClusters: c.idle, ChurnClusters: c.churn}[c.Do]
	if do == nil {
		return fmt.Errorf("there is no scenario %q", c.Do)
	}
	err := do()
	cancel()
	c.factory.Shutdown()
	c.bare.Wait()
	if err != nil {
		return fmt.Errorf("%s: %w", c.Do, err)
	}
	return json.NewEncoder(os.Stdout).Encode(c.result)
}

// clusters follows many clusters.
type clusters struct {
	ClustersOrder
	ctx     context.Context
	factory *factory.Factory
	budget  *informer.Budget
	told    atomic.Int64
	bare    sync.WaitGroup
	result  ClustersResult
}

// member is an informer of a cluster.
type member = *factory.Lease[informer.ResourceVersionInformer]

func (c *clusters) config(of Cluster) *rest.Config {
	config := of.Config()
	if c.HTTP1 {
		config.NextProtos = []string{"http/1.1"}
	}
	return config
}

// follow starts the informers of a cluster.
func (c *clusters) follow(of Cluster) (members []member, err error) {
	lws, err := informer.NewDynamicListerWatcherFactory(c.config(of))
	if err != nil {
		return nil, err
	}
	for _, name := range c.Resources {
		resource := schema.GroupVersionResource{Version: "v1", Resource: name}
		lease, err := c.factory.AcquireResourceVersion(resource, factory.InformerOptions{Cluster: of.Host}, func() informer.ResourceVersionInformer {
			return informer.NewResourceVersionInformer(name, informer.InformerConfig{
				ListerWatcher: lws.ForResource("", resource),
				ExampleObject: &informer.RawObject{},
				Budget:        c.budget,
				Handler:       informer.ResourceEventHandlerFuncs{AddFunc: c.add},
				ErrorHandler:  func(*informer.Reflector, error) {},
			})
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

func (c *clusters) add(interface{}) {
	c.told.Add(1)
	if c.Handling > 0 {
		time.Sleep(c.Handling)
	}
}

// start measures until all are synced that nothing is wrong with.
func (c *clusters) start() error {
	of := meterOf(c.Clusters)
	runtime.GC()
	clock := of.startStopwatch()
	var wait []member
	for _, cluster := range c.Clusters {
		members, err := c.follow(cluster)
		if err != nil {
			return err
		}
		if !cluster.Troubled {
			wait = append(wait, members...)
		}
	}
	if err := c.synced(wait); err != nil {
		return err
	}
	var r Result
	clock.stop(&r)
	c.result.Wall, c.result.CPU, c.result.Objects, c.result.BudgetPeak = r.Wall, r.CPU, c.told.Load(), c.budget.Peak()
	c.result.Received = r.Received
	err := r.notePeakRSS()
	c.result.PeakRSS = r.PeakRSS
	return err
}

// idle measures what informers hold, each with its watch, beyond what those of the first
// cluster do.
func (c *clusters) idle() error {
	if err := c.watch(c.Clusters[:1]); err != nil {
		return err
	}
	before, goroutines := settledMemory(), runtime.NumGoroutine()
	debug.FreeOSMemory()
	rss, err := residentMemory()
	if err != nil {
		return err
	}
	if err := c.watch(c.Clusters[1:]); err != nil {
		return err
	}
	after := settledMemory()
	debug.FreeOSMemory()
	rssAfter, err := residentMemory()
	if err != nil {
		return err
	}
	n := float64((len(c.Clusters) - 1) * len(c.Resources))
	each := func(before, after uint64) float64 { return (float64(after) - float64(before)) / n }
	c.result.StackBytes = each(before.StackInuse, after.StackInuse)
	c.result.LiveBytes = each(before.HeapAlloc, after.HeapAlloc)
	c.result.InUseBytes = each(before.HeapInuse+before.StackInuse, after.HeapInuse+after.StackInuse)
	c.result.Goroutines = float64(runtime.NumGoroutine()-goroutines) / n
	c.result.RSS = float64(rssAfter-rss) / n
	return c.profile()
}

// watch follows clusters until all watch. They have no objects.
func (c *clusters) watch(some []Cluster) error {
	for _, cluster := range some {
		if c.Bare {
			if err := c.watchBare(cluster); err != nil {
				return err
			}
			continue
		}
		members, err := c.follow(cluster)
		if err != nil {
			return err
		}
		if err := c.synced(members); err != nil {
			return err
		}
	}
	// For what they listed with to be let go, and for idle connections to end.
	time.Sleep(time.Second)
	return c.ctx.Err()
}

// synced waits until the informers of all members have synced.
func (c *clusters) synced(members []member) error {
	for _, m := range members {
		if err := done(c.ctx, m.Informer.HasSyncedChecker().Done()); err != nil {
			return err
		}
	}
	return nil
}

// watchBare opens watches, and reads them with next to nothing.
func (c *clusters) watchBare(of Cluster) error {
	client, err := rest.HTTPClientFor(c.config(of))
	if err != nil {
		return err
	}
	for _, resource := range c.Resources {
		request, err := http.NewRequestWithContext(c.ctx, http.MethodGet, of.Host+"/api/v1/"+resource+"?watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true&timeoutSeconds=1800", nil)
		if err != nil {
			return err
		}
		opened := make(chan error)
		c.bare.Go(func() { // the request's stack is deep
			response, err := client.Do(request)
			if err == nil {
				c.bare.Go(func() { readBare(response.Body) })
			}
			opened <- err
		})
		if err := <-opened; err != nil {
			return err
		}
	}
	return nil
}

func readBare(body io.ReadCloser) {
	defer body.Close()
	var buf [64]byte
	for {
		if _, err := body.Read(buf[:]); err != nil {
			return
		}
	}
}

func (c *clusters) profile() (err error) {
	if c.Profile == "" {
		return nil
	}
	for _, name := range []string{"heap", "goroutine"} {
		file, err := os.Create(c.Profile + "." + name)
		if err != nil {
			return err
		}
		if err := errors.Join(pprof.Lookup(name).WriteTo(file, 0), file.Close()); err != nil {
			return err
		}
	}
	return nil
}

// churn adds and removes informers, each time all of one cluster, with those of the
// others idle; and measures what that leaves.
func (c *clusters) churn() error {
	if err := c.watch(c.Clusters); err != nil {
		return err
	}
	turn := func(times int) error {
		for n := 0; n < times; n += len(c.Resources) {
			cluster := c.Clusters[n/len(c.Resources)%len(c.Clusters)]
			if err := done(c.ctx, c.factory.StopCluster(cluster.Host)); err != nil {
				return err
			}
			members, err := c.follow(cluster)
			if err != nil {
				return err
			}
			if err := c.synced(members); err != nil {
				return err
			}
		}
		time.Sleep(time.Second)
		return nil
	}
	if err := turn(len(c.Clusters) * len(c.Resources)); err != nil { // what there is once
		return err
	}
	before, goroutines := settledMemory(), runtime.NumGoroutine()
	clock := (&Target{}).startStopwatch()
	if err := turn(c.Times); err != nil {
		return err
	}
	var r Result
	clock.stop(&r)
	after := settledMemory()
	c.result.Wall, c.result.CPU = r.Wall, r.CPU
	c.result.GoroutinesLeft = runtime.NumGoroutine() - goroutines
	c.result.BytesLeft = int64(after.HeapAlloc) - int64(before.HeapAlloc)
	return nil
}

// residentMemory is what this process has in memory, in bytes.
func residentMemory() (int64, error) {
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0, err
	}
	var size, resident int64
	_, err = fmt.Sscan(string(text), &size, &resident)
	return resident * int64(os.Getpagesize()), err
}
