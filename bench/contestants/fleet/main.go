// Command fleet follows a fleet of clusters in one process, or reads the same bytes.
package main

import (
	"context"
	"fmt"
	"sync"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/bench/race"
	"github.com/rvinformer/informer/fleet"
)

func main() {
	race.Main(race.FleetFloor("floor"), race.Fleet("fleet", follow), race.Fleet("leases", race.FollowLeases))
}

// follow follows all clusters with package fleet, which discovers the resources.
func follow(ctx context.Context, f race.FollowedFleet) (stop func(), err error) {
	place, resources := map[string]int{}, map[string]int{}
	for i, name := range f.Resources {
		resources[name] = i
	}
	clusters, err := fleet.New(fleet.Config{
		Groups:  []fleet.Group{{Resources: f.Resources}},
		Factory: f.Factory, Budget: f.Budget,
		Configure: func(_ context.Context, t fleet.Target) (informer.InformerConfig, error) {
			return f.Config(place[t.Cluster], resources[t.Resource.Resource]), nil
		},
	})
	if err != nil {
		return nil, err
	}
	var awaited []string
	for i, cluster := range f.Clusters {
		name := fmt.Sprintf("cluster-%04d", i)
		place[name] = i
		if err := clusters.Add(name, cluster.Config()); err != nil {
			return nil, err
		}
		if !cluster.Troubled {
			awaited = append(awaited, name)
		}
	}
	running, end := context.WithCancel(ctx)
	var run sync.WaitGroup
	run.Go(func() { clusters.Run(running) })
	stop = func() {
		end()
		run.Wait()
	}
	return stop, clusters.WaitForSync(ctx, awaited...)
}
