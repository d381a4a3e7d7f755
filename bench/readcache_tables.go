package main

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"

	"github.com/rvinformer/informer/bench/race"
)

// measure is a row of a table: something measured of each contestant, and how it is written.
type measure struct {
	name string
	// cell is empty where nothing was measured.
	cell func(*heat, reader) string
	// reach is what is wanted of objectcache with typed pods and with custom resources, empty where
	// nothing is.
	reach, reachReleases string
}

// reader is a column of a table: a contestant, or what is wanted of the one before it.
type reader struct {
	title, contestant string
	reach             func(measure) string
	// peer is the contestant that a ratio is to, if it is one of ours.
	peer string
}

var (
	readers = []reader{
		{title: "client-go typed", contestant: race.ClientGoTyped},
		{title: "`objectcache` typed", contestant: race.OursTyped, peer: race.ClientGoTyped},
		{title: "reach", reach: func(m measure) string { return m.reach }},
		{title: "client-go dynamic", contestant: race.ClientGoDynamic},
		{title: "`objectcache` unstructured", contestant: race.OursUnstructured, peer: race.ClientGoDynamic},
		{title: "reach", reach: func(m measure) string { return m.reachReleases }},
	}
	operators = []reader{
		{title: "controller-runtime's cache", contestant: race.ControllerRuntime},
		{title: "`controllerruntime.NewCache`", contestant: race.ControllerRuntimeOurs, peer: race.ControllerRuntime},
	}
)

// value shows a figure that is not negative.
func value(format func(float64) string, of func(race.Result) float64) func(*heat, reader) string {
	return func(h *heat, c reader) string {
		v := h.of(c.contestant, of)
		if len(h.runs[c.contestant]) == 0 || v < 0 {
			return ""
		}
		return format(v)
	}
}

// ofOurs shows a figure of our contestants alone.
func ofOurs(of func(race.Result) float64) func(*heat, reader) string {
	return func(h *heat, c reader) string {
		if c.peer == "" {
			return ""
		}
		return value(as("%.2f"), of)(h, c)
	}
}

// toPeer shows a figure of our contestants divided by that of their peers.
func toPeer(of func(race.Result) float64) func(*heat, reader) string {
	return func(h *heat, c reader) string {
		if len(h.runs[c.contestant]) == 0 || len(h.runs[c.peer]) == 0 {
			return ""
		}
		return fmt.Sprintf("%.2f", h.ratio(c.contestant, c.peer, of))
	}
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
			{"live bytes per object", value(bytesEach, live), "550", "500"},
			{"settled", value(mib, settledMB), "96", ""},
			{"peak of the start", value(mib, startPeakMB), "128", ""},
			{"peak of a list without changes", value(mib, relistPeakMB), "128", ""},
			{"settled after it", value(mib, settledAgainMB), "", ""},
			{"decoded by it", value(count, decoded), "0", "0"},
			{"allocated by it, per object", value(bytesEach, relistBytes), "", ""},
			{"received in the start", value(mib, startReceivedMB), "", ""},
			{"received in the list", value(mib, relistReceivedMB), "", ""},
			{"CPU of the start", value(hundredths, cpu), "", ""},
			{"time of the start", value(hundredths, wall), "", ""},
			{"CPU of the start, × client-go", toPeer(cpu), "0.60", ""},
		},
	},
	race.StoreMemory: {
		title:   "A store of %s objects",
		notes:   "It is given objects, not bytes off the wire. Updates are of the status, in random order.",
		readers: readers,
		measures: []measure{
			{"live bytes per object", value(bytesEach, live), "550", "500"},
			{"the same after 10 updates of each", value(bytesEach, func(r race.Result) float64 { return r.Read.LiveUpdated }), "700", ""},
			{"CPU of an add", value(micros, func(r race.Result) float64 { return float64(r.Read.Add) }), "", ""},
			{"CPU of an update", value(micros, func(r race.Result) float64 { return float64(r.Read.Update) }), "", ""},
		},
	},
	race.Reading: {
		title: "Reading a store of %s objects",
		notes: `Times are CPU times of the process with its garbage collector. An object not read before is one of all in
random order. Each list by labels has a selector that was not used before, and finds about 1 object in 100. Client-go's
store returns its own objects: a reader that wants to change one copies it first.`,
		readers: readers,
		measures: []measure{
			{"get by key, not read before", value(micros, getCold), "", ""},
			{"get by key, just read", value(micros, getHot), "", ""},
			{"DeepCopy of an object", value(micros, deepCopy), "", ""},
			{"list by labels", value(millis, matching), "", ""},
			{"list by labels, time", value(millis, matchingWall), "", ""},
			{"list a namespace of 500", value(millis, namespaceList), "", ""},
			{"get, not read before, × DeepCopy", ofOurs(quotient(getCold, deepCopy)), "12", ""},
			{"get, just read, × DeepCopy", ofOurs(quotient(getHot, deepCopy)), "1.2", ""},
			{"list by labels, × client-go", toPeer(matching), "1.00", ""},
			{"list by labels, time, × client-go", toPeer(matchingWall), "1.00", ""},
		},
	},
	race.Operator: {
		title:   "Under a controller, %s typed pods",
		notes:   "Controller-runtime's own cache copies what it returns, as it does by default. A List is of a namespace of 500.",
		readers: operators,
		measures: []measure{
			{name: "live bytes per pod", cell: value(bytesEach, live)},
			{name: "settled", cell: value(mib, settledMB)},
			{name: "peak of the start", cell: value(mib, startPeakMB)},
			{name: "peak of a list without changes", cell: value(mib, relistPeakMB)},
			{name: "received in the start", cell: value(mib, startReceivedMB)},
			{name: "received in the list", cell: value(mib, relistReceivedMB)},
			{name: "CPU of the start", cell: value(hundredths, cpu)},
			{name: "Get, not read before", cell: value(micros, getCold)},
			{name: "Get, just read", cell: value(micros, getHot)},
			{name: "List of 500", cell: value(millis, namespaceList)},
			{name: "CPU of the start, × controller-runtime's", cell: toPeer(cpu)},
			{name: "Get, not read before, × controller-runtime's", cell: toPeer(getCold)},
			{name: "Get, just read, × controller-runtime's", cell: toPeer(getHot)},
			{name: "List of 500, × controller-runtime's", cell: toPeer(namespaceList)},
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
			text := m.cell(h, c)
			cells, measured = append(cells, cmp.Or(text, "-")), measured || text != ""
		}
		if measured {
			row(b, m.name, cells...)
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
what compresses them. `+"`"+`internal/samples`+"`"+` makes pods of 3.4 KB of protobuf and custom resources of 2 KB of JSON. They have UIDs, container IDs,
addresses and times of their own, and 12.5 objects on average have one owner. Unstructured objects are these custom resources.

Each contestant has a process of its own for each figure, and an index of namespaces. No handler listens. The server (`+"`"+`bench/podserver`+"`"+`) is
another process on the same cores. Client-go's informers are as its factories make them. Live bytes are those of the heap after a
collection, and what is resident outside of it. The reach is what this library set itself.

Steve's cache in SQLite is missing, because the module proxy does not have its modules.
`, thousands(r.pods), of(ours, mib, settledMB), of(ours, mib, startPeakMB), of(ours, mib, relistPeakMB),
		of(theirs, mib, settledMB), of(theirs, mib, startPeakMB), of(theirs, mib, relistPeakMB),
		of(ours, bytesEach, live), of(theirs, bytesEach, live), h.ratio(ours, theirs, cpu))
}
