package main

import (
	"bytes"
	"fmt"
	"strings"
	"time"

	"github.com/rvinformer/informer/bench/race"
)

// table writes what came out as Markdown.
func (r *waysReport) table(b *bytes.Buffer) {
	fmt.Fprintf(b, "## Ways to read a set\n\n    %s\n\n%s, on %s%s.\n%s\n", commandLine(), time.Now().UTC().Format(time.DateOnly), hardware(), r.load.alone(), medians(r.plan.runs))
	fmt.Fprintf(b, quoted(`
Cold starts of an informer of %s pods, from a kube-apiserver on the same cores. It compresses pages with gzip where the client accepts that, and
never a watch-list. "Received" is counted at the sockets. The floor of a way reads the same bytes and throws them away; it decompresses as
'net/http' does. "Cheapest" is the least of the first three ways with the form.
`), thousands(r.plan.pods))
	for _, form := range r.forms {
		header(b, form, "CPU", "CPU, × own floor", "CPU, × cheapest", "received", "bytes, × cheapest", "server's CPU", "both", "wall", "peak RSS")
		for _, e := range r.entries {
			way, ok := strings.CutPrefix(e.Name, form+", ")
			if !ok {
				continue
			}
			row(b, way, duration(r.of(e.Name, cpu)), times(r.ratio(e.Name, e.Floor, cpu)), times(r.aboveCheapest(form, e.Name, cpu)),
				fmt.Sprintf("%.1f MiB", r.of(e.Name, receivedMB)), times(r.aboveCheapest(form, e.Name, receivedMB)), duration(r.of(e.Name, serverCPU)), duration(r.of(e.Name, bothCPU)), duration(r.of(e.Name, wall)), mib(r.of(e.Name, peakMB)))
		}
	}
}

// bothCPU is what the informer and the server have used.
func bothCPU(r race.Result) float64 { return cpu(r) + serverCPU(r) }

// aboveCheapest is a figure of a contestant's divided by the least that a way takes with the form:
// the medians of both.
func (r *waysReport) aboveCheapest(form, name string, figure func(race.Result) float64) float64 {
	least := 0.0
	for _, way := range []string{race.WayWatchList, race.WayPages, race.WayPlainPages} {
		if of := r.of(form+", "+way, figure); least == 0 || of < least {
			least = of
		}
	}
	return r.of(name, figure) / least
}
