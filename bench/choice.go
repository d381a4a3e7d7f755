package main

import (
	"bytes"
	"slices"

	"github.com/rvinformer/informer/bench/race"
)

// choice is a table of docs/which-informer.md: what its readers choose between, and what it costs.
type choice struct {
	section  string
	scenario race.Scenario
	// columns are the titles before those of the figures.
	columns []string
	options []option
	figures []column
}

// option is a row: how it is chosen, and the contestant that was measured.
type option struct {
	contestant string
	cells      []string
}

var choiceTables = []choice{
	{
		section: "bench-forms", scenario: race.ColdStart, columns: []string{"`ExampleObject`", "the handler gets"},
		options: []option{
			{"ours-raw", []string{"`&informer.RawObject{}`", "the bytes as they came, until it returns"}},
			{"ours-raw-protobuf", []string{"the same, in protobuf", "the bytes as they came"}},
			{"ours-metadata", []string{"`&metav1.PartialObjectMetadata{}`", "metadata; the server sends no more"}},
			{"ours-typed", []string{"`&corev1.Pod{}`, or any API type", "a typed object, in protobuf where the server has it"}},
			{"ours-unstructured", []string{"`&unstructured.Unstructured{}` (the default)", "a map"}},
		},
		figures: []column{
			figure("CPU", duration, cpu), ownRatio("× own floor", cpu), figure("allocations per object", threeDigits, allocs),
			figure("received", received, receivedMB), figure("peak of the process", mib, peakMB),
		},
	},
	{
		section: "bench-kept", scenario: race.Restart, columns: []string{"", "you keep"},
		options: []option{
			{"ours-raw", []string{"nothing", ""}},
			{"ours-raw-relist", []string{"`Storage`, filled before `Run`", "resource versions, beside your data"}},
			{"ours-raw-resume", []string{"`Checkpoint`", "a file, or a `CheckpointStore` of yours"}},
		},
		figures: []column{figure("calls", count, delivered), figure("CPU", duration, cpu), figure("received", received, receivedMB)},
	},
}

// choices are the tables of the page which-informer.md. A table is left as it is if one of its
// contestants did not take part.
func (p *all) choices() (sections []section) {
	for _, c := range choiceTables {
		if h := p.first(c.scenario); h != nil && c.measured(h) {
			sections = append(sections, section{"which-informer.md", c.section, c.table(h)})
		}
	}
	return sections
}

// measured reports whether all contestants took part.
func (c choice) measured(h *heat) bool {
	return !slices.ContainsFunc(c.options, func(o option) bool { return len(h.runs[o.contestant]) == 0 })
}

func (c choice) table(h *heat) []byte {
	var b bytes.Buffer
	titles, line := "|", "|"
	for _, title := range c.columns {
		titles, line = titles+" "+title+" |", line+"---|"
	}
	for _, f := range c.figures {
		titles, line = titles+" "+f.title+" |", line+"--:|"
	}
	b.WriteString(titles + "\n" + line + "\n")
	for _, o := range c.options {
		cells := slices.Clone(o.cells[1:])
		for _, f := range c.figures {
			cells = append(cells, f.cell(h, h.entry(o.contestant)))
		}
		row(&b, o.cells[0], cells...)
	}
	return b.Bytes()
}
