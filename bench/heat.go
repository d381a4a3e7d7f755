package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/rvinformer/informer/bench/race"
)

// heat is what is run again and again and compared: variants of one scenario with a set of one
// size, of keys that are like names if it is about these.
type heat struct {
	scenario race.Scenario
	size     int
	names    race.Names
	// times is how often each variant is run, and hosts are the servers that there have to be.
	times    int
	hosts    []*host
	variants []variant
	// do runs the variants.
	do func(context.Context, *heat) error
	// prefix is what a table leaves out of the names of the variants.
	prefix string
	// profile is what the names of profiles begin with, if it is not empty.
	profile string
	// runs are the results of each variant.
	runs map[string][]race.Result
}

// variant is what is run, and a row of a table.
type variant struct {
	race.Entry
	run func(context.Context) (race.Result, error)
}

// having is the part of a heat whose variants have a prefix in their names.
func (h heat) having(prefix string) *heat {
	h.prefix = prefix
	h.variants = slices.DeleteFunc(slices.Clone(h.variants), func(v variant) bool { return !strings.HasPrefix(v.Name, prefix) })
	return &h
}

// newHeat returns a heat whose variants are run one after the other, and all of them again.
func newHeat(scenario race.Scenario, size, times int, hosts ...*host) *heat {
	return &heat{scenario: scenario, size: size, times: times, hosts: hosts, do: inTurn, runs: map[string][]race.Result{}}
}

// add adds a contestant that obeys an order, at the first host if there is one.
func (h *heat) add(as race.Entry, e contestant, o race.Order) {
	var at *host
	if len(h.hosts) > 0 {
		at = h.hosts[0]
	}
	h.addAt(at, as, e, o)
}

// addAt adds a contestant that obeys an order at a host, if there is one. Where the order has a
// number of objects, it is of so many of those that the host has.
func (h *heat) addAt(at *host, as race.Entry, e contestant, o race.Order) {
	o.Scenario, o.Profile = h.scenario, h.profileOf(e, as.Name)
	h.variants = append(h.variants, variant{as, func(ctx context.Context) (race.Result, error) {
		order := o
		if at != nil {
			order.Target = at.target
			order.Target.Objects = cmp.Or(o.Target.Objects, at.target.Objects)
		}
		return e.run(ctx, order)
	}})
}

// addMany adds a contestant that obeys an order with many servers of its own.
func (h *heat) addMany(as race.Entry, e contestant, servers simulated, o race.Order) {
	o.Scenario, o.Profile = h.scenario, h.profileOf(e, as.Name)
	h.variants = append(h.variants, variant{as, func(ctx context.Context) (r race.Result, err error) {
		ctx, cancel := context.WithTimeout(ctx, runTimeout)
		defer cancel()
		at, stop, err := servers.start(ctx)
		if err != nil {
			return r, err
		}
		defer func() { err = errors.Join(err, stop()) }()
		order, many := o, *o.Many
		many.Clusters, many.Control, order.Many = at, at[0].Control, &many
		return e.run(ctx, order)
	}})
}

// profileOf is the file for a profile of a contestant as a variant, empty if none is wanted.
func (h *heat) profileOf(e contestant, name string) string {
	if h.profile == "" {
		return ""
	}
	return fmt.Sprintf("%s-%s-%s", h.profile, h.scenario, strings.NewReplacer(" ", "-", "/", "-").Replace(e.Name+"-"+name))
}

func inTurn(ctx context.Context, h *heat) error {
	for range h.times {
		for _, v := range h.variants {
			result, err := v.run(ctx)
			if err != nil {
				return fmt.Errorf("%s: %w", v.Name, err)
			}
			h.note(v, result)
		}
	}
	return nil
}

// sideBySide runs the variants once: what they do is sleep.
func sideBySide(ctx context.Context, h *heat) error {
	all := make([]race.Result, len(h.variants))
	errs := make([]error, len(h.variants))
	var running sync.WaitGroup
	for i, v := range h.variants {
		running.Go(func() { all[i], errs[i] = v.run(ctx) })
	}
	running.Wait()
	if err := errors.Join(errs...); err != nil {
		return err
	}
	for i, v := range h.variants {
		h.note(v, all[i])
	}
	return nil
}

// note keeps a result, and shows it.
func (h *heat) note(v variant, r race.Result) {
	h.runs[v.Name] = append(h.runs[v.Name], r)
	fmt.Fprintf(os.Stderr, "%s %-10s %8d objects, run %d, %-50s wall %6.2fs  cpu %6.2fs  server %5.2fs  received %6.1f MiB  peak %6.1f MiB",
		time.Now().Format(time.TimeOnly), h.scenario, r.Objects, len(h.runs[v.Name]), v.Name, wall(r), cpu(r), serverCPU(r), receivedMB(r), peakMB(r))
	if r.Goroutines > 0 {
		fmt.Fprintf(os.Stderr, "  each %.2f goroutines, %.1f KiB of stacks, %.1f KiB live, %.1f KiB in use", r.Goroutines, stackKiB(r), liveKiB(r), idleKiB(r))
	}
	for _, more := range []any{r.Peaks, r.Read, r.Many} {
		if text, err := json.Marshal(more); err == nil && string(text) != "null" {
			fmt.Fprintf(os.Stderr, "  %s", text)
		}
	}
	fmt.Fprintln(os.Stderr)
}

// of is the median of a figure of a variant.
func (h *heat) of(name string, figure func(race.Result) float64) float64 {
	var all []float64
	for _, run := range h.runs[name] {
		all = append(all, figure(run))
	}
	return median(all)
}

// ratio is the median of the quotients of two variants' figures, each of one
// run. It is 0 where one of them was not run.
func (h *heat) ratio(name, to string, figure func(race.Result) float64) float64 {
	var all []float64
	base := h.runs[to]
	for i, run := range h.runs[name] {
		if i < len(base) && figure(base[i]) > 0 {
			all = append(all, figure(run)/figure(base[i]))
		}
	}
	return median(all)
}

func median(all []float64) float64 {
	if len(all) == 0 {
		return 0
	}
	all = slices.Sorted(slices.Values(all))
	middle := len(all) / 2
	if len(all)%2 == 1 {
		return all[middle]
	}
	return (all[middle-1] + all[middle]) / 2
}
