package fleet_test

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"pgregory.net/rapid"

	"github.com/rvinformer/informer/fleet"
	"github.com/rvinformer/informer/informertest"
)

// clustersOfModel are how many clusters come and go in a model.
const clustersOfModel = 24

// world is a fleet, the servers of its clusters, and what the handlers should believe of them.
type world struct {
	servers []*informertest.Server
	fleet   *fleet.Fleet
	mirror  *mirror
	// added are the clusters in the fleet, by number; they have the server of the same number, or
	// the next one if moved is true.
	added, moved map[int]bool
	// removed has what was believed of a cluster when it was removed.
	removed map[int]map[schema.GroupVersionResource]map[string]string
	stop    func()
}

var modelled = []schema.GroupVersionResource{pods, deployments, widgets, gadgets}

func TestRandomClustersComeAndGo(t *testing.T) {
	checks := flag.Lookup("rapid.checks")
	if before := checks.Value.String(); before == checks.DefValue { // each is hours of 24 clusters
		require.NoError(t, flag.Set(checks.Name, "4"))
		defer func() { require.NoError(t, flag.Set(checks.Name, before)) }()
	}
	bubble(t, func(t *testing.T) {
		// rapid would ask for a deadline, which a bubble does not have.
		rapid.Check(struct{ testing.TB }{t}, func(rt *rapid.T) {
			w := newWorld(rt)
			defer w.close()
			rt.Repeat(map[string]func(*rapid.T){
				"add":       w.add,
				"add more":  func(t *rapid.T) { w.add(t); w.add(t); w.add(t) },
				"remove":    w.remove,
				"write":     w.write,
				"write all": func(t *rapid.T) { w.writeAll(t) },
				"define":    w.define,
				"break":     w.breaks,
				"heal":      func(t *rapid.T) { w.server(t).Heal() },
				"cut":       func(t *rapid.T) { w.server(t).CloseClientConnections() },
				"compact":   func(t *rapid.T) { w.server(t).Compact() },
				"restart":   func(*rapid.T) { w.stop(); w.run() },
				"wait":      func(t *rapid.T) { time.Sleep(time.Duration(rapid.IntRange(0, 90).Draw(t, "seconds")) * time.Second) },
				"compare":   w.compare,
			})
			w.compare(rt)
		})
	})
}

func newWorld(t *rapid.T) *world {
	w := &world{mirror: newMirror(), added: map[int]bool{}, moved: map[int]bool{}, removed: map[int]map[schema.GroupVersionResource]map[string]string{}}
	for range clustersOfModel {
		s := informertest.NewServer(informertest.Options{InMemory: true, Resources: withDefinitions()})
		w.servers = append(w.servers, s)
		create(t, s, pods, "a")
	}
	w.fleet = newFleet(t, w.mirror, fleet.Config{
		Groups:    []fleet.Group{{Name: "pods", Resources: []string{"pods"}}, {Name: "rest", Except: []string{"pods"}}},
		Configure: w.mirror.seeded,
		Known: func(_ context.Context, u fleet.Unit) (known []schema.GroupVersionResource, _ error) {
			for _, r := range modelled {
				if (r == pods) == (u.Group == "pods") && len(w.mirror.keys(u.Cluster, r)) > 0 {
					known = append(known, r)
				}
			}
			return known, nil
		},
	})
	w.run()
	return w
}

func (w *world) run() {
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { w.fleet.Run(ctx) })
	w.stop = func() {
		cancel()
		running.Wait()
	}
}

func (w *world) close() {
	w.stop()
	for _, s := range w.servers {
		s.Close()
	}
}

func name(i int) string { return fmt.Sprintf("cluster-%02d", i) }

func (w *world) number(t *rapid.T) int {
	return rapid.IntRange(0, clustersOfModel-1).Draw(t, "cluster")
}

func (w *world) server(t *rapid.T) *informertest.Server { return w.servers[w.number(t)] }

// of is the server of a cluster.
func (w *world) of(i int) *informertest.Server {
	if w.moved[i] {
		i = (i + 1) % clustersOfModel
	}
	return w.servers[i]
}

func (w *world) add(t *rapid.T) {
	i := w.number(t)
	if w.added[i] {
		require.ErrorIs(t, w.fleet.Add(name(i), w.of(i).Config()), fleet.ErrClusterExists)
		return
	}
	if was := w.of(i); w.removed[i] != nil {
		w.moved[i] = rapid.IntRange(0, 3).Draw(t, "moved") == 0
		if w.of(i) != was { // its resource versions mean nothing any more
			w.mirror.forget(name(i))
		}
	}
	require.NoError(t, w.fleet.Add(name(i), w.of(i).Config()))
	w.added[i] = true
	delete(w.removed, i)
}

func (w *world) remove(t *rapid.T) {
	i := w.number(t)
	ended := w.fleet.Remove(name(i))
	if !w.added[i] {
		<-ended
		return
	}
	delete(w.added, i)
	<-ended
	w.removed[i] = w.believed(i)
}

// believed is what the handlers believe of a cluster.
func (w *world) believed(i int) map[schema.GroupVersionResource]map[string]string {
	all := map[schema.GroupVersionResource]map[string]string{}
	for _, r := range modelled {
		all[r] = w.mirror.keys(name(i), r)
	}
	return all
}

func (w *world) write(t *rapid.T) { w.writeTo(t, w.server(t)) }

func (w *world) writeAll(t *rapid.T) {
	for _, s := range w.servers {
		w.writeTo(t, s)
	}
}

// writeTo creates, updates or deletes an object. A resource that is not served takes none.
func (w *world) writeTo(t *rapid.T, s *informertest.Server) {
	r := rapid.SampledFrom(modelled).Draw(t, "resource")
	key := rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "name")
	if rapid.Bool().Draw(t, "delete") {
		_ = s.Delete(r, "default", key)
		return
	}
	o := object(r, "default", key)
	o.SetLabels(map[string]string{"version": s.ResourceVersion()})
	if _, err := s.Update(r, o); err != nil {
		_, _ = s.Create(r, o)
	}
}

// define adds a custom resource, or deletes it.
func (w *world) define(t *rapid.T) {
	s := w.server(t)
	if _, err := s.Get(crds, "", "gadgets.example.com"); err == nil {
		s.RemoveResource(gadgets)
		require.NoError(t, s.Delete(crds, "", "gadgets.example.com"))
		return
	}
	s.AddResource(served(gadgets))
	create(t, s, crds, "gadgets.example.com")
}

func (w *world) breaks(t *rapid.T) {
	w.server(t).Inject(informertest.Fault{Effect: rapid.SampledFrom([]informertest.Effect{
		informertest.Refuse(), informertest.Hang(), informertest.Status(500), informertest.Status(403), informertest.Slow(2000), informertest.Cut(300),
	}).Draw(t, "effect")})
}

// compare heals the servers, waits, and compares what the handlers believe of all clusters with the
// servers.
func (w *world) compare(t *rapid.T) {
	for _, s := range w.servers {
		s.Heal()
	}
	time.Sleep(15 * time.Minute) // the longest until a resource that went unwatched is discovered to be gone
	for i := range w.added {
		require.NoError(t, w.fleet.WaitForSync(context.Background(), name(i)))
	}
	synctest.Wait()
	for _, i := range slices.Sorted(maps.Keys(w.added)) {
		for _, r := range modelled {
			if _, err := w.of(i).ResourceVersions(r, ""); err != nil { // it is not served
				require.Empty(t, w.mirror.keys(name(i), r), "%s of %s", r, name(i))
				continue
			}
			w.mirror.requireRight(t, name(i), w.of(i), r)
		}
		now, _ := w.fleet.Cluster(name(i))
		require.Equal(t, fleet.ClusterKnown, now.State)
		require.NoError(t, now.LastError)
	}
	for i, was := range w.removed {
		require.Equal(t, was, w.believed(i), "nothing of a removed cluster is told")
	}
	require.Len(t, w.fleet.Clusters(), len(w.added))
}
