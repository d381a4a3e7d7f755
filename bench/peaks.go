package main

import (
	"bytes"
	"fmt"

	"github.com/rvinformer/informer/bench/podserver"
	"github.com/rvinformer/informer/bench/race"
)

// peaks measures the memory of the typed factories.
type peaks struct {
	settings
	heat *heat
}

func newPeaks() *peaks { return &peaks{settings: newSettings(3, 100_000, "factories")} }

func (p *peaks) plan(all contestants) ([]*heat, error) {
	p.heat = p.newHeat(race.Informing, p.pods, simulatedHost(podserver.Options{Pods: p.pods}))
	for _, e := range all {
		p.heat.add(e.Entry, e, race.Order{})
	}
	return []*heat{p.heat}, nil
}

var peaksColumns = []column{
	figure("settled", mib, settledMB),
	figure("peak of the start", mib, startPeakMB), figure("× settled", as("%.2f"), quotient(startPeakMB, settledMB)),
	figure("peak of a list", mib, relistPeakMB), figure("× settled", as("%.2f"), quotient(relistPeakMB, settledMB)),
	figure("allocated by the list, per object", as("%.2f KiB"), func(r race.Result) float64 { return float64(r.Peaks.RelistBytes) / 1024 / float64(r.Objects) }),
	figure("settled after it", mib, settledAgainMB), figure("received in the start", mib, startReceivedMB), figure("in the list", mib, relistReceivedMB),
}

func (p *peaks) sections() ([]section, error) {
	var b bytes.Buffer
	b.WriteString(p.headAgainst("Memory of typed factories", simulatedServer))
	fmt.Fprintf(&b, ` A ratio is of two figures of one process.

One informer of %d pods, made by a typed factory: client-go's, with its defaults, and
`+"`factory/typed`"+` with WithRESTConfig. Settled is what is resident after the start, once the garbage
is collected and what is free is given back (debug.FreeOSMemory). The peaks are VmHWM: of
the start, and, counted anew from the settled state, of the list that follows when the
watch is cut and the next one is answered with 410. Nothing has changed meanwhile. The bytes received
are counted at the sockets. No answer is compressed.
`, p.pods)
	p.heat.rows(&b, peaksColumns...)
	return []section{{more, "bench-peaks", b.Bytes()}}, nil
}
