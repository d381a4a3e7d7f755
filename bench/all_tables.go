package main

import (
	"bytes"
	"fmt"
	"slices"
	"time"

	"github.com/rvinformer/informer/bench/race"
)

// sections returns those of performance.md, its tables and its summary, and those of which-informer.md.
func (p *all) sections() (sections []section, err error) {
	name := "bench"
	if p.real {
		name = "bench-real"
	}
	sections = []section{{performance, name, p.tables()}}
	if p.real {
		return sections, nil
	}
	if summary := p.summary(); summary != nil {
		sections = append(sections, section{performance, "bench-summary", summary})
	}
	return append(sections, p.choices()...), nil
}

// tables writes what came out as Markdown.
func (p *all) tables() []byte {
	var b bytes.Buffer
	of := func(scenarios ...race.Scenario) (some []*heat) {
		for _, h := range p.heats {
			if slices.Contains(scenarios, h.scenario) {
				some = append(some, h)
			}
		}
		return some
	}
	storing, restarting := of(race.Storage), of(race.Restart)
	if following := of(race.ColdStart, race.Relist, race.SlowHandler, race.WatchBurst, race.Audit, race.Idle); len(following) > 0 {
		p.followingSection(&b)
		p.heatTables(&b, following)
	}
	if len(p.capacity) > 0 {
		p.capacityList(&b)
	}
	if len(storing)+len(restarting) > 0 {
		b.WriteString(p.head("\n## What is remembered") + "A contestant is a process of its own.\n")
	}
	if len(storing) > 0 {
		b.WriteString(storageNotes)
		p.heatTables(&b, storing)
	}
	if len(restarting) > 0 {
		b.WriteString(restartNotes)
		p.heatTables(&b, restarting)
	}
	return b.Bytes()
}

// followingSection begins the section on following a set.
func (p *all) followingSection(b *bytes.Buffer) {
	title, server := "Beside client-go", simulatedServer
	if p.real {
		title, server = "Against a kube-apiserver", "a kube-apiserver"
	}
	b.WriteString(p.headAgainst(title, server) + "\n\n")
	b.WriteString(`A floor is a GET of the same bytes, in the same way and form, whose body is thrown
away: "own floor" compares with that, "JSON floor" with pages of 500 pods in JSON.
` + "`floor-copies-`" + ` also makes an object for each that comes, a deep copy of the first. A
contestant is a process of its own, of a program that has none of the others' code.
The handlers count. With no ` + "`-paged`" + ` to their names ours read watch-lists, as do
client-go's informers (` + "`WatchListClient`" + ` is on by default).
`)
	if p.real {
		b.WriteString("This server compresses large lists, as all do by default, but no watch-lists.\n")
	}
}

// heatTables writes the tables of heats.
func (p *all) heatTables(b *bytes.Buffer, heats []*heat) {
	for _, h := range heats {
		pods, once := thousands(h.size)+" pods", ""
		if h.times == 1 {
			once = " (one run)" // so a figure is no median
		}
		switch h.scenario {
		case race.ColdStart:
			columns := startColumns
			if h.of("floor-json", serverCPU) > 0 {
				columns = append(slices.Clone(columns), figure("server's CPU", duration, serverCPU))
			}
			h.table(b, "Cold start, "+pods+once, columns...)
		case race.Relist:
			h.table(b, "The same again, nothing has changed, "+pods, startColumns...)
		case race.SlowHandler:
			h.table(b, fmt.Sprintf("A handler that sleeps %v per object, %s (one run, all side by side)", race.SlowHandlerSleep, pods), slowColumns...)
		case race.WatchBurst:
			h.table(b, "Changes, as fast as they can be read", burstColumns...)
			b.WriteString("\nChanges of one object that wait for the handler are delivered as one, so there may be\nfewer calls than changes.\n")
		case race.Audit:
			h.table(b, "An audit that finds nothing, "+pods, auditColumns...)
		case race.Idle:
			h.table(b, "Idle informers, each with its watch, over one connection", idleColumns...)
		case race.Storage:
			h.table(b, fmt.Sprintf("A storage of %s keys of %d bytes: %s", thousands(h.size), race.KeyLength, h.names), storageColumns...)
			b.WriteString("\nMillions per second of the caller's CPU time:\n")
			h.rows(b, storageRates...)
		case race.Restart:
			h.table(b, fmt.Sprintf("Starting again, %s, 1 in %d has changed%s", pods, oneChangedIn, once), restartColumns...)
		}
	}
}

var (
	startColumns = []column{
		figure("wall", duration, wall), figure("CPU", duration, cpu), ownRatio("CPU, × own floor", cpu), ratio("CPU, × JSON floor", "floor-json", cpu),
		figure("allocations per object", as("%.1f"), allocs),
		{"beyond own floor", func(h *heat, e race.Entry) string {
			if _, ok := h.runs[e.Floor]; !ok || e.IsFloor() {
				return "-"
			}
			return fmt.Sprintf("%.1f", max(0, h.of(e.Name, allocs)-h.of(e.Floor, allocs)))
		}},
		figure("allocated per object", kib, allocKiB), figure("received", received, receivedMB), figure("peak RSS", mib, peakMB),
	}
	slowColumns = []column{
		figure("objects handled", as("%.0f"), delivered), figure("wall", duration, wall), figure("CPU", duration, cpu),
		figure("received", received, receivedMB), figure("peak RSS", mib, peakMB),
	}
	burstColumns = []column{
		figure("changes per second", as("%.0f"), perSecond), figure("per second of CPU", as("%.0f"), perCPUSecond), ratio("× client-go-typed", "client-go-typed", perCPUSecond),
		notOfFloors(figure("handler calls", as("%.0f"), delivered)), figure("allocations per change", as("%.1f"), allocs),
		figure("received", received, receivedMB), figure("peak RSS", mib, peakMB), figure("server's CPU", duration, serverCPU),
	}
	auditColumns = []column{
		figure("wall", duration, wall), figure("CPU", duration, cpu), ownRatio("CPU, × own floor", cpu),
		figure("received", received, receivedMB), figure("memory beyond that before", as("%.1f MiB"), grownMB),
	}
	idleColumns = []column{
		figure("goroutines each", as("%.1f"), goroutines), figure("their stacks", kib, stackKiB), figure("live objects", kib, liveKiB), figure("stacks and heap in use", kib, idleKiB),
	}
	storageColumns = []column{
		besideFloor("live, per key", " B", liveOf), besideFloor("live later", " B", liveLaterOf), besideFloor("peak while it is filled", " B", peakOf),
		besideFloor("a collection", " ms", gcMillis), besideFloor("its CPU", " ms", gcCPUMillis),
	}
	storageRates = []column{
		storageRate("fill", func(c *race.StoreCosts) time.Duration { return c.Fill }),
		storageRate("look up", func(c *race.StoreCosts) time.Duration { return c.Lookup }),
		storageRate("look up what is absent", func(c *race.StoreCosts) time.Duration { return c.Absent }),
		storageRate("update", func(c *race.StoreCosts) time.Duration { return c.Update }),
		storageRate("delete and add", func(c *race.StoreCosts) time.Duration { return c.Replace }),
		storageRate("full pass", func(c *race.StoreCosts) time.Duration { return c.Pass }),
		storageRate("full pass with keys", func(c *race.StoreCosts) time.Duration { return c.PassKeys }),
		storageRate("list keys", func(c *race.StoreCosts) time.Duration { return c.ListKeys }),
	}
	restartColumns = []column{
		figure("synced after", duration, synced), notOfFloors(figure("all delivered after", duration, wall)), notOfFloors(figure("handler calls", count, delivered)),
		figure("CPU", duration, cpu), ownRatio("CPU, × own floor", cpu), figure("received", received, receivedMB), figure("requests", as("%.0f"), requests), figure("peak RSS", mib, peakMB),
	}
)

// besideFloor is a column of medians, each with its ratio to the floor behind it.
func besideFloor(title, unit string, of func(race.Result) float64) column {
	return column{title, func(h *heat, e race.Entry) string {
		return fmt.Sprintf("%s%s (%s)", threeDigits(h.of(e.Name, of)), unit, times(h.ratio(e.Name, e.Floor, of)))
	}}
}

// storageRate is a column of how many millions a second were done.
func storageRate(title string, took func(*race.StoreCosts) time.Duration) column {
	return besideFloor(title, "", func(r race.Result) float64 { return float64(r.Objects) / seconds(took(r.Store)) / 1e6 })
}
