package main

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/rvinformer/informer/bench/race"
)

// summary is the five figures that matter most, for the top of the document.
// It returns nil if the plan left one of them out.
func (p *all) summary() []byte {
	start, restart, stored, idle := p.first(race.ColdStart), p.first(race.Restart), p.first(race.Storage), p.first(race.Idle)
	if start == nil || restart == nil || stored == nil || idle == nil {
		return nil
	}
	b := &bytes.Buffer{}
	pods := thousands(start.size) + " pods"
	low, high := start.peaks("ours-")

	fmt.Fprintf(b, "### Memory of a start\n\nA process that reads %s peaks at **%.0f to %s**, by the form of the objects. Client-go's peaks at %s\ntyped and %s dynamic.\n",
		pods, low, mib(high), mib(start.of("client-go-typed", peakMB)), mib(start.of("client-go-dynamic", peakMB)))

	floors := func(name string) string { return times(start.ratio(name, start.entry(name).Floor, cpu)) }
	fmt.Fprintf(b, "\n### CPU of a start\n\nReading %s takes **%s times** the CPU of a GET of the same bytes whose body is thrown away, for raw objects;\n"+
		"%s times for metadata, %s for typed and %s for unstructured objects. Client-go's informers take %s, %s and %s times.\n",
		pods, floors("ours-raw"), floors("ours-metadata"), floors("ours-typed"), floors("ours-unstructured"),
		floors("client-go-metadata"), floors("client-go-typed"), floors("client-go-dynamic"))

	spent := func(name string) string { return duration(restart.of(name, cpu)) }
	fmt.Fprintf(b, "\n### Starting again\n\nWhen 1 pod in %d of %s has changed, a process with a checkpoint catches up in **%s** of CPU with raw\n"+
		"objects, and in %s with typed ones. Client-go's typed informer takes %s.\n",
		oneChangedIn, thousands(restart.size), spent("ours-raw-resume"), spent("ours-typed-resume"), spent("client-go-typed"))

	bytesOf := func(name string) string { return threeDigits(stored.of(name, liveOf)) + " B" }
	fmt.Fprintf(b, "\n### Memory of an object that is known\n\nA key of %d bytes, its resource version and its UID take **%s** for pods. A map of keys and versions takes %s,\n"+
		"and client-go's store takes %s for the smallest object with these.\n",
		race.KeyLength, bytesOf("ours-storage"), bytesOf("map-uint64"), bytesOf("client-go-store"))

	fmt.Fprintf(b, "\n### An idle informer\n\nAn informer that waits takes **%.0f goroutines and %s** of stacks and heap over a connection that is shared.\n"+
		"Client-go's typed informer takes %.0f and %s.\n",
		idle.of("ours-raw", goroutines), kib(idle.of("ours-raw", idleKiB)), idle.of("client-go-typed", goroutines), kib(idle.of("client-go-typed", idleKiB)))
	return b.Bytes()
}

// first is the first heat of a scenario, nil if there is none.
func (p *all) first(s race.Scenario) *heat {
	i := slices.IndexFunc(p.heats, func(h *heat) bool { return h.scenario == s })
	if i < 0 {
		return nil
	}
	return p.heats[i]
}

// peaks are the least and the greatest median peak of the contestants whose names begin so, in MiB.
func (h *heat) peaks(prefix string) (low, high float64) {
	var all []float64
	for _, v := range h.having(prefix).variants {
		all = append(all, h.of(v.Name, peakMB))
	}
	if len(all) == 0 {
		return 0, 0
	}
	return slices.Min(all), slices.Max(all)
}

// entry is the contestant with a name, without a floor if it did not take part.
func (h *heat) entry(name string) race.Entry {
	for _, v := range h.variants {
		if v.Name == name {
			return v.Entry
		}
	}
	return race.Entry{Name: name}
}
