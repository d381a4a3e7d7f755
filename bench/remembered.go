package main

import (
	"bytes"
	"fmt"
	"strings"
	"time"

	"github.com/rvinformer/informer/bench/race"
)

// rememberingSection begins the section on what is remembered, in a process and
// after it.
func (r *report) rememberingSection(b *bytes.Buffer) {
	fmt.Fprintf(b, "\n## What is remembered\n\n    %s\n\n%s, on %s%s.\n%s\nA contestant is a process of its own.\n",
		commandLine(), time.Now().UTC().Format(time.DateOnly), hardware(), r.load.alone(), medians(r.plan.runs))
}

// Notes on the tables.
var (
	storageNotes = quoted(`
Of the storages, 'ours-storage' is a 'ResourceVersionStorage': keys, resource versions
and UIDs. The maps hold keys and resource versions, with the 'sync.RWMutex' that a
shared map needs; ours locks inside. 'client-go-store' is a 'ThreadSafeStore' with no
index, of the least that an informer of client-go could store: of each object a
'*metav1.PartialObjectMetadata' with namespace, name, UID and resource version. All
are given such objects, and make the keys themselves.

"Live" is what the garbage collector leaves, once filled, and again once each object
was updated, deleted and added; "peak" is by how much the resident memory grew at
most; "collection" is a 'runtime.GC()' beside the filled store. It is filled in the
order of a list, and read and written in random order. An absent key differs from one
that is there in its last letter. A full pass reads each version, and one with keys
also a letter of each key: a map need not look at its keys in the first. Ours is 'Lend' in
both, which makes both strings each time. Ours keeps no
strings: 'GetByKey', 'All' and 'ListKeys' make new ones. In brackets: × 'map-uint64'.
Keys of pods are 'namespace/deployment-hash-xxxxx', ten to a hash; random ones share
their namespaces and nothing else.
`)
	restartNotes = quoted(`
A restart is in a new process, without what an earlier one knew, or with it: '-relist'
has a 'Storage' that 'ReadFrom' fills from a checkpoint, which the earlier process left
with 'WriteTo' before some pods changed; the time that this takes is counted. '-resume'
has the 'Checkpoint' that the earlier process kept, and watches on. client-go cannot be
told what was known. All others read watch-lists. The bytes received are counted
at the sockets.
`)
)

// quoted is Markdown with ' for what a raw string cannot have.
func quoted(text string) string { return strings.ReplaceAll(text, "'", "`") }

var storeRates = []struct {
	name string
	took func(*race.StoreCosts) time.Duration
}{
	{"fill", func(c *race.StoreCosts) time.Duration { return c.Fill }},
	{"look up", func(c *race.StoreCosts) time.Duration { return c.Lookup }},
	{"look up what is absent", func(c *race.StoreCosts) time.Duration { return c.Absent }},
	{"update", func(c *race.StoreCosts) time.Duration { return c.Update }},
	{"delete and add", func(c *race.StoreCosts) time.Duration { return c.Replace }},
	{"full pass", func(c *race.StoreCosts) time.Duration { return c.Pass }},
	{"full pass with keys", func(c *race.StoreCosts) time.Duration { return c.PassKeys }},
	{"list keys", func(c *race.StoreCosts) time.Duration { return c.ListKeys }},
}

func (h *results) storageTables(b *bytes.Buffer) {
	cell := func(e entry, unit string, figure func(race.Result) float64) string {
		return fmt.Sprintf("%s%s (%s)", threeDigits(h.of(e.Name, figure)), unit, times(h.ratio(e.Name, e.Floor, figure)))
	}
	header(b, fmt.Sprintf("A storage of %s keys of %d bytes: %s", thousands(h.size), race.KeyLength, h.names),
		"live, per key", "live later", "peak while it is filled", "a collection", "its CPU")
	for _, e := range h.entries {
		row(b, e.Name, cell(e, " B", liveOf), cell(e, " B", liveLaterOf), cell(e, " B", peakOf), cell(e, " ms", gcMillis), cell(e, " ms", gcCPUMillis))
	}
	b.WriteString("\nMillions per second of the caller's CPU time:\n")
	var names []string
	for _, rate := range storeRates {
		names = append(names, rate.name)
	}
	columnsOf(b, names...)
	for _, e := range h.entries {
		var cells []string
		for _, rate := range storeRates {
			cells = append(cells, cell(e, "", millionsPerSecond(rate.took)))
		}
		row(b, e.Name, cells...)
	}
}

func (h *results) restartTable(b *bytes.Buffer, once string) {
	header(b, fmt.Sprintf("Starting again, %s pods, 1 in %d has changed%s", thousands(h.size), oneChangedIn, once),
		"synced after", "all delivered after", "handler calls", "CPU", "CPU, × own floor", "received", "requests", "peak RSS")
	for _, e := range h.entries {
		last, calls := duration(h.of(e.Name, wall)), thousands(int(h.of(e.Name, delivered)))
		if e.IsFloor() {
			last, calls = "-", "-"
		}
		row(b, e.Name, duration(h.of(e.Name, synced)), last, calls, duration(h.of(e.Name, cpu)), times(h.ratio(e.Name, e.Floor, cpu)),
			fmt.Sprintf("%.1f MiB", h.of(e.Name, receivedMB)), fmt.Sprintf("%.0f", h.of(e.Name, requests)), mib(h.of(e.Name, peakMB)))
	}
}

// threeDigits writes a positive number with three digits, or all before the point.
func threeDigits(x float64) string {
	switch {
	case x < 10:
		return fmt.Sprintf("%.2f", x)
	case x < 100:
		return fmt.Sprintf("%.1f", x)
	default:
		return fmt.Sprintf("%.0f", x)
	}
}
