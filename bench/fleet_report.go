package main

import (
	"bytes"
	"cmp"
	"fmt"
	"time"

	"github.com/rvinformer/informer/bench/podserver"
	"github.com/rvinformer/informer/bench/race"
)

// tables writes what came out as Markdown.
func (r *fleetReport) tables(b *bytes.Buffer) {
	p := r.plan
	fmt.Fprintf(b, "## A fleet of %d clusters\n\n    cd bench && go run . fleet\n\n%s, on %s%s.\n%s\n", p.clusters, time.Now().UTC().Format(time.DateOnly), hardware(), r.load.alone(), medians(p.runs))
	b.WriteString(quoted(fmt.Sprintf(`
%d servers ('bench/podserver') in one process, each with an address, a certificate and connections of its own, over TLS with HTTP/2; and one
process with an informer for each of %d resources of each server, %s in all, with %d objects each: %s, raw
objects, %s, and one budget of %d MiB. The floor is the same lists as plain GETs whose bodies are thrown away: all servers side by
side, and the lists of one server one after the other over one connection. The bytes received are counted at the sockets, and no answer
is compressed. Both processes share the cores.
`, p.clusters, p.kinds, thousands(p.clusters*p.kinds), p.pods, map[bool]string{false: "package 'fleet', which discovers them", true: "leases of one 'factory.Factory'"}[p.leases],
		map[bool]string{false: "watch-lists", true: "lists in pages"}[p.paged], p.budget>>20)))
	header(b, "Start", "synced after", "× the floor", "CPU", "the servers' CPU", "received", "peak RSS", "connections")
	for _, c := range fleetCases {
		if len(r.runs[c.name]) == 0 {
			continue
		}
		row(b, c.name, duration(r.of(c.name, wallOfFleet)), times(r.ratio(c.name, fleetFloor)),
			duration(r.of(c.name, func(f race.FleetResult) float64 { return f.CPU.Seconds() })),
			duration(r.of(c.name, func(f race.FleetResult) float64 { return (f.After.CPU - f.Before.CPU).Seconds() })),
			received(r.of(c.name, func(f race.FleetResult) float64 { return float64(f.Received) / (1 << 20) })),
			mib(r.of(c.name, func(f race.FleetResult) float64 { return float64(cmp.Or(f.SyncedRSS, f.PeakRSS)) / (1 << 20) })),
			thousands(int(r.of(c.name, func(f race.FleetResult) float64 { return float64(f.After.Accepted) }))))
	}
	if len(r.runs[fleetTroubled])*len(r.runs[fleetFewer]) > 0 {
		r.trouble(b)
	}
	healthy := r.runs[fleetHealthy]
	if len(healthy) == 0 {
		return
	}
	of := func(figure func(race.FleetResult) float64) float64 { return r.of(fleetHealthy, figure) }
	header(b, fmt.Sprintf("%s informers, idle", thousands(healthy[0].Informers)), "goroutines each", "stacks each", "live objects each", "resident, in all", "peak of the whole run")
	row(b, "all healthy", fmt.Sprintf("%.2f", of(func(f race.FleetResult) float64 { return f.Goroutines })),
		kib(of(func(f race.FleetResult) float64 { return f.StackBytes / (1 << 10) })),
		kib(of(func(f race.FleetResult) float64 { return f.LiveBytes / (1 << 10) })),
		mib(of(func(f race.FleetResult) float64 { return float64(f.RSS) / (1 << 20) })),
		mib(of(func(f race.FleetResult) float64 { return float64(f.PeakRSS) / (1 << 20) })))
	if p.settle > 0 {
		fmt.Fprintf(b, quoted(`
Measured %v after all had synced. By then, each informer had ended its quiet watch-list and gone on with a watch, which frees what HTTP/2 had
received the last objects in.
`), p.settle)
	}
	if p.outage == 0 {
		return
	}
	out := func(figure func(*race.FleetOutage) float64) float64 {
		return of(func(f race.FleetResult) float64 { return figure(f.Outage) })
	}
	header(b, fmt.Sprintf("All servers away for %v, and back", p.outage), "95 of 100 current after", "all current after", "CPU until then", "CPU of the outage",
		"attempts to connect", "most at one server within a second", "objects listed again")
	row(b, "all healthy", duration(out(func(o *race.FleetOutage) float64 { return o.Most.Seconds() })),
		duration(out(func(o *race.FleetOutage) float64 { return o.All.Seconds() })),
		duration(out(func(o *race.FleetOutage) float64 { return o.CPU.Seconds() })),
		duration(out(func(o *race.FleetOutage) float64 { return o.AwayCPU.Seconds() })),
		thousands(int(out(func(o *race.FleetOutage) float64 { return float64(o.Usage.Attempts) }))),
		fmt.Sprint(int(out(func(o *race.FleetOutage) float64 { return float64(o.Usage.MostAttempts) }))),
		thousands(int(out(func(o *race.FleetOutage) float64 { return float64(o.Listed) }))))
	if floor := r.runs[fleetFloor]; len(floor) > 0 {
		bare := func(figure func(*race.FleetOutage) float64) float64 {
			return r.of(fleetFloor, func(f race.FleetResult) float64 { return figure(f.Outage) })
		}
		most, all, cpu := func(o *race.FleetOutage) float64 { return o.Most.Seconds() }, func(o *race.FleetOutage) float64 { return o.All.Seconds() },
			func(o *race.FleetOutage) float64 { return o.CPU.Seconds() }
		row(b, "as many bare watches", duration(bare(most)), duration(bare(all)), duration(bare(cpu)), "-", "-", "-", "-")
		row(b, "× the bare watches", times(out(most)/bare(most)), times(out(all)/bare(all)), times(out(cpu)/bare(cpu)), "-", "-", "-", "-")
	}
	b.WriteString(quoted(`
All connections are broken at once, and the servers take and close every new one until they are back. One object of each resource changes
meanwhile, and an informer is current when its handler has the change. The bare watches are opened through an 'http.Client' over one new connection to
each server, all side by side, and the first event of each is read: no informers can be back sooner on these cores.
`))
}

// trouble says what was wrong with whom.
func (r *fleetReport) trouble(b *bytes.Buffer) {
	p := r.plan
	each := p.troubled / fleetInTrouble
	dead := p.troubled - 2*each
	fmt.Fprintf(b, quoted(`
Of the %d in trouble, %d are dead (%d refuse connections, %d take them and never answer), %d send %s bytes a second in all, and %d answer 403. They
are not waited for. Beside the run without them, the others have synced within %s times its time.
`), p.troubled, dead, dead/2, dead-dead/2, each, thousands(podserver.SlowBytes), each, times(r.ratio(fleetTroubled, fleetFewer)))
}

func wallOfFleet(f race.FleetResult) float64 { return f.Wall.Seconds() }

// of is a median of a case.
func (r *fleetReport) of(name string, figure func(race.FleetResult) float64) float64 {
	var figures []float64
	for _, result := range r.runs[name] {
		figures = append(figures, figure(result))
	}
	return median(figures)
}

// ratio is that of the times of two cases; 0 if one was not run.
func (r *fleetReport) ratio(name, floor string) float64 {
	var ratios []float64
	for i, result := range r.runs[name] {
		if i < len(r.runs[floor]) {
			ratios = append(ratios, wallOfFleet(result)/wallOfFleet(r.runs[floor][i]))
		}
	}
	return median(ratios)
}
