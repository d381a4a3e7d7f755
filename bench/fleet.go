package main

import (
	"bytes"
	"cmp"
	"flag"
	"fmt"
	"strings"
	"time"

	"github.com/rvinformer/informer/bench/podserver"
	"github.com/rvinformer/informer/bench/race"
)

// fleet has a fleet of clusters followed.
type fleet struct {
	settings
	clusters, kinds, troubled int
	settle, outage            time.Duration
	leases, paged             bool
	only                      string
	heat                      *heat
}

// fleetSettles is how long a quiet watch-list may last until it is replaced: until a bookmark
// comes, 30 s more, and some for a busy machine.
const fleetSettles = 100 * time.Second

func newFleet() *fleet {
	return &fleet{settings: newSettings(3, 20, "fleet"), clusters: 500, kinds: 50, troubled: 30, settle: fleetSettles, outage: time.Minute}
}

func (f *fleet) flags(flags *flag.FlagSet) {
	f.settings.flags(flags)
	flags.IntVar(&f.clusters, "clusters", f.clusters, "simulated clusters")
	flags.IntVar(&f.kinds, "kinds", f.kinds, "resources of each, each with an informer")
	flags.IntVar(&f.troubled, "troubled", f.troubled, "clusters in trouble: a third dead, a third slow, a third forbidden")
	flags.DurationVar(&f.settle, "settle", f.settle, "how long the informers of all healthy servers are left alone before their memory is measured")
	flags.DurationVar(&f.outage, "outage", f.outage, "how long all servers are away; 0 leaves that out")
	flags.BoolVar(&f.leases, "leases", f.leases, "leases of a factory instead of package fleet")
	flags.BoolVar(&f.paged, "paged", f.paged, "lists in pages instead of watch-lists")
	flags.StringVar(&f.only, "only", "", "only what has this in its name")
}

// fleetCase is one way that a fleet is followed.
type fleetCase struct {
	name string
	// fewer leaves those in trouble out, and troubled has them; else all clusters are healthy.
	fewer, troubled bool
	floor, outage   bool
}

// The cases, in the order of their runs.
const (
	fleetFloor     = "plain GETs"
	fleetHealthy   = "informers, all healthy"
	fleetFewer     = "informers, without those in trouble"
	fleetTroubled  = "informers, with those in trouble"
	fleetInTrouble = 3 // kinds of trouble
)

var fleetCases = []fleetCase{
	{name: fleetFloor, floor: true, outage: true},
	{name: fleetHealthy, outage: true},
	{name: fleetFewer, fewer: true},
	{name: fleetTroubled, troubled: true},
}

// inTrouble are how many servers have each kind of trouble: those that send slowly, as many that
// answer 403, those that refuse connections, and those that take them and never answer.
func (f *fleet) inTrouble() (each, refuse, swallow int) {
	each = f.troubled / fleetInTrouble
	dead := f.troubled - 2*each
	return each, dead / 2, dead - dead/2
}

// servers are those of a case.
func (f *fleet) servers(c fleetCase) (s simulated) {
	add := func(n int, trouble podserver.Trouble) {
		for range n {
			s.Options = append(s.Options, podserver.Options{Pods: f.pods, Resources: f.resources(), Trouble: trouble})
		}
	}
	if !c.fewer && !c.troubled {
		add(f.clusters, podserver.Healthy)
		return s
	}
	add(f.clusters-f.troubled, podserver.Healthy)
	if c.troubled {
		var each int
		each, s.Refuse, s.Swallow = f.inTrouble()
		add(each, podserver.Slow)
		add(each, podserver.Forbidden)
	}
	return s
}

func (f *fleet) resources() (names []string) {
	for i := range f.kinds {
		names = append(names, fmt.Sprintf("kind%02ds", i))
	}
	return names
}

func (f *fleet) plan(all contestants) ([]*heat, error) {
	f.heat = f.newHeat(race.StartFleet, 0)
	for _, c := range fleetCases {
		if !strings.Contains(c.name, f.only) {
			continue
		}
		contestant := "fleet"
		switch {
		case c.floor:
			contestant = "floor"
		case f.leases:
			contestant = "leases"
		}
		order := race.Order{Many: &race.Many{Resources: f.resources(), Paged: f.paged, Budget: defaultBudget}}
		if c.outage {
			order.Many.Settle, order.Many.Outage = f.settle, f.outage
		}
		f.heat.addMany(race.Entry{Name: c.name, Floor: fleetFloor}, all.named(contestant), f.servers(c), order)
	}
	return []*heat{f.heat}, nil
}

var fleetColumns = []column{
	figure("synced after", duration, wall), ownRatio("× the floor", wall), figure("CPU", duration, cpu),
	figure("the servers' CPU", duration, func(r race.Result) float64 { return seconds(r.Many.After.CPU - r.Many.Before.CPU) }),
	figure("received", received, receivedMB),
	figure("peak RSS", mib, syncedMB),
	figure("connections", count, func(r race.Result) float64 { return float64(r.Many.After.Accepted) }),
}

var fleetIdleColumns = []column{
	figure("goroutines each", as("%.2f"), goroutines), figure("stacks each", kib, stackKiB), figure("live objects each", kib, liveKiB),
	figure("resident, in all", mib, func(r race.Result) float64 { return float64(r.Many.RSS) / (1 << 20) }), figure("peak of the whole run", mib, peakMB),
}

// syncedMB is the peak until all had synced; a floor has no other one.
func syncedMB(r race.Result) float64 { return float64(cmp.Or(r.Many.SyncedRSS, r.PeakRSS)) / (1 << 20) }

func outageMost(r race.Result) float64 { return seconds(r.Many.Outage.Most) }
func outageAll(r race.Result) float64  { return seconds(r.Many.Outage.All) }
func outageCPU(r race.Result) float64  { return seconds(r.Many.Outage.CPU) }

// outageColumns begin with those that bare watches have a figure for, too.
var outageColumns = []column{
	figure("95 of 100 current after", duration, outageMost), figure("all current after", duration, outageAll), figure("CPU until then", duration, outageCPU),
	figure("CPU of the outage", duration, func(r race.Result) float64 { return seconds(r.Many.Outage.AwayCPU) }),
	figure("attempts to connect", count, func(r race.Result) float64 { return float64(r.Many.Outage.Usage.Attempts) }),
	figure("most at one server within a second", func(v float64) string { return fmt.Sprint(int(v)) }, func(r race.Result) float64 { return float64(r.Many.Outage.Usage.MostAttempts) }),
	figure("objects listed again", count, func(r race.Result) float64 { return float64(r.Many.Outage.Listed) }),
}

func (f *fleet) sections() ([]section, error) {
	var b bytes.Buffer
	b.WriteString(f.head(fmt.Sprintf("## A fleet of %d clusters", f.clusters)))
	b.WriteString(quoted(fmt.Sprintf(`
%d servers ('bench/podserver') in one process, each with an address, a certificate and connections of its own, over TLS with HTTP/2; and one
process with an informer for each of %d resources of each server, %s in all, with %d objects each: %s, raw
objects, %s, and one budget of %d MiB. The floor is the same lists as plain GETs whose bodies are thrown away: all servers side by
side, and the lists of one server one after the other over one connection. The bytes received are counted at the sockets, and no answer
is compressed. Both processes share the cores.
`, f.clusters, f.kinds, thousands(f.clusters*f.kinds), f.pods, map[bool]string{false: "package 'fleet', which discovers them", true: "leases of one 'factory.Factory'"}[f.leases],
		map[bool]string{false: "watch-lists", true: "lists in pages"}[f.paged], defaultBudget>>20)))
	f.heat.table(&b, "Start", fleetColumns...)
	if len(f.heat.runs[fleetTroubled])*len(f.heat.runs[fleetFewer]) > 0 {
		each, refuse, swallow := f.inTrouble()
		fmt.Fprintf(&b, quoted(`
Of the %d in trouble, %d are dead (%d refuse connections, %d take them and never answer), %d send %s bytes a second in all, and %d answer 403. They
are not waited for. Beside the run without them, the others have synced within %s times its time.
`), f.troubled, refuse+swallow, refuse, swallow, each, thousands(podserver.SlowBytes), each, times(f.heat.ratio(fleetTroubled, fleetFewer, wall)))
	}
	if len(f.heat.runs[fleetHealthy]) > 0 {
		f.idleTables(&b)
	}
	return []section{{more, "bench-fleet", b.Bytes()}}, nil
}

// idleTables writes what became of the informers that had synced.
func (f *fleet) idleTables(b *bytes.Buffer) {
	healthy := f.heat.having(fleetHealthy)
	healthy.prefix = "informers, "
	healthy.table(b, fmt.Sprintf("%s informers, idle", thousands(healthy.runs[fleetHealthy][0].Many.Informers)), fleetIdleColumns...)
	if f.settle > 0 {
		fmt.Fprintf(b, quoted(`
Measured %v after all had synced. By then, each informer had ended its quiet watch-list and gone on with a watch, which frees what HTTP/2 had
received the last objects in.
`), f.settle)
	}
	if f.outage == 0 {
		return
	}
	healthy.table(b, fmt.Sprintf("All servers away for %v, and back", f.outage), outageColumns...)
	if len(f.heat.runs[fleetFloor]) > 0 {
		var bare, beside []string
		for _, figure := range []func(race.Result) float64{outageMost, outageAll, outageCPU} {
			floor := f.heat.of(fleetFloor, figure)
			bare, beside = append(bare, duration(floor)), append(beside, times(f.heat.of(fleetHealthy, figure)/floor))
		}
		row(b, "as many bare watches", append(bare, "-", "-", "-", "-")...)
		row(b, "× the bare watches", append(beside, "-", "-", "-", "-")...)
	}
	b.WriteString(quoted(`
All connections are broken at once, and the servers take and close every new one until they are back. One object of each resource changes
meanwhile, and an informer is current when its handler has the change. The bare watches are opened through an 'http.Client' over one new connection to
each server, all side by side, and the first event of each is read: no informers can be back sooner on these cores.
`))
}
