package main

import (
	"bytes"

	"github.com/rvinformer/informer/bench/race"
)

// choice is a table of docs/which-informer.md: what its readers choose between, and what it costs.
type choice struct {
	section  string
	scenario race.Scenario
	// columns are the titles before those of the figures.
	columns []string
	options []option
	figures []figure
}

// option is a row: how it is chosen, and the contestant that was measured.
type option struct {
	contestant string
	cells      []string
}

// figure is a column.
type figure struct {
	title string
	cell  func(h *results, contestant string) string
}

var (
	cpuFigure    = figure{"CPU", func(h *results, c string) string { return duration(h.of(c, cpu)) }}
	floorsFigure = figure{"× own floor", func(h *results, c string) string { return times(h.ratio(c, h.floor(c), cpu)) }}
	allocsFigure = figure{"allocations per object", func(h *results, c string) string { return threeDigits(h.of(c, allocs)) }}
	callsFigure  = figure{"calls", func(h *results, c string) string { return thousands(int(h.of(c, delivered))) }}
	bytesFigure  = figure{"received", func(h *results, c string) string { return received(h.of(c, receivedMB)) }}
	peakFigure   = figure{"peak of the process", func(h *results, c string) string { return mib(h.of(c, peakMB)) }}
)

var choices = []choice{
	{
		section: "bench-forms", scenario: race.ColdStart, columns: []string{"`ExampleObject`", "the handler gets"},
		options: []option{
			{"ours-raw", []string{"`&informer.RawObject{}`", "the bytes as they came, until it returns"}},
			{"ours-raw-protobuf", []string{"the same, in protobuf", "the bytes as they came"}},
			{"ours-metadata", []string{"`&metav1.PartialObjectMetadata{}`", "metadata; the server sends no more"}},
			{"ours-typed", []string{"`&corev1.Pod{}`, or any API type", "a typed object, in protobuf where the server has it"}},
			{"ours-unstructured", []string{"`&unstructured.Unstructured{}` (the default)", "a map"}},
		},
		figures: []figure{cpuFigure, floorsFigure, allocsFigure, bytesFigure, peakFigure},
	},
	{
		section: "bench-kept", scenario: race.Restart, columns: []string{"", "you keep"},
		options: []option{
			{"ours-raw", []string{"nothing", ""}},
			{"ours-raw-relist", []string{"`Storage`, filled before `Run`", "resource versions, beside your data"}},
			{"ours-raw-resume", []string{"`Checkpoint`", "a file, or a `CheckpointStore` of yours"}},
		},
		figures: []figure{callsFigure, cpuFigure, bytesFigure},
	},
}

// writeChoices writes the tables of the page which-informer.md in the directory docs. If a
// contestant of a table did not take part in the run, that table is left as it is.
func (r *report) writeChoices(docs string) error {
	return rewrite(docs, "which-informer.md", func(document []byte) (_ []byte, err error) {
		for _, c := range choices {
			h := r.first(c.scenario)
			if h == nil || !c.measured(h) {
				continue
			}
			var table bytes.Buffer
			c.write(&table, h)
			if document, err = replaceSection(document, c.section, table.Bytes()); err != nil {
				return nil, err
			}
		}
		return document, nil
	})
}

// measured reports whether all contestants took part.
func (c choice) measured(h *results) bool {
	for _, o := range c.options {
		if len(h.runs[o.contestant]) == 0 {
			return false
		}
	}
	return true
}

func (c choice) write(b *bytes.Buffer, h *results) {
	titles, line := "|", "|"
	for _, title := range c.columns {
		titles, line = titles+" "+title+" |", line+"---|"
	}
	for _, f := range c.figures {
		titles, line = titles+" "+f.title+" |", line+"--:|"
	}
	b.WriteString(titles + "\n" + line + "\n")
	for _, o := range c.options {
		cells := o.cells[1:]
		for _, f := range c.figures {
			cells = append(cells[:len(cells):len(cells)], f.cell(h, o.contestant))
		}
		row(b, o.cells[0], cells...)
	}
}
