package main

import (
	"bytes"
	"flag"
	"fmt"
	"time"

	"github.com/rvinformer/informer/bench/podserver"
	"github.com/rvinformer/informer/bench/race"
)

// clusters has many clusters followed.
type clusters struct {
	settings
	clusters, hugePods, times int
	idles                     []clustersIdle

	start, idle, churn *heat
}

func newClusters() *clusters {
	return &clusters{settings: newSettings(3, 200, "clusters"), clusters: 200, hugePods: 20_000, times: 1000, idles: clustersIdles}
}

func (c *clusters) flags(f *flag.FlagSet) {
	c.settings.flags(f)
	f.IntVar(&c.clusters, "clusters", c.clusters, "simulated clusters, each followed in 5 resources")
	f.IntVar(&c.hugePods, "huge", c.hugePods, "objects of each resource of a cluster that is huge")
	f.IntVar(&c.times, "times", c.times, "informers that are added and removed")
}

// clusterResources are what is followed of each.
var clusterResources = []string{"pods", "services", "secrets", "configmaps", "endpoints"}

// clustersStart is one way that they start.
type clustersStart struct {
	name     string
	budget   int64
	handling time.Duration
	// last are the troubles of the last clusters, fewer leaves these out, and huge has the last one
	// have more pods.
	last        []podserver.Trouble
	fewer, huge bool
}

const defaultBudget, hugeBudget = 16 << 20, 16 << 30

// troubles are of the last clusters where there are some.
var troubles = []podserver.Trouble{podserver.Dead, podserver.Slow, podserver.Forbidden}

var clustersStarts = []clustersStart{
	{name: "all healthy", budget: defaultBudget},
	{name: "without the last three", budget: defaultBudget, last: troubles, fewer: true},
	{name: "one dead, one slow, one forbidden", budget: defaultBudget, last: troubles},
	{name: "one huge", budget: defaultBudget, huge: true},
	{name: "all healthy, no limit (a budget of 16 GiB)", budget: hugeBudget},
	{name: "handlers that sleep 1 ms", budget: defaultBudget, handling: time.Millisecond},
	{name: "handlers that sleep 1 ms, no limit", budget: hugeBudget, handling: time.Millisecond},
}

// options are those of the servers.
func (c *clusters) options(s clustersStart) []podserver.Options {
	options := emptyClusters(c.clusters, false)
	for i := range options {
		options[i].Pods = c.pods
	}
	if s.huge {
		options[c.clusters-1].Pods = c.hugePods
	}
	healthy := c.clusters - len(s.last)
	if s.fewer {
		return options[:healthy]
	}
	for i, trouble := range s.last {
		options[healthy+i].Trouble = trouble
	}
	return options
}

func emptyClusters(n int, plain bool) []podserver.Options {
	options := make([]podserver.Options, n)
	for i := range options {
		options[i] = podserver.Options{Resources: clusterResources[1:], Plain: plain}
	}
	return options
}

// clustersIdle is one way that they are idle.
type clustersIdle struct {
	name               string
	plain, http1, bare bool
}

var clustersIdles = []clustersIdle{
	{name: "HTTP/2"},
	{name: "HTTP/2, bare watches", bare: true},
	{name: "HTTP/1.1 over TLS", http1: true},
	{name: "HTTP/1.1 over TLS, bare watches", http1: true, bare: true},
	{name: "HTTP/1.1, plain", plain: true},
	{name: "HTTP/1.1, plain, bare watches", plain: true, bare: true},
}

func (c *clusters) plan(all contestants) ([]*heat, error) {
	leases, starting, bare := all.named("leases"), all.named("starting-leases"), all.named("bare-watches")
	c.start, c.idle, c.churn = c.newHeat(race.StartFleet, 0), c.newHeat(race.IdleClusters, 0), c.newHeat(race.ChurnClusters, 0)
	for _, s := range clustersStarts {
		servers := simulated{Options: c.options(s)}
		if s.huge {
			servers.NotAwaited = 1
		}
		c.add(c.start, s.name, starting, servers, race.Order{Many: &race.Many{Budget: s.budget, Handling: s.handling}})
	}
	for _, i := range c.idles {
		e, order := leases, race.Order{Many: &race.Many{Budget: defaultBudget, HTTP1: i.http1}}
		if i.bare {
			e = bare
		}
		c.add(c.idle, "idle, "+i.name, e, simulated{Options: emptyClusters(c.clusters, i.plain)}, order)
	}
	c.add(c.churn, "churn", leases, simulated{Options: emptyClusters(min(c.clusters, 20), false)}, race.Order{Many: &race.Many{Budget: defaultBudget, Times: c.times}})
	return []*heat{c.start, c.idle, c.churn}, nil
}

// add adds a variant with servers of its own.
func (c *clusters) add(h *heat, name string, e contestant, servers simulated, o race.Order) {
	o.Many.Resources = clusterResources
	h.addMany(race.Entry{Name: name}, e, servers, o)
}

var clustersStartColumns = []column{
	figure("synced after", duration, wall), figure("CPU", duration, cpu), figure("objects delivered", count, objects), figure("received", received, receivedMB),
	figure("peak of the budget", as("%.1f MiB"), func(r race.Result) float64 { return float64(r.Many.BudgetPeak) / (1 << 20) }), figure("peak RSS", mib, syncedMB),
}

var clustersIdleColumns = []column{
	figure("goroutines each", as("%.1f"), goroutines), figure("their stacks", kib, stackKiB), figure("live objects", kib, liveKiB),
	figure("stacks and heap in use", kib, idleKiB), figure("resident", kib, rssKiB),
}

func (c *clusters) sections() ([]section, error) {
	var b bytes.Buffer
	b.WriteString(c.head("## Many clusters"))
	fmt.Fprintf(&b, quoted(`
%d servers ('bench/podserver'), all in one process and each with an address, a certificate
and connections of its own; and one process that follows %d resources of each, with leases
of one 'factory.Factory', raw objects, watch-lists and one budget, of 16 MiB where nothing
else is said. A slow server sends %s bytes a second in all. The bytes received are counted at
the sockets, and no answer is compressed.
`), c.clusters, len(clusterResources), thousands(podserver.SlowBytes))
	c.start.table(&b, fmt.Sprintf("Start, %s objects of each resource", thousands(c.pods)), clustersStartColumns...)
	fmt.Fprintf(&b, "\nThose in trouble, and the huge one, with %s objects of each resource, are not waited for.\n", thousands(c.hugePods))
	c.idle.having("idle, ").table(&b, fmt.Sprintf("%s idle informers on %d servers, each with its watch", thousands(c.clusters*len(clusterResources)), c.clusters), clustersIdleColumns...)
	b.WriteString(quoted(`
Per informer, beyond what those of one server hold: a fifth of a connection included. A
bare watch is a GET of the same watch-list through the same client, read with 64 bytes.
`))
	fmt.Fprintf(&b, "\n%s informers that were stopped, removed and added again left %.0f goroutines and %.1f KiB of live objects, in all.\n", thousands(c.times),
		c.churn.of("churn", func(r race.Result) float64 { return float64(r.Many.GoroutinesLeft) }),
		c.churn.of("churn", func(r race.Result) float64 { return float64(r.Many.BytesLeft) / (1 << 10) }))
	return []section{{more, "bench-clusters", b.Bytes()}}, nil
}
