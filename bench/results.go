package main

import (
	"slices"
	"time"

	"github.com/rvinformer/informer/bench/race"
)

// heat is one scenario with a set of one size, of keys that are like names if it
// is about these.
type heat struct {
	scenario race.Scenario
	size     int
	names    race.Names
}

// results are those of one heat, by contestant and run. A contestant that did
// not take part has none.
type results struct {
	heat
	entries []entry // that took part
	runs    map[string][]race.Result
}

// of is the median of a figure of a contestant's.
func (r *results) of(name string, figure func(race.Result) float64) float64 {
	var all []float64
	for _, run := range r.runs[name] {
		all = append(all, figure(run))
	}
	return median(all)
}

// ratio is the median of the quotients of two contestants' figures, each of one
// run. It is 0 where one of them did not take part.
func (r *results) ratio(name, to string, figure func(race.Result) float64) float64 {
	var all []float64
	base := r.runs[to]
	for i, run := range r.runs[name] {
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

// The figures.

func wall(r race.Result) float64 { return seconds(r.Wall) }
func cpu(r race.Result) float64  { return seconds(r.CPU) }

func serverCPU(r race.Result) float64 { return seconds(r.ServerCPU) }

func allocs(r race.Result) float64     { return float64(r.Allocs) / float64(r.Objects) }
func allocBytes(r race.Result) float64 { return float64(r.AllocBytes) / float64(r.Objects) }
func peakMB(r race.Result) float64     { return float64(r.PeakRSS) / (1 << 20) }
func grownMB(r race.Result) float64    { return float64(r.Grown) / (1 << 20) }
func delivered(r race.Result) float64  { return float64(r.Delivered) }

func perSecond(r race.Result) float64    { return float64(r.Objects) / seconds(r.Wall) }
func perCPUSecond(r race.Result) float64 { return float64(r.Objects) / seconds(r.CPU) }

// millionsPerSecond is of how many objects a store did something in a second, in
// millions.
func millionsPerSecond(took func(*race.StoreCosts) time.Duration) func(race.Result) float64 {
	return func(r race.Result) float64 { return float64(r.Objects) / seconds(took(r.Store)) / 1e6 }
}

func liveOf(r race.Result) float64      { return float64(r.Store.Live) / float64(r.Objects) }
func liveLaterOf(r race.Result) float64 { return float64(r.Store.LiveLater) / float64(r.Objects) }
func peakOf(r race.Result) float64      { return float64(r.Store.Peak) / float64(r.Objects) }
func gcMillis(r race.Result) float64    { return 1e3 * seconds(r.Store.GC) }
func gcCPUMillis(r race.Result) float64 { return 1e3 * seconds(r.Store.GCCPU) }

func synced(r race.Result) float64     { return seconds(r.Synced) }
func requests(r race.Result) float64   { return float64(r.Requests) }
func receivedMB(r race.Result) float64 { return float64(r.Received) / (1 << 20) }

func goroutines(r race.Result) float64 { return r.Goroutines }
func stackKiB(r race.Result) float64   { return r.StackBytes / (1 << 10) }
func liveKiB(r race.Result) float64    { return r.LiveBytes / (1 << 10) }
func idleKiB(r race.Result) float64    { return r.InUseBytes / (1 << 10) }

func seconds(d time.Duration) float64 { return d.Seconds() }
