package main

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/rvinformer/informer/bench/race"
)

// readcacheReport is what came out of a readcachePlan.
type readcacheReport struct {
	plan     *readcachePlan
	readings readings
	load     load
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
	of     func(race.ReadCosts) float64
	format func(float64) string
	// reach is what is wanted of objectcache with typed pods and with custom resources, empty where
	// nothing is.
	reach, reachReleases string
}

// column is a contestant in a table, or what is wanted of the one before it.
type column struct {
	title, contestant string
	reach             func(measure) string
	// than is the contestant that a ratio is to; of the column's own other figures if it is empty.
	than string
}

var readableColumns = []column{
	{title: "client-go typed", contestant: race.ClientGoTyped},
	{title: "`objectcache` typed", contestant: race.OursTyped, than: race.ClientGoTyped},
	{title: "reach", reach: func(m measure) string { return m.reach }},
	{title: "client-go dynamic", contestant: race.ClientGoDynamic},
	{title: "`objectcache` unstructured", contestant: race.OursUnstructured, than: race.ClientGoDynamic},
	{title: "reach", reach: func(m measure) string { return m.reachReleases }},
}

// readTable is what is written about a figure.
type readTable struct {
	figure   race.Figure
	title    string
	notes    string
	columns  []column
	measures []measure
	// besides are measures whose ratio to those of client-go is written as well.
	besides []measure
}

func readTables(p *readcachePlan) []readTable {
	n := float64(p.pods)
	return []readTable{
		{
			figure: race.Informing, title: fmt.Sprintf("An informer of %s objects, and its process", thousands(p.pods)),
			notes: `Settled is what is resident once the garbage is collected and what is free is given back. The peaks are
VmHWM. The list without changes comes when the watch is cut and the next one is answered with 410. The bytes received are
counted at the sockets, and no answer is compressed.`,
			columns: readableColumns,
			measures: []measure{
				{"live bytes per object", live, bytesEach, "550", "500"},
				{"settled", settled, mebibytes, "96", ""},
				{"peak of the start", startPeak, mebibytes, "128", ""},
				{"peak of a list without changes", relistPeak, mebibytes, "128", ""},
				{"settled after it", func(c race.ReadCosts) float64 { return float64(c.Peaks.SettledAgain) }, mebibytes, "", ""},
				{"decoded by it", func(c race.ReadCosts) float64 { return float64(c.Decoded) }, count, "0", "0"},
				{"allocated by it, per object", func(c race.ReadCosts) float64 { return float64(c.Peaks.RelistBytes) / n }, bytesEach, "", ""},
				{"received in the start", startReceived, mebibytes, "", ""},
				{"received in the list", relistReceived, mebibytes, "", ""},
				{"CPU of the start", startCPU, inSeconds, "", ""},
				{"time of the start", func(c race.ReadCosts) float64 { return float64(c.StartWall) }, inSeconds, "", ""},
			},
			besides: []measure{{"CPU of the start, × client-go", startCPU, nil, "0.60", ""}},
		},
		{
			figure: race.StoreMemory, title: fmt.Sprintf("A store of %s objects", thousands(p.stored)),
			notes:   "It is given objects, not bytes off the wire. Updates are of the status, in random order.",
			columns: readableColumns,
			measures: []measure{
				{"live bytes per object", live, bytesEach, "550", "500"},
				{"the same after 10 updates of each", func(c race.ReadCosts) float64 { return c.LiveUpdated }, bytesEach, "700", ""},
				{"CPU of an add", func(c race.ReadCosts) float64 { return float64(c.Add) }, micros, "", ""},
				{"CPU of an update", func(c race.ReadCosts) float64 { return float64(c.Update) }, micros, "", ""},
			},
		},
		{
			figure: race.Reading, title: fmt.Sprintf("Reading a store of %s objects", thousands(p.pods)),
			notes: `Times are CPU times of the process with its garbage collector. An object not read before is one of all in
random order. Each list by labels has a selector that was not used before, and finds about 1 object in 100. Client-go's
store returns its own objects: a reader that wants to change one copies it first.`,
			columns: readableColumns,
			measures: []measure{
				{"get by key, not read before", getCold, micros, "", ""},
				{"get by key, just read", getHot, micros, "", ""},
				{"DeepCopy of an object", deepCopy, micros, "", ""},
				{"list by labels", matching, millis, "", ""},
				{"list by labels, time", matchingWall, millis, "", ""},
				{"list a namespace of 500", namespaceList, millis, "", ""},
			},
			besides: []measure{
				{"get, not read before, × DeepCopy", ratioOf(getCold, deepCopy), nil, "12", ""},
				{"get, just read, × DeepCopy", ratioOf(getHot, deepCopy), nil, "1.2", ""},
				{"list by labels, × client-go", matching, nil, "1.00", ""},
				{"list by labels, time, × client-go", matchingWall, nil, "1.00", ""},
			},
		},
		{
			figure: race.Operator, title: fmt.Sprintf("Under a controller, %s typed pods", thousands(p.pods)),
			notes: "Controller-runtime's own cache copies what it returns, as it does by default. A List is of a namespace of 500.",
			columns: []column{
				{title: "controller-runtime's cache", contestant: race.ControllerRuntime},
				{title: "`controllerruntime.NewCache`", contestant: race.ControllerRuntimeOurs, than: race.ControllerRuntime},
			},
			measures: []measure{
				{"live bytes per pod", live, bytesEach, "", ""},
				{"settled", settled, mebibytes, "", ""},
				{"peak of the start", startPeak, mebibytes, "", ""},
				{"peak of a list without changes", relistPeak, mebibytes, "", ""},
				{"received in the start", startReceived, mebibytes, "", ""},
				{"received in the list", relistReceived, mebibytes, "", ""},
				{"CPU of the start", startCPU, inSeconds, "", ""},
				{"Get, not read before", getCold, micros, "", ""},
				{"Get, just read", getHot, micros, "", ""},
				{"List of 500", namespaceList, millis, "", ""},
			},
			besides: []measure{
				{"CPU of the start, × controller-runtime's", startCPU, nil, "", ""},
				{"Get, not read before, × controller-runtime's", getCold, nil, "", ""},
				{"Get, just read, × controller-runtime's", getHot, nil, "", ""},
				{"List of 500, × controller-runtime's", namespaceList, nil, "", ""},
			},
		},
	}
}

func live(c race.ReadCosts) float64           { return c.Live }
func settled(c race.ReadCosts) float64        { return float64(c.Peaks.Settled) }
func startPeak(c race.ReadCosts) float64      { return float64(c.Peaks.Start) }
func relistPeak(c race.ReadCosts) float64     { return float64(c.Peaks.Relist) }
func startReceived(c race.ReadCosts) float64  { return float64(c.Peaks.StartReceived) }
func relistReceived(c race.ReadCosts) float64 { return float64(c.Peaks.RelistReceived) }
func startCPU(c race.ReadCosts) float64       { return float64(c.StartCPU) }
func getCold(c race.ReadCosts) float64        { return float64(c.Get) }
func getHot(c race.ReadCosts) float64         { return float64(c.GetHot) }
func deepCopy(c race.ReadCosts) float64       { return float64(c.DeepCopy) }
func matching(c race.ReadCosts) float64       { return float64(c.ListMatching) }
func matchingWall(c race.ReadCosts) float64   { return float64(c.ListMatchingWall) }
func namespaceList(c race.ReadCosts) float64  { return float64(c.Namespace) }

// ratioOf is that of two figures of one process. It is compared with nothing else.
func ratioOf(a, b func(race.ReadCosts) float64) func(race.ReadCosts) float64 {
	return func(c race.ReadCosts) float64 { return a(c) / b(c) }
}

func count(v float64) string     { return thousands(int(v)) }
func bytesEach(v float64) string { return thousands(int(v+0.5)) + " B" }
func mebibytes(v float64) string { return fmt.Sprintf("%.0f MiB", v/(1<<20)) }
func millis(v float64) string    { return fmt.Sprintf("%.1f ms", v/1e6) }
func inSeconds(v float64) string { return fmt.Sprintf("%.2f s", v/1e9) }
func micros(v float64) string {
	if v < 10e3 {
		return fmt.Sprintf("%.2f µs", v/1e3)
	}
	return fmt.Sprintf("%.0f µs", v/1e3)
}

// write writes what was measured about a figure.
func (r *readcacheReport) write(b *bytes.Buffer, t readTable) {
	fmt.Fprintf(b, "### %s\n\n    %s\n\n%s, on %s%s.\n%s\n\n%s\n", t.title, commandLine(), time.Now().UTC().Format(time.DateOnly), hardware(), r.load.alone(),
		medians(r.plan.runs), t.notes)
	var titles []string
	for _, c := range t.columns {
		titles = append(titles, c.title)
	}
	columnsOf(b, titles...)
	r.rows(b, t, t.measures, func(m measure, c column) (string, bool) {
		v, ok := r.median(t.figure, c.contestant, m.of)
		if !ok || v < 0 {
			return "-", false
		}
		return m.format(v), true
	})
	r.rows(b, t, t.besides, func(m measure, c column) (string, bool) {
		v, ok := 0.0, false
		if strings.HasSuffix(m.name, "× DeepCopy") {
			v, ok = r.median(t.figure, c.contestant, m.of)
		} else {
			v, ok = r.ratio(t.figure, c.contestant, c.than, m.of)
		}
		if !ok || c.than == "" {
			return "-", false
		}
		return fmt.Sprintf("%.2f", v), true
	})
	if m := r.million; m != nil && t.figure == race.Informing {
		fmt.Fprintf(b, "\n%s pods, one run:\n", thousands(r.plan.million))
		columnsOf(b, "live bytes per pod", "settled", "reach", "peak of the start", "peak of a list without changes", "decoded by it", "received in the start", "CPU of the start")
		row(b, "`objectcache` typed", bytesEach(m.Live), mebibytes(settled(*m)), "750", mebibytes(startPeak(*m)), mebibytes(relistPeak(*m)), thousands(int(m.Decoded)), mebibytes(startReceived(*m)), inSeconds(startCPU(*m)))
	}
}

// rows writes the measures that some contestant has a figure for.
func (r *readcacheReport) rows(b *bytes.Buffer, t readTable, measures []measure, cell func(measure, column) (string, bool)) {
	for _, m := range measures {
		var cells []string
		measured := false
		for _, c := range t.columns {
			if c.reach != nil {
				cells = append(cells, c.reach(m))
				continue
			}
			text, ok := cell(m, c)
			cells, measured = append(cells, text), measured || ok
		}
		if measured {
			row(b, m.name, cells...)
		}
	}
}

// head is what stands before the tables: a summary, and what was measured. It is written where
// client-go's and our informers were.
func (r *readcacheReport) head(b *bytes.Buffer) bool {
	of := func(contestant string, of func(race.ReadCosts) float64) float64 {
		v, _ := r.median(race.Informing, contestant, of)
		return v
	}
	cpu, ok := r.ratio(race.Informing, race.OursTyped, race.ClientGoTyped, startCPU)
	if !ok {
		return false
	}
	fmt.Fprintf(b, `## A cache that can be read

A process with %s whole pods that can be read settles at **%s** with `+"`objectcache`"+`, and needs at most %s to start and
%s to list them again. With client-go's informer these are %s, %s and %s. A pod takes %s of memory instead of
%s, and the start takes %.2f times the CPU.

The objects of the tables below are not the copies of one template that all others are of, which would flatter
what compresses them. `+"`internal/samples`"+` makes pods of 3.4 KB of protobuf and custom resources of 2 KB of JSON. They have UIDs, container IDs,
addresses and times of their own, and 12.5 objects on average have one owner. Unstructured objects are these custom resources.

Each contestant has a process of its own for each figure, and an index of namespaces. No handler listens. The server (`+"`bench/podserver`"+`) is
another process on the same cores. Client-go's informers are as its factories make them. Live bytes are those of the heap after a
collection, and what is resident outside of it. The reach is what this library set itself.

Steve's cache in SQLite is missing, because the module proxy does not have its modules.
`, thousands(r.plan.pods), mebibytes(of(race.OursTyped, settled)), mebibytes(of(race.OursTyped, startPeak)), mebibytes(of(race.OursTyped, relistPeak)),
		mebibytes(of(race.ClientGoTyped, settled)), mebibytes(of(race.ClientGoTyped, startPeak)), mebibytes(of(race.ClientGoTyped, relistPeak)),
		bytesEach(of(race.OursTyped, live)), bytesEach(of(race.ClientGoTyped, live)), cpu)
	return true
}

// document returns a document with what was measured in the place of what was measured before.
func (r *readcacheReport) document(old []byte) (_ []byte, err error) {
	var text bytes.Buffer
	if r.head(&text) {
		if old, err = replaceSection(old, "bench-readcache", text.Bytes()); err != nil {
			return nil, err
		}
	}
	for _, t := range readTables(r.plan) {
		if len(r.readings[t.figure]) == 0 {
			continue
		}
		text.Reset()
		r.write(&text, t)
		if old, err = replaceSection(old, "bench-readcache-"+string(t.figure), text.Bytes()); err != nil {
			return nil, err
		}
	}
	return old, nil
}
