package main

import (
	"bytes"
	"fmt"
	"slices"
	"time"

	"github.com/rvinformer/informer/bench/race"
)

// readcacheReport is what came out of a readcachePlan.
type readcacheReport struct {
	plan     *readcachePlan
	readings readings
	load     load
	took     time.Duration
	// million is what the larger set took, if it was measured.
	million *race.ReadCosts
}

// median is that of a figure of a contestant, and false if it was not measured.
func (r *readcacheReport) median(figure race.Figure, contestant string, of func(race.ReadCosts) float64) (float64, bool) {
	var values []float64
	for _, costs := range r.readings[figure][contestant] {
		values = append(values, of(costs))
	}
	if len(values) == 0 {
		return 0, false
	}
	slices.Sort(values)
	return values[len(values)/2], true
}

// ratio is the median of the ratios of one contestant to another within each run.
func (r *readcacheReport) ratio(figure race.Figure, contestant, to string, of func(race.ReadCosts) float64) (float64, bool) {
	var values []float64
	others := r.readings[figure][to]
	for run, costs := range r.readings[figure][contestant] {
		if run < len(others) && of(others[run]) > 0 {
			values = append(values, of(costs)/of(others[run]))
		}
	}
	if len(values) == 0 {
		return 0, false
	}
	slices.Sort(values)
	return values[len(values)/2], true
}

// measure is a row of a table: something measured of each contestant, and how it is written.
type measure struct {
	name   string
	figure race.Figure
	of     func(race.ReadCosts) float64
	format func(float64) string
	// reach is what is wanted of objectcache with typed pods and with custom resources, empty where nothing is.
	reach, reachReleases string
}

func bytesEach(v float64) string { return thousands(int(v+0.5)) + " B" }
func mebibytes(v float64) string { return fmt.Sprintf("%.0f MiB", v/(1<<20)) }
func micros(v float64) string {
	switch {
	case v >= 10e6:
		return fmt.Sprintf("%.1f s", v/1e9)
	case v >= 10e3:
		return fmt.Sprintf("%.0f µs", v/1e3)
	default:
		return fmt.Sprintf("%.2f µs", v/1e3)
	}
}
func millis(v float64) string { return fmt.Sprintf("%.1f ms", v/1e6) }
func inSeconds(v float64) string {
	return fmt.Sprintf("%.2f s", v/1e9)
}

// column is a contestant in a table, or what is wanted of the one before it.
type column struct {
	title, contestant string
	reach             func(measure) string
}

var readableColumns = []column{
	{title: "client-go typed", contestant: race.ClientGoTyped},
	{title: "`objectcache` typed", contestant: race.OursTyped},
	{title: "reach", reach: func(m measure) string { return m.reach }},
	{title: "client-go dynamic", contestant: race.ClientGoDynamic},
	{title: "`objectcache` unstructured", contestant: race.OursUnstructured},
	{title: "reach", reach: func(m measure) string { return m.reachReleases }},
}

var operatorColumns = []column{
	{title: "controller-runtime's cache", contestant: race.ControllerRuntime},
	{title: "`controllerruntime.NewCache`", contestant: race.ControllerRuntimeOurs},
}

// table writes measures as rows, if some were measured.
func (r *readcacheReport) table(b *bytes.Buffer, title string, columns []column, measures []measure) {
	var rows bytes.Buffer
	for _, m := range measures {
		measured := false
		line := "| " + m.name + " |"
		for _, c := range columns {
			if c.reach != nil {
				line += " " + c.reach(m) + " |"
				continue
			}
			v, ok := r.median(m.figure, c.contestant, m.of)
			if !ok || v < 0 {
				line += " - |"
				continue
			}
			line, measured = line+" "+m.format(v)+" |", true
		}
		if measured {
			fmt.Fprintln(&rows, line)
		}
	}
	if rows.Len() == 0 {
		return
	}
	fmt.Fprintf(b, "\n### %s\n", title)
	var titles []string
	for _, c := range columns {
		titles = append(titles, c.title)
	}
	columnsOf(b, titles...)
	_, _ = rows.WriteTo(b)
}

func memoryMeasures(objects int) []measure {
	n := float64(objects)
	return []measure{
		{"a store: live bytes per object", race.StoreMemory, func(c race.ReadCosts) float64 { return c.Live }, bytesEach, "550", "500"},
		{"each updated 10 times since, in random order", race.StoreMemory, func(c race.ReadCosts) float64 { return c.LiveUpdated }, bytesEach, "700", ""},
		{"an informer: live bytes per object", race.Informing, func(c race.ReadCosts) float64 { return c.Live }, bytesEach, "550", "500"},
		{"its process, settled", race.Informing, func(c race.ReadCosts) float64 { return float64(c.Peaks.Settled) }, mebibytes, "96", ""},
		{"peak of the start", race.Informing, func(c race.ReadCosts) float64 { return float64(c.Peaks.Start) }, mebibytes, "128", ""},
		{"peak of a list without changes", race.Informing, func(c race.ReadCosts) float64 { return float64(c.Peaks.Relist) }, mebibytes, "128", ""},
		{"settled after it", race.Informing, func(c race.ReadCosts) float64 { return float64(c.Peaks.SettledAgain) }, mebibytes, "", ""},
		{"decoded by that list", race.Informing, func(c race.ReadCosts) float64 { return float64(c.Decoded) }, func(v float64) string { return thousands(int(v)) }, "0", "0"},
		{"allocated by it, per object", race.Informing, func(c race.ReadCosts) float64 { return float64(c.Peaks.RelistBytes) / n }, bytesEach, "", ""},
	}
}

var timeMeasures = []measure{
	{"cold start, CPU", race.Informing, startCPU, inSeconds, "", ""},
	{"cold start, time", race.Informing, func(c race.ReadCosts) float64 { return float64(c.StartWall) }, inSeconds, "", ""},
	{"get by key, not read before", race.Reading, getCold, micros, "", ""},
	{"get by key, just read", race.Reading, getHot, micros, "", ""},
	{"DeepCopy of such an object", race.Reading, deepCopy, micros, "", ""},
	{"list by labels, 1 in 100, CPU", race.Reading, matching, millis, "", ""},
	{"the same, time", race.Reading, matchingWall, millis, "", ""},
	{"list a namespace of 500, CPU", race.Reading, func(c race.ReadCosts) float64 { return float64(c.Namespace) }, millis, "", ""},
	{"put one into a store, CPU", race.StoreMemory, func(c race.ReadCosts) float64 { return float64(c.Add) }, micros, "", ""},
	{"update one in a store, CPU", race.StoreMemory, func(c race.ReadCosts) float64 { return float64(c.Update) }, micros, "", ""},
}

func startCPU(c race.ReadCosts) float64     { return float64(c.StartCPU) }
func getCold(c race.ReadCosts) float64      { return float64(c.Get) }
func getHot(c race.ReadCosts) float64       { return float64(c.GetHot) }
func deepCopy(c race.ReadCosts) float64     { return float64(c.DeepCopy) }
func matching(c race.ReadCosts) float64     { return float64(c.ListMatching) }
func matchingWall(c race.ReadCosts) float64 { return float64(c.ListMatchingWall) }

// ratios writes what is wanted as a ratio.
func (r *readcacheReport) ratios(b *bytes.Buffer) {
	var rows bytes.Buffer
	within := func(contestant string, a, to func(race.ReadCosts) float64) (float64, bool) {
		return r.median(race.Reading, contestant, func(c race.ReadCosts) float64 {
			if to(c) == 0 {
				return 0
			}
			return a(c) / to(c)
		})
	}
	write := func(name, reach string, typed, unstructured float64, ok bool) {
		if ok {
			fmt.Fprintf(&rows, "| %s | %.2f | %.2f | %s |\n", name, typed, unstructured, reach)
		}
	}
	for _, line := range []struct {
		figure      race.Figure
		name, reach string
		of          func(race.ReadCosts) float64
	}{
		{race.Informing, "CPU of a cold start, × client-go", "0.60", startCPU},
		{race.Reading, "list by labels, CPU, × client-go", "1.00", matching},
		{race.Reading, "list by labels, time, × client-go", "1.00", matchingWall},
	} {
		typed, ok := r.ratio(line.figure, race.OursTyped, race.ClientGoTyped, line.of)
		unstructured, _ := r.ratio(line.figure, race.OursUnstructured, race.ClientGoDynamic, line.of)
		write(line.name, line.reach, typed, unstructured, ok)
	}
	typed, ok := within(race.OursTyped, getCold, deepCopy)
	unstructured, _ := within(race.OursUnstructured, getCold, deepCopy)
	write("get by key, not read before, × DeepCopy", "12", typed, unstructured, ok)
	typed, ok = within(race.OursTyped, getHot, deepCopy)
	unstructured, _ = within(race.OursUnstructured, getHot, deepCopy)
	write("get by key, just read, × DeepCopy", "1.2", typed, unstructured, ok)
	if rows.Len() > 0 {
		header(b, "Beside client-go, and beside a copy", "typed", "unstructured", "reach")
		_, _ = rows.WriteTo(b)
	}
}

func (r *readcacheReport) write(b *bytes.Buffer) {
	b.WriteString("## A cache that can be read\n\n")
	r.summary(b)
	fmt.Fprintf(b, readcacheNotes, commandLine(), time.Now().UTC().Format(time.DateOnly), r.took.Round(time.Second), hardware(), r.load.alone(), medians(r.plan.runs),
		thousands(r.plan.pods), thousands(r.plan.stored))
	r.table(b, "Memory of what can be read", readableColumns, memoryMeasures(r.plan.pods))
	r.ratios(b)
	r.table(b, "CPU of reading and writing them", readableColumns, timeMeasures)
	r.table(b, "Under a controller, typed pods", operatorColumns, operatorMeasures)
}

// summary says the most important in words, if it was measured.
func (r *readcacheReport) summary(b *bytes.Buffer) {
	settled := func(c race.ReadCosts) float64 { return float64(c.Peaks.Settled) }
	relist := func(c race.ReadCosts) float64 { return float64(c.Peaks.Relist) }
	live := func(c race.ReadCosts) float64 { return c.Live }
	of := func(contestant string, of func(race.ReadCosts) float64) float64 {
		v, _ := r.median(race.Informing, contestant, of)
		return v
	}
	if of(race.OursTyped, live) == 0 || of(race.ClientGoTyped, live) == 0 {
		return
	}
	cpu, _ := r.ratio(race.Informing, race.OursTyped, race.ClientGoTyped, startCPU)
	fmt.Fprintf(b, `A process with %s whole pods that can be read settles at **%s** and peaks at %s when they are listed again; with
client-go's informer at %s and %s. A pod takes %s instead of %s. Its start takes
%.2f times the CPU of client-go's.

`, thousands(r.plan.pods), mebibytes(of(race.OursTyped, settled)), mebibytes(of(race.OursTyped, relist)), mebibytes(of(race.ClientGoTyped, settled)), mebibytes(of(race.ClientGoTyped, relist)),
		bytesEach(of(race.OursTyped, live)), bytesEach(of(race.ClientGoTyped, live)), cpu)
}

var operatorMeasures = []measure{
	{"live bytes per pod", race.Operator, func(c race.ReadCosts) float64 { return c.Live }, bytesEach, "", ""},
	{"its process, settled", race.Operator, func(c race.ReadCosts) float64 { return float64(c.Peaks.Settled) }, mebibytes, "", ""},
	{"peak of the start", race.Operator, func(c race.ReadCosts) float64 { return float64(c.Peaks.Start) }, mebibytes, "", ""},
	{"peak of a list without changes", race.Operator, func(c race.ReadCosts) float64 { return float64(c.Peaks.Relist) }, mebibytes, "", ""},
	{"cold start, CPU", race.Operator, startCPU, inSeconds, "", ""},
	{"Get, not read before", race.Operator, getCold, micros, "", ""},
	{"Get, just read", race.Operator, getHot, micros, "", ""},
	{"List of 500 in a namespace", race.Operator, func(c race.ReadCosts) float64 { return float64(c.Namespace) }, millis, "", ""},
	{"DeepCopy of a pod", race.Operator, deepCopy, micros, "", ""},
}

const readcacheNotes = `    %s

%s, in %v, against the simulated server (` + "`bench/podserver`" + `) in a process of its own,
on %s,
which server and client share%s.
%s

Informers of %s objects, and stores of as many where they are read and of %s where they are filled, each with an index of namespaces and no handler; each
contestant in processes of its own. The objects are those of ` + "`internal/samples`" + `, not the copies of
one template that the other tables are of: pods of 3.4 KB of protobuf and custom resources of 2 KB
of JSON, with UIDs, container IDs, addresses and times of their own, 12.5 per owner. Client-go's
informers are as its factories make them.

Live bytes are those of the heap after a collection, and what is resident outside of it. Settled is what is
resident once the garbage is collected and what is free is given back. The peaks are VmHWM. The list without changes comes when the watch
is cut and the next one is answered with 410. Times of reading are CPU times of the process, its garbage collector included.
An object not read before is one of 100,000 in random order. The lists by labels have a selector each that was not used before.

`
