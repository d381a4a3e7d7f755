package main

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/rvinformer/informer/bench/race"
)

// column is a column of a table: its title, and what it shows of a variant.
type column struct {
	title string
	cell  func(h *heat, e race.Entry) string
}

// figure is a column of medians.
func figure(title string, format func(float64) string, of func(race.Result) float64) column {
	return column{title, func(h *heat, e race.Entry) string { return format(h.of(e.Name, of)) }}
}

// ratio is a column of ratios to a variant.
func ratio(title, to string, of func(race.Result) float64) column {
	return column{title, func(h *heat, e race.Entry) string { return times(h.ratio(e.Name, to, of)) }}
}

// ownRatio is a column of ratios to the floor of each.
func ownRatio(title string, of func(race.Result) float64) column {
	return column{title, func(h *heat, e race.Entry) string { return times(h.ratio(e.Name, e.Floor, of)) }}
}

// notOfFloors leaves a column empty for floors.
func notOfFloors(c column) column {
	return column{c.title, func(h *heat, e race.Entry) string {
		if e.IsFloor() {
			return "-"
		}
		return c.cell(h, e)
	}}
}

// table writes a table under a title, with a row for each variant.
func (h *heat) table(b *bytes.Buffer, title string, columns ...column) {
	fmt.Fprintf(b, "\n### %s\n", title)
	h.rows(b, columns...)
}

func (h *heat) rows(b *bytes.Buffer, columns ...column) {
	var titles []string
	for _, c := range columns {
		titles = append(titles, c.title)
	}
	columnsOf(b, titles...)
	for _, v := range h.variants {
		var cells []string
		for _, c := range columns {
			cells = append(cells, c.cell(h, v.Entry))
		}
		row(b, strings.TrimPrefix(v.Name, h.prefix), cells...)
	}
}

func columnsOf(b *bytes.Buffer, columns ...string) {
	fmt.Fprintf(b, "\n| | %s |\n|---|%s\n", strings.Join(columns, " | "), strings.Repeat("--:|", len(columns)))
}

func row(b *bytes.Buffer, name string, cells ...string) {
	fmt.Fprintf(b, "| %s | %s |\n", name, strings.Join(cells, " | "))
}

// quoted is Markdown with ' for what a raw string cannot have.
func quoted(text string) string { return strings.ReplaceAll(text, "'", "`") }

func times(ratio float64) string {
	if ratio == 0 {
		return "-"
	}
	return fmt.Sprintf("%.2f", ratio)
}

// as writes figures in a format.
func as(format string) func(float64) string {
	return func(v float64) string { return fmt.Sprintf(format, v) }
}

var (
	mib = as("%.0f MiB")
	// received is for what came off the sockets.
	received = as("%.1f MiB")
	kib      = as("%.1f KiB")
)

func duration(s float64) string {
	switch {
	case s < 1:
		return fmt.Sprintf("%.0f ms", 1000*s)
	case s < 10:
		return fmt.Sprintf("%.1f s", s)
	default:
		return fmt.Sprintf("%.0f s", s)
	}
}

// count writes a whole number.
func count(v float64) string { return thousands(int(v)) }

// thousands writes a number with commas.
func thousands(n int) string {
	if n < 1000 {
		return fmt.Sprint(n)
	}
	return fmt.Sprintf("%s,%03d", thousands(n/1000), n%1000)
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
