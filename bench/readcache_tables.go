package main

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/rvinformer/informer/bench/race"
)

// measure is a row of a table: a column of other tables, and what is wanted of objectcache with
// typed pods, with unstructured custom resources and with those of a Go type, empty where nothing is.
type measure struct {
	column
	reach, reachReleases, reachCustom string
}

// reader is a column of a table: a contestant, whose floor is its peer, or what is wanted of the
// one before it.
type reader struct {
	title string
	race.Entry
	reach func(measure) string
}

var (
	readers = []reader{
		{title: "client-go typed", Entry: race.Entry{Name: race.ClientGoTyped, Floor: race.ClientGoTyped}},
		{title: "`objectcache` typed", Entry: race.Entry{Name: race.OursTyped, Floor: race.ClientGoTyped}},
		{title: "reach", reach: func(m measure) string { return m.reach }},
		{title: "client-go dynamic", Entry: race.Entry{Name: race.ClientGoDynamic, Floor: race.ClientGoDynamic}},
		{title: "`objectcache` unstructured", Entry: race.Entry{Name: race.OursUnstructured, Floor: race.ClientGoDynamic}},
		{title: "reach", reach: func(m measure) string { return m.reachReleases }},
	}
	customReaders = append(slices.Clone(readers),
		reader{title: "`objectcache` custom, typed", Entry: race.Entry{Name: race.OursCustom, Floor: race.ClientGoTyped}},
		reader{title: "reach", reach: func(m measure) string { return m.reachCustom }})
	operators = []reader{
		{title: "controller-runtime's cache", Entry: race.Entry{Name: race.ControllerRuntime, Floor: race.ControllerRuntime}},
		{title: "`controllerruntime.NewCache`", Entry: race.Entry{Name: race.ControllerRuntimeOurs, Floor: race.ControllerRuntime}},
	}
)

// toPeer is a ratio of ours to the peer.
func toPeer(title string, of func(race.Result) float64) column {
	return notOfFloors(ownRatio(title, of))
}

// readTable is what is written about a scenario.
type readTable struct {
	title    string
	notes    string
	readers  []reader
	measures []measure
}

// readTables are those of the scenarios. A title has the number of objects.
var readTables = map[race.Scenario]readTable{
	race.Informing: {
		title: "An informer of %s objects, and its process",
		notes: `Settled is what is resident once the garbage is collected and what is free is given back. The peaks are
VmHWM. The list without changes comes when the watch is cut and the next one is answered with 410. The bytes received are
counted at the sockets, and no answer is compressed.`,
		readers: readers,
		measures: []measure{
			{figure("live bytes per object", bytesEach, live), "550", "500", ""},
			{figure("settled", mib, settledMB), "96", "", ""},
			{figure("peak of the start", mib, startPeakMB), "128", "", ""},
			{figure("peak of a list without changes", mib, relistPeakMB), "128", "", ""},
			{figure("settled after it", mib, settledAgainMB), "", "", ""},
			{figure("decoded by it", decodedCount, decoded), "0", "0", ""},
			{figure("allocated by it, per object", bytesEach, relistBytes), "", "", ""},
			{figure("received in the start", mib, startReceivedMB), "", "", ""},
			{figure("received in the list", mib, relistReceivedMB), "", "", ""},
			{figure("CPU of the start", hundredths, cpu), "", "", ""},
			{figure("time of the start", hundredths, wall), "", "", ""},
			{toPeer("CPU of the start, × client-go", cpu), "0.60", "", ""},
		},
	},
	race.StoreMemory: {
		title:   "A store of %s objects",
		notes:   "It is given objects, not bytes off the wire. Updates are of the status, in random order.",
		readers: customReaders,
		measures: []measure{
			{figure("live bytes per object", bytesEach, live), "550", "500", ""},
			{figure("the same after 10 updates of each", bytesEach, func(r race.Result) float64 { return r.Read.LiveUpdated }), "700", "", ""},
			{figure("CPU of an add", micros, func(r race.Result) float64 { return float64(r.Read.Add) }), "", "", ""},
			{figure("CPU of an update", micros, func(r race.Result) float64 { return float64(r.Read.Update) }), "", "", ""},
		},
	},
	race.Reading: {
		title: "Reading a store of %s objects",
		notes: `Times are CPU times of the process with its garbage collector. An object not read before is one of all in
random order. Each list by labels has a selector that was not used before, and finds about 1 object in 100. Client-go's
store returns its own objects: a reader that wants to change one copies it first.`,
		readers: customReaders,
		measures: []measure{
			{figure("get by key, not read before", micros, getCold), "", "", ""},
			{figure("get by key, just read", micros, getHot), "", "", ""},
			{figure("DeepCopy of an object", micros, deepCopy), "", "", ""},
			{figure("list by labels", millis, matching), "", "", ""},
			{figure("list by labels, time", millis, matchingWall), "", "", ""},
			{figure("list a namespace of 500", millis, namespaceList), "", "", ""},
			{notOfFloors(figure("get, not read before, × DeepCopy", times, quotient(getCold, deepCopy))), "12", "", "5"},
			{notOfFloors(figure("get, just read, × DeepCopy", times, quotient(getHot, deepCopy))), "1.2", "", ""},
			{toPeer("list by labels, × client-go", matching), "1.00", "", ""},
			{toPeer("list by labels, time, × client-go", matchingWall), "1.00", "", ""},
		},
	},
	race.Operator: {
		title:   "Under a controller, %s typed pods",
		notes:   "Controller-runtime's own cache copies what it returns, as it does by default. A List is of a namespace of 500.",
		readers: operators,
		measures: []measure{
			{column: figure("live bytes per pod", bytesEach, live)},
			{column: figure("settled", mib, settledMB)},
			{column: figure("peak of the start", mib, startPeakMB)},
			{column: figure("peak of a list without changes", mib, relistPeakMB)},
			{column: figure("received in the start", mib, startReceivedMB)},
			{column: figure("received in the list", mib, relistReceivedMB)},
			{column: figure("CPU of the start", hundredths, cpu)},
			{column: figure("Get, not read before", micros, getCold)},
			{column: figure("Get, just read", micros, getHot)},
			{column: figure("List of 500", millis, namespaceList)},
			{column: toPeer("CPU of the start, × controller-runtime's", cpu)},
			{column: toPeer("Get, not read before, × controller-runtime's", getCold)},
			{column: toPeer("Get, just read, × controller-runtime's", getHot)},
			{column: toPeer("List of 500, × controller-runtime's", namespaceList)},
		},
	},
}

func live(r race.Result) float64          { return r.Read.Live }
func decoded(r race.Result) float64       { return float64(r.Read.Decoded) }
func relistBytes(r race.Result) float64   { return float64(r.Peaks.RelistBytes) / float64(r.Objects) }
func getCold(r race.Result) float64       { return float64(r.Read.Get) }
func getHot(r race.Result) float64        { return float64(r.Read.GetHot) }
func deepCopy(r race.Result) float64      { return float64(r.Read.DeepCopy) }
func matching(r race.Result) float64      { return float64(r.Read.ListMatching) }
func matchingWall(r race.Result) float64  { return float64(r.Read.ListMatchingWall) }
func namespaceList(r race.Result) float64 { return float64(r.Read.Namespace) }

var hundredths = as("%.2f s")

// decodedCount leaves out what a contestant does not say.
func decodedCount(v float64) string {
	if v < 0 {
		return "-"
	}
	return count(v)
}

func bytesEach(v float64) string { return thousands(int(v+0.5)) + " B" }
func millis(v float64) string    { return fmt.Sprintf("%.1f ms", v/1e6) }
func micros(v float64) string {
	if v < 10e3 {
		return fmt.Sprintf("%.2f µs", v/1e3)
	}
	return fmt.Sprintf("%.0f µs", v/1e3)
}

// sections are a summary, where client-go's and our informers were measured, and the tables.
func (r *readcache) sections() (all []section, err error) {
	order := []race.Scenario{race.Informing, race.StoreMemory, race.Reading, race.Operator}
	for _, scenario := range order {
		i := slices.IndexFunc(r.heats, func(h *heat) bool { return h.scenario == scenario && len(h.variants) > 0 })
		if i < 0 {
			continue
		}
		var b bytes.Buffer
		h := r.heats[i]
		if len(h.runs[race.ClientGoTyped]) > 0 && len(h.runs[race.OursTyped]) > 0 && scenario == race.Informing {
			all = append(all, section{more, "bench-readcache", r.summary(h)})
		}
		t := readTables[scenario]
		b.WriteString(r.head(fmt.Sprintf("### "+t.title, thousands(h.size))))
		fmt.Fprintf(&b, "\n%s\n", t.notes)
		t.write(&b, h)
		if scenario == race.Informing && r.larger != nil {
			fmt.Fprintf(&b, "\n%s pods, one run:\n", thousands(r.million))
			r.larger.rows(&b, figure("live bytes per pod", bytesEach, live), figure("settled", mib, settledMB), column{"reach", func(*heat, race.Entry) string { return "750" }},
				figure("peak of the start", mib, startPeakMB), figure("peak of a list without changes", mib, relistPeakMB), figure("decoded by it", count, decoded),
				figure("received in the start", mib, startReceivedMB), figure("CPU of the start", hundredths, cpu))
		}
		all = append(all, section{more, "bench-readcache-" + string(scenario), b.Bytes()})
	}
	return all, nil
}

// write writes the measures that some contestant has a figure for.
func (t readTable) write(b *bytes.Buffer, h *heat) {
	var titles []string
	for _, c := range t.readers {
		titles = append(titles, c.title)
	}
	columnsOf(b, titles...)
	for _, m := range t.measures {
		var cells []string
		measured := false
		for _, c := range t.readers {
			if c.reach != nil {
				cells = append(cells, c.reach(m))
				continue
			}
			text := "-"
			if len(h.runs[c.Name]) > 0 {
				text = m.cell(h, c.Entry)
			}
			cells, measured = append(cells, text), measured || text != "-"
		}
		if measured {
			row(b, m.title, cells...)
		}
	}
}

// summary is what stands before the tables, and what was measured.
func (r *readcache) summary(h *heat) []byte {
	of := func(contestant string, format func(float64) string, of func(race.Result) float64) string {
		return format(h.of(contestant, of))
	}
	const ours, theirs = race.OursTyped, race.ClientGoTyped
	return fmt.Appendf(nil, `## A cache that can be read

A process with %s whole pods that can be read settles at **%s** with `+"`"+`objectcache`+"`"+`, and needs at most %s to start and
%s to list them again. With client-go's informer these are %s, %s and %s. A pod takes %s of memory instead of
%s, and the start takes %.2f times the CPU.

The objects of the tables below are not the copies of one template that all others are of, which would flatter
what compresses them. `+"`"+`internal/testkit/samples`+"`"+` makes pods of 3.4 KB of protobuf and custom resources of 2 KB of JSON. They have UIDs, container IDs,
addresses and times of their own, and 12.5 objects on average have one owner. Unstructured objects are these custom resources.

Each contestant has a process of its own for each figure, and an index of namespaces. No handler listens. The server (`+"`"+`bench/podserver`+"`"+`) is
another process on the same cores. Client-go's informers are as its factories make them. Live bytes are those of the heap after a
collection, and what is resident outside of it. The reach is what this library set itself.

Steve's cache in SQLite is missing, because the module proxy does not have its modules.
`, thousands(r.pods), of(ours, mib, settledMB), of(ours, mib, startPeakMB), of(ours, mib, relistPeakMB),
		of(theirs, mib, settledMB), of(theirs, mib, startPeakMB), of(theirs, mib, relistPeakMB),
		of(ours, bytesEach, live), of(theirs, bytesEach, live), h.ratio(ours, theirs, cpu))
}
