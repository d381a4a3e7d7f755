package main

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/rvinformer/informer/bench/race"
)

// report is what came out of a plan.
type report struct {
	plan     *plan
	heats    []*results
	capacity []capacity
	took     time.Duration
	load     load
}

// write writes the tables and the summary into performance.md, and tables into which-informer.md,
// each between two lines that say so, and draws the charts beside them.
func (r *report) write(docs string) error {
	var tables bytes.Buffer
	r.tables(&tables, true)
	if !r.plan.real {
		if err := r.draw(docs); err != nil {
			return err
		}
	}
	section := "bench"
	if r.plan.real {
		section = "bench-real"
	}
	if !r.plan.real {
		if err := r.writeChoices(docs); err != nil {
			return err
		}
	}
	return rewrite(docs, performance, func(document []byte) ([]byte, error) {
		document, err := replaceSection(document, section, tables.Bytes())
		if err != nil {
			return nil, err
		}
		var summary bytes.Buffer
		if r.summary(&summary); summary.Len() > 0 {
			return replaceSection(document, "bench-summary", summary.Bytes())
		}
		return document, nil
	})
}

// replaceSection puts text between the marks of a section, or, where there are
// none, with marks at the end.
func replaceSection(document []byte, section string, text []byte) ([]byte, error) {
	begin, end := fmt.Appendf(nil, "<!-- %s: written by make bench -->\n", section), fmt.Appendf(nil, "<!-- end of %s -->\n", section)
	text = append(bytes.TrimSpace(text), '\n')
	if !bytes.Contains(document, begin) {
		return bytes.Join([][]byte{document, []byte("\n"), begin, text, end}, nil), nil
	}
	before, rest, _ := bytes.Cut(document, begin)
	_, after, ok := bytes.Cut(rest, end)
	if !ok {
		return nil, fmt.Errorf("it has no %q", bytes.TrimSpace(end))
	}
	return bytes.Join([][]byte{before, begin, text, end, after}, nil), nil
}

// tables writes what came out as Markdown.
func (r *report) tables(b *bytes.Buffer, withCharts bool) {
	var following, storing, restarting []*results
	for _, h := range r.heats {
		switch h.scenario {
		case race.Storage:
			storing = append(storing, h)
		case race.Restart:
			restarting = append(restarting, h)
		default:
			following = append(following, h)
		}
	}
	if len(following) > 0 {
		r.followingSection(b)
		r.heatTables(b, following, withCharts)
	}
	if len(r.capacity) > 0 {
		r.capacityList(b)
	}
	if len(storing)+len(restarting) > 0 {
		r.rememberingSection(b)
	}
	if len(storing) > 0 {
		b.WriteString(storageNotes)
		r.heatTables(b, storing, withCharts)
	}
	if len(restarting) > 0 {
		b.WriteString(restartNotes)
		r.heatTables(b, restarting, withCharts)
	}
}

// commandLine is what was run.
func commandLine() string {
	if len(os.Args) <= 2 && !slices.Contains(os.Args, "peaks") && !slices.Contains(os.Args, "readcache") && !slices.Contains(os.Args, "shard") && !slices.Contains(os.Args, "ways") {
		return "make bench"
	}
	line := "cd bench && go run ."
	for _, arg := range os.Args[1:] {
		if arg == "" {
			arg = `""`
		}
		line += " " + arg
	}
	return line
}

// followingSection begins the section on following a set.
func (r *report) followingSection(b *bytes.Buffer) {
	title, server := "Beside client-go", "the simulated server (`bench/podserver`)"
	if r.plan.real {
		title, server = "Against a kube-apiserver", "a kube-apiserver"
	}
	fmt.Fprintf(b, "## %s\n\n    %s\n\n%s, in %v, against %s in a process of its own,\non %s,\nwhich server and client share%s.\n%s\n\n",
		title, commandLine(), time.Now().UTC().Format(time.DateOnly), r.took.Round(time.Second), server, hardware(), r.load.alone(), medians(r.plan.runs))
	b.WriteString(`A floor is a GET of the same bytes, in the same way and form, whose body is thrown
away: "own floor" compares with that, "JSON floor" with pages of 500 pods in JSON.
` + "`floor-copies-`" + ` also makes an object for each that comes, a deep copy of the first. A
contestant is a process of its own, of a program that has none of the others' code.
The handlers count. With no ` + "`-paged`" + ` to their names ours read watch-lists, as do
client-go's informers (` + "`WatchListClient`" + ` is on by default).
`)
	if r.plan.real {
		b.WriteString("This server compresses large lists, as all do by default, but no watch-lists.\n")
	}
}

// heatTables writes the tables of heats, each with its charts.
func (r *report) heatTables(b *bytes.Buffer, heats []*results, withCharts bool) {
	for _, h := range heats {
		switch h.scenario {
		case race.ColdStart:
			h.startTable(b, fmt.Sprintf("Cold start, %s pods%s", thousands(h.size), once(r.plan.runsOf(h.heat))))
		case race.Relist:
			h.startTable(b, fmt.Sprintf("The same again, nothing has changed, %s pods", thousands(h.size)))
		case race.SlowHandler:
			h.slowTable(b)
		case race.WatchBurst:
			h.watchTable(b)
		case race.Audit:
			h.auditTable(b)
		case race.Idle:
			h.idleTable(b)
		case race.Storage:
			h.storageTables(b)
		case race.Restart:
			h.restartTable(b, once(r.plan.runsOf(h.heat)))
		}
		if withCharts {
			for _, c := range r.charts(h) {
				fmt.Fprintf(b, "\n![%s](%s.svg)\n", c.title, c.name)
			}
		}
	}
}

// capacityList shows that it is the contestants that are measured.
func (r *report) capacityList(b *bytes.Buffer) {
	b.WriteString("\n### Is it the server that is measured?\n\n" +
		"`floor-json` alone, and several at once, each reading the whole set:\n\n")
	for _, c := range r.capacity {
		fmt.Fprintf(b, "- %v\n", c)
	}
	b.WriteString(`
A server that sends more to several than to one was not at its limit with one. CPU
is counted per process, so a contestant that waits for the server is not charged
for it, and the server's own is beside each cold start: what it lacks of the wall
time, it waited for its reader. Making a page takes it 0.08 µs per pod
(` + "`BenchmarkRender` of `bench/podserver`" + `); the rest is TLS, HTTP/2 and the kernel.
`)
}

func (h *results) startTable(b *bytes.Buffer, title string) {
	columns := []string{"wall", "CPU", "CPU, × own floor", "CPU, × JSON floor", "allocations per object", "beyond own floor", "allocated per object", "received", "peak RSS"}
	// A relist comes after a cold start.
	withServer := h.scenario == race.ColdStart && h.of("floor-json", serverCPU) > 0
	if withServer {
		columns = append(columns, "server's CPU")
	}
	header(b, title, columns...)
	for _, e := range h.entries {
		beyond := "-"
		if _, ok := h.runs[e.Floor]; ok && !e.IsFloor() {
			beyond = fmt.Sprintf("%.1f", max(0, h.of(e.Name, allocs)-h.of(e.Floor, allocs)))
		}
		cells := []string{
			duration(h.of(e.Name, wall)), duration(h.of(e.Name, cpu)),
			times(h.ratio(e.Name, e.Floor, cpu)), times(h.ratio(e.Name, "floor-json", cpu)),
			fmt.Sprintf("%.1f", h.of(e.Name, allocs)), beyond, kib(h.of(e.Name, allocBytes) / 1024),
			received(h.of(e.Name, receivedMB)), mib(h.of(e.Name, peakMB)),
		}
		if withServer {
			cells = append(cells, duration(h.of(e.Name, serverCPU)))
		}
		row(b, e.Name, cells...)
	}
}

func (h *results) slowTable(b *bytes.Buffer) {
	header(b, fmt.Sprintf("A handler that sleeps %v per object, %s pods (one run, all side by side)", race.SlowHandlerSleep, thousands(h.size)), "objects handled", "wall", "CPU", "received", "peak RSS")
	for _, e := range h.entries {
		row(b, e.Name, fmt.Sprintf("%.0f", h.of(e.Name, delivered)), duration(h.of(e.Name, wall)),
			duration(h.of(e.Name, cpu)), received(h.of(e.Name, receivedMB)), mib(h.of(e.Name, peakMB)))
	}
}

func (h *results) watchTable(b *bytes.Buffer) {
	header(b, "Changes, as fast as they can be read", "changes per second", "per second of CPU", "× client-go-typed", "handler calls", "allocations per change", "received", "peak RSS", "server's CPU")
	for _, e := range h.entries {
		calls := fmt.Sprintf("%.0f", h.of(e.Name, delivered))
		if e.IsFloor() {
			calls = "-"
		}
		row(b, e.Name, fmt.Sprintf("%.0f", h.of(e.Name, perSecond)), fmt.Sprintf("%.0f", h.of(e.Name, perCPUSecond)),
			times(h.ratio(e.Name, "client-go-typed", perCPUSecond)), calls,
			fmt.Sprintf("%.1f", h.of(e.Name, allocs)), received(h.of(e.Name, receivedMB)), mib(h.of(e.Name, peakMB)), duration(h.of(e.Name, serverCPU)))
	}
	b.WriteString("\nChanges of one object that wait for the handler are delivered as one, so there may be\nfewer calls than changes.\n")
}

func (h *results) auditTable(b *bytes.Buffer) {
	header(b, fmt.Sprintf("An audit that finds nothing, %s pods", thousands(h.size)), "wall", "CPU", "CPU, × own floor", "received", "memory beyond that before")
	for _, e := range h.entries {
		row(b, e.Name, duration(h.of(e.Name, wall)), duration(h.of(e.Name, cpu)), times(h.ratio(e.Name, e.Floor, cpu)), received(h.of(e.Name, receivedMB)), fmt.Sprintf("%.1f MiB", h.of(e.Name, grownMB)))
	}
}

func (h *results) idleTable(b *bytes.Buffer) {
	header(b, "Idle informers, each with its watch, over one connection", "goroutines each", "their stacks", "live objects", "stacks and heap in use")
	for _, e := range h.entries {
		row(b, e.Name, fmt.Sprintf("%.1f", h.of(e.Name, goroutines)), kib(h.of(e.Name, stackKiB)), kib(h.of(e.Name, liveKiB)), kib(h.of(e.Name, idleKiB)))
	}
}

func medians(runs int) string {
	if runs == 1 {
		return "One run."
	}
	return fmt.Sprintf("Medians of %d runs; ratios are within a run.", runs)
}

// once says that a figure is no median.
func once(runs int) string {
	if runs == 1 {
		return " (one run)"
	}
	return ""
}

func header(b *bytes.Buffer, title string, columns ...string) {
	fmt.Fprintf(b, "\n### %s\n", title)
	columnsOf(b, columns...)
}

func columnsOf(b *bytes.Buffer, columns ...string) {
	b.WriteString("\n| |")
	for _, c := range columns {
		fmt.Fprintf(b, " %s |", c)
	}
	b.WriteString("\n|---|")
	for range columns {
		b.WriteString("--:|")
	}
	b.WriteString("\n")
}

func row(b *bytes.Buffer, name string, cells ...string) {
	fmt.Fprintf(b, "| %s |", name)
	for _, c := range cells {
		fmt.Fprintf(b, " %s |", c)
	}
	b.WriteString("\n")
}

func times(ratio float64) string {
	if ratio == 0 {
		return "-"
	}
	return fmt.Sprintf("%.2f", ratio)
}

func mib(mebibytes float64) string { return fmt.Sprintf("%.0f MiB", mebibytes) }

// received writes what came off the sockets.
func received(mebibytes float64) string { return fmt.Sprintf("%.1f MiB", mebibytes) }

func kib(kibibytes float64) string { return fmt.Sprintf("%.1f KiB", kibibytes) }

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

// thousands writes a number with commas.
func thousands(n int) string {
	if n < 1000 {
		return fmt.Sprint(n)
	}
	return fmt.Sprintf("%s,%03d", thousands(n/1000), n%1000)
}
