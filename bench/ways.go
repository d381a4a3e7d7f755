package main

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/rvinformer/informer/bench/race"
	"github.com/rvinformer/informer/e2e/cluster"
)

// ways compares the ways to read a set.
type ways struct {
	settings
	// forms are the forms of objects, in order, and heat has each in each way after its floor.
	forms []string
	heat  *heat
}

func newWays() *ways { return &ways{settings: newSettings(3, 20_000, "floor", "ways")} }

func (w *ways) plan(all contestants) ([]*heat, error) {
	w.heat = w.newHeat(race.ColdStart, w.pods, realHost(w.pods))
	for _, e := range all {
		form, _, ok := strings.Cut(e.Name, ", ")
		if !ok {
			continue
		}
		if !slices.Contains(w.forms, form) {
			w.forms = append(w.forms, form)
		}
		for _, name := range []string{e.Floor, e.Name} {
			if slices.ContainsFunc(w.heat.variants, func(v variant) bool { return v.Name == name }) {
				continue // a floor of several
			}
			c := all.named(name)
			w.heat.add(c.Entry, c, race.Order{})
		}
	}
	return []*heat{w.heat}, nil
}

func (w *ways) sections() ([]section, error) {
	var b bytes.Buffer
	binaries, err := cluster.Build(context.Background(), "") // as they were built before
	if err != nil {
		return nil, err
	}
	b.WriteString(w.head("### Kubernetes " + binaries.Kubernetes))
	fmt.Fprintf(&b, "\n%s pods.\n", thousands(w.pods))
	for _, form := range w.forms {
		fmt.Fprintf(&b, "\n#### %s\n", form)
		w.heat.having(form+", ").rows(&b,
			figure("CPU", duration, cpu), ownRatio("CPU, × own floor", cpu), w.cheapest("CPU, × cheapest", form, cpu),
			figure("received", received, receivedMB), w.cheapest("bytes, × cheapest", form, receivedMB), figure("server's CPU", duration, serverCPU),
			figure("both", duration, bothCPU), figure("wall", duration, wall), figure("peak RSS", mib, peakMB))
	}
	return []section{{more, "bench-ways-" + binaries.Kubernetes, b.Bytes()}}, nil
}

// bothCPU is what the informer and the server have used.
func bothCPU(r race.Result) float64 { return cpu(r) + serverCPU(r) }

// cheapest is a column of a figure divided by the least that a way takes with the form: the medians
// of both.
func (w *ways) cheapest(title, form string, of func(race.Result) float64) column {
	least := 0.0
	for _, way := range []string{race.WayWatchList, race.WayPages, race.WayPlainPages} {
		if v := w.heat.of(form+", "+way, of); least == 0 || v < least {
			least = v
		}
	}
	return column{title, func(h *heat, e race.Entry) string { return times(h.of(e.Name, of) / least) }}
}
