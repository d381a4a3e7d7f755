package main

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"slices"
	"strings"

	"github.com/rvinformer/informer/bench/podserver"
	"github.com/rvinformer/informer/bench/race"
	"github.com/rvinformer/informer/e2e/cluster"
)

// ways compares the ways to read a set.
type ways struct {
	settings
	pods          int
	only, profile string
	simulated     bool
	// forms are the forms of objects, in order, and heat has each in each way after its floor.
	forms []string
	heat  *heat
}

func newWays() *ways { return &ways{settings: settings{runs: 3, docs: "../docs"}, pods: 20_000} }

func (w *ways) flags(f *flag.FlagSet) {
	f.IntVar(&w.pods, "pods", w.pods, "pods that are created in the server")
	f.StringVar(&w.only, "forms", "", "only forms of objects whose names begin so")
	f.StringVar(&w.profile, "profile", "", "write CPU profiles to files whose names begin so")
	f.BoolFunc("simulated", "a simulated server, which compresses nothing; writes nothing", func(string) error {
		w.simulated, w.docs = true, ""
		return nil
	})
}

func (w *ways) programs() []string { return []string{"floor", "ways"} }

func (w *ways) plan(all contestants) ([]*heat, error) {
	server := realHost(w.pods)
	if w.simulated {
		server = simulatedHost(podserver.Options{Pods: w.pods})
	}
	w.heat = newHeat(race.ColdStart, w.pods, w.runs, server)
	for _, e := range all {
		form, _, ok := strings.Cut(e.Name, ", ")
		if !ok || !strings.HasPrefix(form, w.only) {
			continue
		}
		if !slices.Contains(w.forms, form) {
			w.forms = append(w.forms, form)
		}
		for _, name := range []string{e.Floor, e.Name} {
			if slices.ContainsFunc(w.heat.variants, func(v variant) bool { return v.Name == name }) {
				continue // a floor of several
			}
			c, err := all.named(name)
			if err != nil {
				return nil, err
			}
			var order race.Order
			if w.profile != "" {
				order.Profile = w.profile + "-" + strings.NewReplacer(", ", "-", " ", "-").Replace(name)
			}
			w.heat.add(c, order)
		}
	}
	return []*heat{w.heat}, nil
}

func (w *ways) sections() ([]section, error) {
	var b bytes.Buffer
	binaries := cluster.Binaries{Kubernetes: "simulated"}
	if !w.simulated {
		var err error
		if binaries, err = cluster.Build(context.Background(), ""); err != nil { // as they were built before
			return nil, err
		}
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
