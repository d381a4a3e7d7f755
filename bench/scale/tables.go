package main

import (
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/rvinformer/informer/fleet/shards"
)

// report writes tables as Markdown.
type report struct{ io.Writer }

func (r report) header(columns ...string) {
	fmt.Fprintf(r, "\n| %s |\n|---%s\n", strings.Join(columns, " | "), strings.Repeat("|--:", len(columns)-1)+"|")
}

func (r report) row(cells ...string) { fmt.Fprintf(r, "| %s |\n", strings.Join(cells, " | ")) }

// layouts are ways to divide clusters into units.
var layouts = []struct {
	name   string
	groups []group
}{{"one unit per cluster", whole}, {"pods in 4 shards, and the rest", split}}

// newWorlds has one for each layout.
func newWorlds(m model) (worlds []*world, err error) {
	for _, l := range layouts {
		w, err := newWorld(m.with(l.groups))
		if err != nil {
			return nil, err
		}
		worlds = append(worlds, w)
	}
	return worlds, nil
}

// write simulates all and writes the tables.
func write(out io.Writer, m model) error {
	worlds, err := newWorlds(m)
	if err != nil {
		return err
	}
	r := report{out}
	r.units(worlds)
	if err := r.rest(m); err != nil {
		return err
	}
	r.events(worlds)
	r.region(worlds)
	r.database(worlds[0])
	return nil
}

// units writes what replicas have.
func (r report) units(worlds []*world) {
	m := worlds[0].model
	fmt.Fprintf(r, "\n### Units, and what a replica has\n\n%s clusters with %s objects in all, %d replicas. The largest cluster has %s objects.\n", thousands(int64(m.clusters)), thousands(m.objects), m.replicas, thousands(largestCluster(worlds[0])))
	r.header("", "units", "informers", "most objects of a unit", "units of a replica, most", "objects of a replica, average", "most", "load of a replica, most × average", "the same if all units weigh the same", "clusters of a replica, most", "connections in all", "memory of a replica, most")
	for i, l := range layouts {
		s := holdings(worlds[i])
		r.row(l.name, thousands(int64(len(worlds[i].units))), thousands(s.informers), thousands(slices.Max(worlds[i].objects)), thousands(s.mostUnits), thousands(s.average), thousands(s.most),
			fmt.Sprintf("%.2f", s.skew), fmt.Sprintf("%.2f", s.skewUnweighted), thousands(s.mostClusters), thousands(s.connections), fmt.Sprintf("%d MiB", s.memory>>20))
	}
}

// rest writes what Leases cost while nothing happens.
func (r report) rest(m model) error {
	size := int64(leaseBytes())
	fmt.Fprintf(r, "\n### Leases at rest\n\nA minute in which nothing happens. A replica watches all Leases of its fleet. An event about one takes %d bytes.\n", size)
	r.header("replicas", "lease duration", "writes per second", "watch events per second", "bytes per second", "bytes per second for each replica")
	for _, rest := range []struct {
		part     float64
		duration time.Duration
	}{{0.25, 0}, {0.5, 0}, {1, 0}, {2, 0}, {1, time.Minute}, {2, time.Minute}} {
		some := m
		some.replicas = int(float64(m.replicas) * rest.part)
		some.times.LeaseDuration = rest.duration
		w, err := newWorld(some)
		if err != nil {
			return err
		}
		p := newPlay(w)
		p.run(p.now + time.Minute)
		writes := float64(len(p.server.writes)) / 60
		events := writes * float64(some.replicas)
		r.row(fmt.Sprint(some.replicas), fmt.Sprintf("%.0f s", w.times.LeaseDuration.Seconds()), fmt.Sprintf("%.0f", writes), thousands(int64(events)), bytesText(int64(events)*size), bytesText(int64(writes)*size))
	}
	return nil
}

// events writes what happens when. The plays know nothing of each other, so they run side by side.
func (r report) events(worlds []*world) {
	rows := make([][][]string, len(worlds))
	var running sync.WaitGroup
	slots := make(chan struct{}, runtime.GOMAXPROCS(0))
	for i, w := range worlds {
		rows[i] = make([][]string, len(cases))
		for k, c := range cases {
			running.Go(func() {
				slots <- struct{}{}
				defer func() { <-slots }()
				p := newPlay(w)
				rows[i][k] = p.row(c.name, c.do(p))
			})
		}
	}
	running.Wait()
	fmt.Fprint(r, "\n### What happens when\n\nA unit is covered when it has an owner again, and current when its informers watch again.\n")
	for i, l := range layouts {
		fmt.Fprintf(r, "\nWith %s:\n", l.name)
		r.header("", "units started", "of them at another owner", "their objects", "read from checkpoints", "to list without checkpoints", "Lease writes of units", "most writes in a second", "covered after: median", "all", "current after: median", "99 of 100", "all", "it took")
		for _, row := range rows[i] {
			r.row(row...)
		}
	}
}

// region writes what the return of a region costs.
func (r report) region(worlds []*world) {
	fmt.Fprintf(r, "\n### A tenth of the clusters away for 10 minutes, and back\n\nAn object changes %.1f times an hour.\n", worlds[0].costs.churn)
	r.header("", "clusters", "watches to open again", "connections", "connections of a replica, most", "changes to read", "CPU of a replica, most", "the same if all is to be listed", "bytes then", "bytes then at a replica, most")
	for i, l := range layouts {
		g := regionOf(worlds[i])
		r.row(l.name, thousands(g.clusters), thousands(g.watches), thousands(g.connections), thousands(g.mostConnections), thousands(g.changes), seconds(g.cpu), seconds(g.listCPU), bytesText(g.listBytes), bytesText(g.mostListBytes))
	}
}

// database writes what a database has to take.
func (r report) database(w *world) {
	fmt.Fprint(r, "\n### The database\n")
	r.header("changes of an object in an hour", "rows per second, all replicas", "rows per second, one replica", "bytes per second off the wire, all replicas")
	for _, churn := range []float64{w.costs.churn / 4, w.costs.churn, w.costs.churn * 5} {
		rows := float64(w.total) * churn / 3600
		r.row(fmt.Sprint(churn), thousands(int64(rows)), fmt.Sprintf("%.0f", rows/float64(w.model.replicas)), bytesText(int64(rows)*w.costs.wireBytes))
	}
}

// cases are what happens to a fleet.
var cases = []struct {
	name string
	do   func(p *play) time.Duration
}{
	{"one replica crashes", func(p *play) time.Duration { return p.after15(func() { p.crash(1) }) }},
	{"a tenth of the replicas crash at once", func(p *play) time.Duration { return p.after15(func() { p.crash(max(1, len(p.replicas)/10)) }) }},
	{"rolling update, one at a time", func(p *play) time.Duration { return p.roll(1) }},
	{"rolling update, a tenth at a time", func(p *play) time.Duration { return p.roll(max(1, len(p.replicas)/10)) }},
	{"the coordinating API server is away for 5 s", func(p *play) time.Duration { return p.after15(func() { p.coordinatorAway(5 * time.Second) }) }},
	{"the coordinating API server is away for a minute", func(p *play) time.Duration {
		p.coordinatorAway(time.Minute)
		return p.after15(func() { p.run(p.now + time.Minute) })
	}},
}

// after15 lets something happen, waits for the Leases to expire, and until all units are current.
func (p *play) after15(do func()) time.Duration {
	began := p.now
	do()
	p.run(p.now + p.times.LeaseDuration + p.times.RetryPeriod)
	p.settle()
	return p.now - began
}

// row is what a play has counted.
func (p *play) row(name string, took time.Duration) []string {
	var owned, current []time.Duration
	for _, g := range p.gaps {
		owned, current = append(owned, g.owned), append(current, g.current)
	}
	slices.Sort(owned)
	slices.Sort(current)
	unitWrites := len(p.server.writes) - p.server.members
	return []string{name, thousands(int64(p.started)), thousands(int64(p.moved)), thousands(p.objectsStarted), bytesText(p.objectsStarted * p.costs.checkpointBytes), bytesText(p.objectsStarted * p.costs.wireBytes), thousands(int64(unitWrites)), thousands(int64(p.mostWrites())),
		quantile(owned, 50), quantile(owned, 100), quantile(current, 50), quantile(current, 99), quantile(current, 100), seconds(took)}
}

// mostWrites is the most writes within a second.
func (p *play) mostWrites() (most int) {
	slices.Sort(p.server.writes)
	first := 0
	for i, at := range p.server.writes {
		for at-p.server.writes[first] >= time.Second {
			first++
		}
		most = max(most, i-first+1)
	}
	return most
}

// held is what replicas have.
type held struct {
	informers, mostUnits, average, most, mostClusters, connections, memory int64
	// The most load of a replica, × the average, by the plan and by one that takes all units for
	// equal.
	skew, skewUnweighted float64
}

func holdings(w *world) (s held) {
	members := w.members()
	owners := w.plan(members)
	units, objects, memory := map[string]int64{}, map[string]int64{}, map[string]int64{}
	clusters := map[string]map[string]bool{}
	for i, o := range owners {
		units[o]++
		objects[o] += w.objects[i]
		memory[o] += w.objects[i]*w.costs.storedBytes + int64(w.kinds[i])*w.costs.informerBytes
		s.informers += int64(w.kinds[i])
		if clusters[o] == nil {
			clusters[o] = map[string]bool{}
		}
		clusters[o][w.units[i].Cluster] = true
	}
	for _, o := range members {
		s.mostUnits, s.most, s.memory = max(s.mostUnits, units[o]), max(s.most, objects[o]), max(s.memory, memory[o])
		s.mostClusters = max(s.mostClusters, int64(len(clusters[o])))
		s.connections += int64(len(clusters[o]))
	}
	s.average = w.total / int64(len(members))
	s.skew, s.skewUnweighted = w.skew(owners), w.skew(shards.Plan(members, w.units, nil))
	return s
}

// skew is the most load of a replica, × the average.
func (w *world) skew(owners []string) float64 {
	loads := map[string]int64{}
	var total, most int64
	for i, o := range owners {
		weight := w.weight(w.units[i])
		loads[o] += weight
		total += weight
		most = max(most, loads[o])
	}
	return float64(most) * float64(w.model.replicas) / float64(total)
}

func largestCluster(w *world) int64 {
	of := map[string]int64{}
	var most int64
	for i, u := range w.units {
		of[u.Cluster] += w.objects[i]
		most = max(most, of[u.Cluster])
	}
	return most
}

// region is what comes back at once.
type region struct {
	clusters, watches, connections, mostConnections, changes int64
	cpu, listCPU                                             time.Duration
	listBytes, mostListBytes                                 int64
}

func regionOf(w *world) (g region) {
	members := w.members()
	away := map[string]bool{}
	for i := range w.clusters / 10 {
		away[fmt.Sprintf("cluster-%04d", i)] = true
	}
	g.clusters = int64(len(away))
	connected := map[[2]string]bool{}
	connections, cpu, list := map[string]int64{}, map[string]time.Duration{}, map[string]int64{}
	for i, o := range w.plan(members) {
		u := w.units[i]
		if !away[u.Cluster] {
			continue
		}
		g.watches += int64(w.kinds[i])
		if at := [2]string{o, u.Cluster}; !connected[at] {
			connected[at] = true
			g.connections++
			connections[o]++
		}
		changes := int64(float64(w.objects[i]) * w.costs.churn / 6)
		g.changes += changes
		cpu[o] += w.costs.informerCPU*time.Duration(w.kinds[i]) + w.costs.readCPU*time.Duration(changes)
		list[o] += w.objects[i]
	}
	for _, o := range members {
		g.mostConnections = max(g.mostConnections, connections[o])
		g.cpu = max(g.cpu, cpu[o])
		g.listCPU = max(g.listCPU, cpu[o]+w.costs.readCPU*time.Duration(list[o]))
		g.listBytes += list[o] * w.costs.wireBytes
		g.mostListBytes = max(g.mostListBytes, list[o]*w.costs.wireBytes)
	}
	return g
}

func quantile(all []time.Duration, of int) string {
	if len(all) == 0 {
		return "-"
	}
	return seconds(all[max(0, (len(all)*of+99)/100-1)])
}

func seconds(d time.Duration) string {
	switch {
	case d < 100*time.Second:
		return fmt.Sprintf("%.1f s", d.Seconds())
	case d < 10*time.Minute:
		return fmt.Sprintf("%.0f s", d.Seconds())
	default:
		return fmt.Sprintf("%.0f min", d.Minutes())
	}
}

func bytesText(n int64) string {
	switch {
	case n >= 10_000_000_000:
		return fmt.Sprintf("%.0f GB", float64(n)/1e9)
	case n >= 1_000_000_000:
		return fmt.Sprintf("%.1f GB", float64(n)/1e9)
	case n >= 10_000_000:
		return fmt.Sprintf("%.0f MB", float64(n)/1e6)
	case n >= 1_000_000:
		return fmt.Sprintf("%.1f MB", float64(n)/1e6)
	default:
		return fmt.Sprintf("%.0f KB", float64(n)/1e3)
	}
}

func thousands(n int64) string {
	if n < 1000 {
		return fmt.Sprint(n)
	}
	return fmt.Sprintf("%s,%03d", thousands(n/1000), n%1000)
}
