package main

import (
	"bytes"
	"fmt"
	"time"

	"github.com/rvinformer/informer/bench/podserver"
	"github.com/rvinformer/informer/bench/race"
)

// tables writes what came out as Markdown.
func (r *clustersReport) tables(b *bytes.Buffer) {
	p := r.plan
	fmt.Fprintf(b, "## Many clusters\n\n    %s\n\n%s, on %s%s.\n%s\n", clustersLine(), time.Now().UTC().Format(time.DateOnly), hardware(), r.load.alone(), medians(p.runs))
	fmt.Fprintf(b, quoted(`
%d servers ('bench/podserver'), all in one process and each with an address, a certificate
and connections of its own; and one process that follows %d resources of each, with leases
of one 'factory.Factory', raw objects, watch-lists and one budget, of 16 MiB where nothing
else is said. A slow server sends %s bytes a second of each body. The bytes received are counted at
the sockets, and no answer is compressed.
`), p.clusters, len(clusterResources), thousands(podserver.SlowBytes))
	header(b, fmt.Sprintf("Start, %s objects of each resource", thousands(p.pods)), "synced after", "CPU", "objects delivered", "received", "peak of the budget", "peak RSS")
	for _, s := range clustersStarts {
		all := r.start[s.name]
		row(b, s.name, duration(medianIn(all, func(r race.ClustersResult) float64 { return r.Wall.Seconds() })),
			duration(medianIn(all, func(r race.ClustersResult) float64 { return r.CPU.Seconds() })),
			thousands(int(medianIn(all, func(r race.ClustersResult) float64 { return float64(r.Objects) }))),
			received(medianIn(all, func(r race.ClustersResult) float64 { return float64(r.Received) / (1 << 20) })),
			fmt.Sprintf("%.1f MiB", medianIn(all, func(r race.ClustersResult) float64 { return float64(r.BudgetPeak) / (1 << 20) })),
			mib(medianIn(all, func(r race.ClustersResult) float64 { return float64(r.PeakRSS) / (1 << 20) })))
	}
	fmt.Fprintf(b, "\nThose in trouble, and the huge one, with %s objects of each resource, are not waited for.\n", thousands(p.hugePods))
	header(b, fmt.Sprintf("%s idle informers on %d servers, each with its watch", thousands(p.clusters*len(clusterResources)), p.clusters),
		"goroutines each", "their stacks", "live objects", "stacks and heap in use", "resident")
	for _, i := range p.idles {
		all := r.idle[i.name]
		kibOf := func(figure func(race.ClustersResult) float64) string { return kib(medianIn(all, figure) / (1 << 10)) }
		row(b, i.name, fmt.Sprintf("%.1f", medianIn(all, func(r race.ClustersResult) float64 { return r.Goroutines })),
			kibOf(func(r race.ClustersResult) float64 { return r.StackBytes }), kibOf(func(r race.ClustersResult) float64 { return r.LiveBytes }),
			kibOf(func(r race.ClustersResult) float64 { return r.InUseBytes }), kibOf(func(r race.ClustersResult) float64 { return r.RSS }))
	}
	b.WriteString(quoted(`
Per informer, beyond what those of one server hold: a fifth of a connection included. A
bare watch is a GET of the same watch-list through the same client, read with 64 bytes.
`))
	left := medianIn(r.churn, func(r race.ClustersResult) float64 { return float64(r.BytesLeft) })
	fmt.Fprintf(b, "\n%s informers that were stopped, removed and added again left %.0f goroutines and %.1f KiB of live objects, in all.\n",
		thousands(p.times), medianIn(r.churn, func(r race.ClustersResult) float64 { return float64(r.GoroutinesLeft) }), left/(1<<10))
}

func medianIn(all []race.ClustersResult, figure func(race.ClustersResult) float64) float64 {
	var figures []float64
	for _, r := range all {
		figures = append(figures, figure(r))
	}
	return median(figures)
}

// clustersLine is what was run.
func clustersLine() string { return "cd bench && go run . clusters" }
