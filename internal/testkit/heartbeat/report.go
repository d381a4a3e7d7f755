package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
)

// event is one of those that `go test -json` prints; see `go doc cmd/test2json` and
// `go help buildjson`.
type event struct {
	Time    time.Time
	Action  string
	Package string
	Test    string
	Elapsed float64 // in seconds
	Output  string
}

// test is one test of one package. Without a test's name, it is the package itself.
type test struct{ pkg, name string }

// report prints what becomes of a command's output.
type report struct {
	out     io.Writer
	name    string
	started time.Time

	tests   bool // the command prints events, or will
	passed  int
	failed  []failure
	skipped int
	output  map[test]*strings.Builder // what has not ended has printed
	running map[test]time.Time        // since when
	slowest []timed                   // at most maxSlowest, the slowest first
}

// failure is a test that failed.
type failure struct {
	test
	reason string // lines, empty if the test has printed none
}

// timed is a test that took so long.
type timed struct {
	test
	seconds float64
}

const (
	maxSlowest = 5
	maxRunning = 3 // tests in one line
)

func newReport(out io.Writer, name string, started time.Time) *report {
	r := &report{out: out, name: name, started: started, output: map[test]*strings.Builder{}, running: map[test]time.Time{}}
	r.print(started, "begins")
	return r
}

// print prints one line of heartbeat's own.
func (r *report) print(now time.Time, format string, args ...any) {
	fmt.Fprintf(r.out, "%s %s %s\n", r.name, r.took(now), fmt.Sprintf(format, args...))
}

// took is how long it has been, in minutes and seconds.
func (r *report) took(now time.Time) string {
	took := now.Sub(r.started).Round(time.Second)
	return fmt.Sprintf("%d:%02d", int(took.Minutes()), int(took.Seconds())%60)
}

// row is the line of a Markdown table with how the command ended. One that failed while no test did
// says why.
func (r *report) row(now time.Time, err error) string {
	failed := 0
	for _, f := range r.failed {
		if f.name != "" {
			failed++
		}
	}
	failures := fmt.Sprint(failed)
	if failed == 0 && err != nil {
		failures = err.Error()
	}
	return fmt.Sprintf("| %s | %d | %s | %d | %s |\n", r.name, r.passed, failures, r.skipped, r.took(now))
}

// line takes one line of the command's output, with its end.
func (r *report) line(line string) {
	var e event
	if !strings.HasPrefix(line, "{") || json.Unmarshal([]byte(line), &e) != nil || e.Action == "" {
		fmt.Fprint(r.out, line)
		return
	}
	r.tests = true
	it := test{e.Package, e.Test}
	switch e.Action {
	case "build-output":
		fmt.Fprint(r.out, e.Output)
	case "start", "run":
		r.running[it] = time.Now()
		r.output[it] = &strings.Builder{}
	case "pause":
		delete(r.running, it)
	case "cont":
		r.running[it] = time.Now()
	case "output":
		if o := r.output[it]; o != nil {
			o.WriteString(e.Output)
		}
	case "pass", "skip", "fail":
		r.ended(it, e)
	}
}

func (r *report) ended(it test, e event) {
	printed := ""
	if o := r.output[it]; o != nil {
		printed = o.String()
	}
	if e.Action == "fail" {
		if it.name == "" {
			printed = r.unended(it.pkg) + printed
		}
		fmt.Fprint(r.out, printed)
		r.failed = append(r.failed, failure{it, reason(printed)})
	}
	delete(r.running, it)
	delete(r.output, it)
	if it.name == "" {
		if e.Action == "pass" {
			r.print(time.Now(), "ok %s %.1fs%s", it.pkg, e.Elapsed, cachedMark(printed))
		}
		return
	}
	switch e.Action {
	case "pass":
		r.passed++
	case "skip":
		r.skipped++
	}
	if strings.Contains(it.name, "/") {
		return // part of another
	}
	r.slowest = append(r.slowest, timed{it, e.Elapsed})
	slices.SortStableFunc(r.slowest, func(a, b timed) int { return cmp.Compare(b.seconds, a.seconds) })
	r.slowest = r.slowest[:min(maxSlowest, len(r.slowest))]
}

// unended returns the output of a package's tests that a crash has ended.
func (r *report) unended(pkg string) string {
	var all strings.Builder
	for it, printed := range r.output {
		if it.pkg == pkg && it.name != "" {
			all.WriteString(printed.String())
			delete(r.output, it)
			delete(r.running, it)
		}
	}
	return all.String()
}

func cachedMark(output string) string {
	if strings.Contains(output, "(cached)") {
		return " (cached)"
	}
	return ""
}

// beat says what runs.
func (r *report) beat(now time.Time) {
	switch {
	case !r.tests:
		r.print(now, "still runs")
	case len(r.running) == 0:
		r.print(now, "%d tests passed; the go command builds", r.passed)
	default:
		r.print(now, "%d tests passed; now %s", r.passed, strings.Join(r.now(now), ", "))
	}
}

// now names the tests that run, those that began first before the others. A test whose
// subtest runs is not named, nor a package whose test runs.
func (r *report) now(now time.Time) []string {
	leaves := make([]timed, 0, len(r.running))
	for it, since := range r.running {
		if !r.hasInner(it) {
			leaves = append(leaves, timed{it, now.Sub(since).Seconds()})
		}
	}
	slices.SortFunc(leaves, func(a, b timed) int {
		return cmp.Or(cmp.Compare(b.seconds, a.seconds), strings.Compare(a.pkg+a.name, b.pkg+b.name))
	})
	var names []string
	for _, l := range leaves[:min(maxRunning, len(leaves))] {
		names = append(names, fmt.Sprintf("%s (%.0fs)", l.test, l.seconds))
	}
	if more := len(leaves) - maxRunning; more > 0 {
		names = append(names, fmt.Sprintf("and %d more", more))
	}
	return names
}

func (r *report) hasInner(it test) bool {
	for other := range r.running {
		if other.pkg != it.pkg || other == it {
			continue
		}
		if it.name == "" || strings.HasPrefix(other.name, it.name+"/") {
			return true
		}
	}
	return false
}

// String is the last element of the package's path, and the test's name.
func (t test) String() string {
	short := t.pkg[strings.LastIndex(t.pkg, "/")+1:]
	if t.name == "" {
		return short
	}
	return short + "." + t.name
}

// end prints how the command ended, and how much of the CPU it and its processes took.
func (r *report) end(now time.Time, cpu time.Duration, err error) {
	if r.tests && len(r.slowest) > 0 {
		var slowest []string
		for _, s := range r.slowest {
			slowest = append(slowest, fmt.Sprintf("%s %.1fs", s.test, s.seconds))
		}
		r.print(now, "%d tests passed, %d skipped; the slowest: %s", r.passed, r.skipped, strings.Join(slowest, ", "))
	}
	for _, it := range r.failed {
		r.print(now, "FAILED %s", it.test)
		fmt.Fprint(r.out, it.reason)
	}
	if err != nil {
		r.print(now, "FAILED: %v", err)
		return
	}
	r.print(now, "done, %.0f s of CPU", cpu.Seconds())
}
