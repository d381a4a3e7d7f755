package main

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/rvinformer/informer/bench/race"
)

// summary writes the five figures that matter most, with their charts, for the top of the document.
// It writes nothing if the plan left one of them out.
func (r *report) summary(b *bytes.Buffer) {
	start, restart, stored, idle := r.first(race.ColdStart), r.first(race.Restart), r.first(race.Storage), r.first(race.Idle)
	if start == nil || restart == nil || stored == nil || idle == nil || r.plan.real {
		return
	}
	pods := thousands(start.size) + " pods"
	low, high := start.peaks("ours-")

	fmt.Fprintf(b, "### Memory of a start\n\nA process that reads %s peaks at **%.0f to %s**, by the form of the objects. Client-go's peaks at %s\ntyped and %s dynamic.\n",
		pods, low, mib(high), mib(start.of("client-go-typed", peakMB)), mib(start.of("client-go-dynamic", peakMB)))
	picture(b, "bench-rss")

	floors := func(name string) string { return times(start.ratio(name, start.floor(name), cpu)) }
	fmt.Fprintf(b, "\n### CPU of a start\n\nReading %s takes **%s times** the CPU of a GET of the same bytes whose body is thrown away, for raw objects;\n"+
		"%s times for metadata, %s for typed and %s for unstructured objects. Client-go's informers take %s, %s and %s times.\n",
		pods, floors("ours-raw"), floors("ours-metadata"), floors("ours-typed"), floors("ours-unstructured"),
		floors("client-go-metadata"), floors("client-go-typed"), floors("client-go-dynamic"))
	picture(b, "bench-cpu")

	spent := func(name string) string { return duration(restart.of(name, cpu)) }
	fmt.Fprintf(b, "\n### Starting again\n\nWhen 1 pod in %d of %s has changed, a process with a checkpoint catches up in **%s** of CPU with raw\n"+
		"objects, and in %s with typed ones. Client-go's typed informer takes %s.\n",
		oneChangedIn, thousands(restart.size), spent("ours-raw-resume"), spent("ours-typed-resume"), spent("client-go-typed"))
	picture(b, "bench-restart")

	bytesOf := func(name string) string { return threeDigits(stored.of(name, liveOf)) + " B" }
	fmt.Fprintf(b, "\n### Memory of an object that is known\n\nA key of %d bytes, its resource version and its UID take **%s** for pods. A map of keys and versions takes %s,\n"+
		"and client-go's store takes %s for the smallest object with these.\n",
		race.KeyLength, bytesOf("ours-storage"), bytesOf("map-uint64"), bytesOf("client-go-store"))
	picture(b, "bench-storage")

	fmt.Fprintf(b, "\n### An idle informer\n\nAn informer that waits takes **%.0f goroutines and %s** of stacks and heap over a connection that is shared.\n"+
		"Client-go's typed informer takes %.0f and %s.\n",
		idle.of("ours-raw", goroutines), kib(idle.of("ours-raw", idleKiB)), idle.of("client-go-typed", goroutines), kib(idle.of("client-go-typed", idleKiB)))
	picture(b, "bench-idle")
}

// picture writes a chart.
func picture(b *bytes.Buffer, name string) {
	i := slices.IndexFunc(charts, func(c chart) bool { return c.name == name })
	fmt.Fprintf(b, "\n![%s](%s.svg)\n", charts[i].title, name)
}

// first is the first heat of a scenario, nil if there is none.
func (r *report) first(s race.Scenario) *results {
	i := slices.IndexFunc(r.heats, func(h *results) bool { return h.scenario == s })
	if i < 0 {
		return nil
	}
	return r.heats[i]
}

// peaks are the least and the greatest median peak of the contestants whose names begin so, in MiB.
func (h *results) peaks(prefix string) (low, high float64) {
	for _, e := range h.entries {
		if !strings.HasPrefix(e.Name, prefix) {
			continue
		}
		peak := h.of(e.Name, peakMB)
		if low == 0 {
			low = peak
		}
		low, high = min(low, peak), max(high, peak)
	}
	return low, high
}

// floor is the name of the floor of a contestant.
func (h *results) floor(name string) string {
	i := slices.IndexFunc(h.entries, func(e entry) bool { return e.Name == name })
	if i < 0 {
		return ""
	}
	return h.entries[i].Floor
}
