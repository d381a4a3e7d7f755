package main

import (
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/fleet"
	"github.com/rvinformer/informer/fleet/shards"
)

// model is what is simulated: a fleet, its replicas, and what things cost.
type model struct {
	seed     uint64
	clusters int
	replicas int
	objects  int64 // in all clusters
	// spread is how unequal clusters are: the standard deviation of the logarithm of their sizes.
	spread float64
	groups []group
	costs  costs
	times  shards.Config // its times only
}

// group is a group of resources of each cluster.
type group struct {
	name   string
	shards int
	kinds  int
	part   float64 // of the objects of a cluster
}

// costs are what was measured or, where it says so, assumed.
type costs struct {
	// Measured: docs/performance.md has the commands.
	wireBytes       int64         // of an object in a list, in JSON
	checkpointBytes int64         // of an object in a checkpoint
	storedBytes     int64         // of an object in memory
	informerBytes   int64         // of an idle informer in memory
	readCPU         time.Duration // of an object of a first list
	loadCPU         time.Duration // of an object of a checkpoint
	informerCPU     time.Duration // to start an informer
	lookCPU         time.Duration // of a replica that decides, for each unit
	planCPU         time.Duration // of a new plan with 200 members, for each unit

	// Assumed.
	writesPerSecond float64       // that the coordinating API server takes
	latency         time.Duration // of a request to it, one way
	watchDelay      time.Duration // until a write is seen in a watch
	clusterLatency  time.Duration // of a request to a cluster or to the database
	cores           int64         // of a replica
	churn           float64       // changes of an object in an hour
	podStart        time.Duration // until the process of a new pod runs
}

func measured() costs {
	return costs{
		wireBytes: 4700, checkpointBytes: 62, storedBytes: 40, informerBytes: 40 << 10,
		readCPU: 8700 * time.Nanosecond, loadCPU: 600 * time.Nanosecond, informerCPU: 760 * time.Microsecond,
		lookCPU: 4600 * time.Nanosecond, planCPU: 4600 * time.Nanosecond,
		writesPerSecond: 1000, latency: 2 * time.Millisecond, watchDelay: 10 * time.Millisecond,
		clusterLatency: 50 * time.Millisecond, cores: 2, churn: 0.2, podStart: 10 * time.Second,
	}
}

// whole is one unit for each cluster.
var whole = []group{{name: "all", shards: 1, kinds: 50, part: 1}}

// split has the pods of each cluster, two objects of five, in four shards.
var split = []group{{name: "pods", shards: 4, kinds: 1, part: 0.4}, {name: "rest", shards: 1, kinds: 49, part: 0.6}}

// full is the model of the document.
func full() model {
	return model{seed: 1, clusters: 5000, replicas: 200, objects: 100_000_000, spread: 1.2, groups: whole, costs: measured()}
}

// with returns the model with other groups.
func (m model) with(groups []group) model {
	m.groups = groups
	return m
}

// world is the units of a model.
type world struct {
	model
	units   []fleet.Unit
	objects []int64 // of each unit
	kinds   []int   // of each unit
	place   map[fleet.Unit]int
	total   int64
}

// newWorld draws the sizes of the clusters, and divides them into units as package fleet does.
func newWorld(m model) (*world, error) {
	var err error
	if m.times, err = m.times.Times(); err != nil {
		return nil, err
	}
	random := rand.New(rand.NewPCG(m.seed, 1))
	sizes := make([]float64, m.clusters)
	sum := 0.0
	for i := range sizes {
		sizes[i] = math.Exp(m.spread * random.NormFloat64())
		sum += sizes[i]
	}
	w := &world{model: m, place: map[fleet.Unit]int{}}
	for i, size := range sizes {
		objects := float64(m.objects) * size / sum
		for _, g := range m.groups {
			for _, shard := range (informer.Shard{}).Split(g.shards) {
				u := fleet.Unit{Cluster: fmt.Sprintf("cluster-%04d", i), Group: g.name, Shard: shard}
				of := int64(objects * g.part / float64(g.shards))
				w.place[u] = len(w.units)
				w.units, w.objects, w.kinds = append(w.units, u), append(w.objects, of), append(w.kinds, g.kinds)
				w.total += of
			}
		}
	}
	return w, nil
}

// weight is what a unit costs: its objects, and what its informers hold, in objects.
func (w *world) weight(u fleet.Unit) int64 {
	i := w.place[u]
	return max(1, w.objects[i]+int64(w.kinds[i])*w.costs.informerBytes/w.costs.storedBytes)
}

// identity is that of a replica. A StatefulSet keeps it at a restart.
func identity(i int) string { return fmt.Sprintf("mirror-%d", i) }

// members are the identities of all replicas.
func (w *world) members() (all []string) {
	for i := range w.model.replicas {
		all = append(all, identity(i))
	}
	return all
}

// plan is who is to own what, by the rule of package shards.
func (w *world) plan(members []string) []string { return shards.Plan(members, w.units, w.weight) }
