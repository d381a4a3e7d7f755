package race

import (
	"context"
	"fmt"
	"sync"
	"time"

	"k8s.io/client-go/rest"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/factory"
)

// Clusters are the contestants that follow many idle clusters: informers, and bare watches.
func Clusters() []Contestant {
	contestant := func(name string, bare bool) Contestant {
		return Contestant{Entry: Entry{Name: name}, Run: func(ctx context.Context, o Order) (Result, error) { return followClusters(ctx, o, bare) }}
	}
	return []Contestant{contestant("leases", false), contestant("bare-watches", true)}
}

func followClusters(ctx context.Context, o Order, bare bool) (Result, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	c := &clusters{Many: *o.Many, ctx: ctx, factory: factory.New(), budget: o.Many.budget(), result: Result{Many: &ManyCosts{}}}
	c.follow = c.followInformers
	if bare {
		c.follow = c.openWatches
	}
	var err error
	switch o.Scenario {
	case IdleClusters:
		err = c.idle()
	case ChurnClusters:
		err = c.churn()
	default:
		err = fmt.Errorf("there is no scenario %q", o.Scenario)
	}
	cancel()
	c.factory.Shutdown()
	c.bare.Wait()
	return c.result, err
}

// clusters follows many clusters.
type clusters struct {
	Many
	ctx     context.Context
	factory *factory.Factory
	budget  *informer.Budget
	// follow follows a cluster.
	follow func(Cluster) ([]member, error)
	bare   sync.WaitGroup
	result Result
}

func (c *clusters) config(of Cluster) *rest.Config {
	config := of.Config()
	if c.HTTP1 {
		config.NextProtos = []string{"http/1.1"}
	}
	return config
}

// followInformers starts the informers of a cluster.
func (c *clusters) followInformers(of Cluster) ([]member, error) {
	return acquire(c.factory, of, c.config(of), c.Resources, func(int) informer.InformerConfig {
		return informer.InformerConfig{
			ExampleObject: &informer.RawObject{},
			Budget:        c.budget,
			Handler:       informer.ResourceEventHandlerFuncs{},
			ErrorHandler:  func(*informer.Reflector, error) {},
		}
	})
}

// idle measures what informers hold, each with its watch, beyond what those of the first
// cluster do.
func (c *clusters) idle() error {
	if err := c.watch(c.Clusters[:1]); err != nil {
		return err
	}
	before, err := held()
	if err != nil {
		return err
	}
	if err := c.watch(c.Clusters[1:]); err != nil {
		return err
	}
	after, err := held()
	if err != nil {
		return err
	}
	c.result.noteEach(before, after, (len(c.Clusters)-1)*len(c.Resources))
	return nil
}

// watch follows clusters until all watch. They have no objects.
func (c *clusters) watch(some []Cluster) error {
	for _, cluster := range some {
		if err := c.followUntilSynced(cluster); err != nil {
			return err
		}
	}
	// For what they listed with to be let go, and for idle connections to end.
	time.Sleep(time.Second)
	return c.ctx.Err()
}

func (c *clusters) followUntilSynced(of Cluster) error {
	members, err := c.follow(of)
	if err != nil {
		return err
	}
	return synced(c.ctx, members)
}

// openWatches opens the watches of a cluster, and reads them with next to nothing.
func (c *clusters) openWatches(of Cluster) ([]member, error) {
	client, err := rest.HTTPClientFor(c.config(of))
	if err != nil {
		return nil, err
	}
	for _, resource := range c.Resources {
		opened := make(chan error)
		c.bare.Go(func() { // the request's stack is deep
			body, err := Get(c.ctx, client, of.Host+"/api/v1/"+resource+"?watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true&timeoutSeconds=1800", "")
			if err == nil {
				c.bare.Go(func() { _ = Drain(body) }) // it ends with the context
			}
			opened <- err
		})
		if err := <-opened; err != nil {
			return nil, err
		}
	}
	return nil, nil
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
			if err := c.followUntilSynced(cluster); err != nil {
				return err
			}
		}
		time.Sleep(time.Second)
		return nil
	}
	if err := turn(len(c.Clusters) * len(c.Resources)); err != nil { // what there is once
		return err
	}
	before, err := held()
	if err != nil {
		return err
	}
	clock := (&Target{}).startStopwatch()
	if err := turn(c.Times); err != nil {
		return err
	}
	clock.stop(&c.result)
	after, err := held()
	if err != nil {
		return err
	}
	c.result.Many.GoroutinesLeft = after.goroutines - before.goroutines
	c.result.Many.BytesLeft = int64(after.memory.HeapAlloc) - int64(before.memory.HeapAlloc)
	return nil
}
