package main

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/rvinformer/informer/bench/podserver"
	"github.com/rvinformer/informer/bench/race"
)

// TestMain is also the program that the tests start as a server.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == serveCommand {
		main()
		return
	}
	goleak.VerifyTestMain(m)
}

// TestEveryContestantEndsEveryScenario runs a plan with 1,000 pods, and holds
// what came out against what cannot be otherwise.
func TestEveryContestantEndsEveryScenario(t *testing.T) {
	t.Parallel()
	p := newAll()
	p.pods, p.runs, p.keys, p.burstPods, p.events = sizes{1000}, 1, 5000, 100, 1000
	p.limits = race.Limits{SlowObjects: 100, IdleInformers: 10}
	docs := emptyDocs(t, p, performance, "which-informer.md")
	require.NoError(t, execute(t.Context(), p))

	require.Len(t, p.heats, len(race.Served)+2) // and pods and random names for Storage
	for _, h := range p.heats {
		for _, e := range h.variants {
			results := h.runs[e.Name]
			require.Len(t, results, 1, e.Name)
			got := results[0]
			t.Logf("%s: %+v", h.scenario, got)
			require.Equal(t, e.Name, got.Contestant)
			require.Greater(t, got.PeakRSS, int64(5<<20))
			if h.scenario == race.Storage {
				require.InDelta(t, 300, liveOf(got), 299)
				require.InDelta(t, 300, liveLaterOf(got), 299)
				for _, took := range []time.Duration{got.Store.Fill, got.Store.Lookup, got.Store.Absent, got.Store.Update, got.Store.Replace, got.Store.Pass, got.Store.PassKeys, got.Store.ListKeys} {
					require.Positive(t, took)
				}
				require.Positive(t, got.Store.GC)
				require.Positive(t, got.Store.GCCPU)
				continue
			}
			require.Positive(t, got.ServerCPU)
			_, hasFloor := h.runs[e.Floor]
			require.True(t, hasFloor || !slices.Contains([]race.Scenario{race.ColdStart, race.Relist, race.Restart, race.Audit}, h.scenario), "%s has no floor %s", e.Name, e.Floor)
			if h.scenario == race.Idle {
				require.InDelta(t, 7, got.Goroutines, 6)
				require.InDelta(t, 100, idleKiB(got), 99)
				continue
			}
			require.Positive(t, got.Wall)
			require.Positive(t, got.CPU)
			switch {
			case e.IsFloor():
			case h.scenario == race.ColdStart:
				require.Equal(t, 1000, got.Delivered)
			case h.scenario == race.Restart:
				requests := int64(1)
				if e.Memory == race.Checkpoint {
					requests++ // whether the server was restored
				}
				require.Equal(t, requests, got.Requests)
				require.Equal(t, e.Memory != race.Checkpoint, got.ServerBytes > 3000*1000)
				require.LessOrEqual(t, got.Synced, got.Wall)
				if e.Memory == race.Nothing {
					require.Equal(t, 1000, got.Delivered)
				} else {
					require.Equal(t, 1000/oneChangedIn, got.Delivered)
				}
			case h.scenario == race.Relist:
				require.Zero(t, got.Delivered)
			case h.scenario == race.SlowHandler:
				require.Equal(t, 100, got.Delivered)
				require.GreaterOrEqual(t, got.Wall, 100*race.SlowHandlerSleep)
			case h.scenario == race.WatchBurst:
				require.LessOrEqual(t, got.Delivered, 1000)
				require.Positive(t, got.Delivered)
			}
		}
	}

	first := read(t, docs, performance)
	sections, err := p.sections()
	require.NoError(t, err)
	require.NoError(t, publish(docs, sections))
	require.Equal(t, first, read(t, docs, performance))
	require.Contains(t, first, "<!-- bench-summary: written by make bench -->\n### Memory of a start\n")
	chosen := read(t, docs, "which-informer.md")
	for _, c := range choiceTables {
		require.Contains(t, chosen, "<!-- "+c.section+": written by make bench -->\n| "+c.columns[0])
		require.Len(t, regexp.MustCompile(`(?m)^\|( [^|]*\|)+$`).FindAllString(chosen, -1), 2+5+3)
	}
}

// emptyDocs has a benchmark write into documents of a directory that have only a title.
func emptyDocs(t *testing.T, b benchmark, names ...string) string {
	docs := t.TempDir()
	for _, name := range names {
		require.NoError(t, os.WriteFile(filepath.Join(docs, name), []byte("# Title\n"), 0o644))
	}
	b.common().docs = docs
	return docs
}

func read(t *testing.T, docs, name string) string {
	text, err := os.ReadFile(filepath.Join(docs, name))
	require.NoError(t, err)
	return string(text)
}

// measured runs a benchmark of one section, and returns the document that it writes.
func measured(t *testing.T, b benchmark) string {
	docs := emptyDocs(t, b, more)
	require.NoError(t, execute(t.Context(), b))
	return read(t, docs, more)
}

// A server that two heats share runs from the first of them to the second one, and no longer.
func TestServersRunWhileHeatsNeedThem(t *testing.T) {
	var log []string
	server := func(name string) *host {
		return &host{start: func(context.Context) (race.Target, func() error, error) {
			log = append(log, "start "+name)
			return race.Target{Host: name}, func() error { log = append(log, "stop "+name); return nil }, nil
		}}
	}
	shared, own := server("shared"), server("own")
	heatAt := func(hosts ...*host) *heat {
		h := newHeat(race.ColdStart, 1, 2, hosts...)
		h.variants = []variant{{Entry: race.Entry{Name: "a"}, run: func(context.Context) (race.Result, error) {
			log = append(log, "run at "+hosts[0].target.Host)
			return race.Result{Objects: 1}, nil
		}}}
		return h
	}
	heats := []*heat{heatAt(shared), heatAt(own), heatAt(shared)}
	require.NoError(t, runHeats(t.Context(), heats))
	require.Equal(t, []string{
		"start shared", "run at shared", "run at shared", "start own", "run at own", "run at own", "stop own", "run at shared", "run at shared", "stop shared",
	}, log)
	log = nil
	heats[1].do = func(context.Context, *heat) error { return errors.New("no") }
	require.Error(t, runHeats(t.Context(), heats))
	require.ElementsMatch(t, []string{"stop shared", "stop own"}, log[len(log)-2:])
}

func TestSectionsAreReplaced(t *testing.T) {
	document := []byte("# Title\n")
	for _, text := range []string{"one", "two"} {
		var err error
		document, err = replaceSection(document, "a", []byte(text))
		require.NoError(t, err)
		document, err = replaceSection(document, "b", []byte("other"))
		require.NoError(t, err)
	}
	require.Equal(t, "# Title\n\n<!-- a: written by make bench -->\ntwo\n<!-- end of a -->\n\n"+
		"<!-- b: written by make bench -->\nother\n<!-- end of b -->\n", string(document))
	_, err := replaceSection(bytes.Replace(document, []byte("<!-- end of a -->\n"), nil, 1), "a", nil)
	require.Error(t, err)
}

func TestRatiosAreOfOneRun(t *testing.T) {
	h := &heat{runs: map[string][]race.Result{
		"floor": {{CPU: 1}, {CPU: 2}, {CPU: 100}},
		"ours":  {{CPU: 3}, {CPU: 4}, {CPU: 100}},
	}}
	require.Equal(t, 2.0, h.ratio("ours", "floor", func(r race.Result) float64 { return float64(r.CPU) }))
	require.Zero(t, h.ratio("ours", "absent", cpu))
}

// A summary has the medians of the tables, and is left out where a scenario was.
func TestSummary(t *testing.T) {
	mib, kib := int64(1<<20), float64(1<<10)
	heatOf := func(s race.Scenario, size int, all map[string]race.Result) *heat {
		h := newHeat(s, size, 1)
		for name, result := range all {
			h.variants = append(h.variants, variant{Entry: race.Entry{Name: name, Floor: "floor"}})
			h.runs[name] = []race.Result{result}
		}
		return h
	}
	p := newAll()
	p.heats = []*heat{
		heatOf(race.ColdStart, 2000, map[string]race.Result{
			"floor": {CPU: 1}, "ours-raw": {CPU: 2, PeakRSS: 30 * mib}, "ours-typed": {CPU: 3, PeakRSS: 50 * mib},
			"client-go-typed": {CPU: 20, PeakRSS: 1000 * mib}, "client-go-dynamic": {CPU: 30, PeakRSS: 3000 * mib},
		}),
		heatOf(race.Restart, 2000, map[string]race.Result{"ours-raw-resume": {CPU: 70 * time.Millisecond}, "client-go-typed": {CPU: 6 * time.Second}}),
		heatOf(race.Storage, 5000, map[string]race.Result{"ours-storage": {Objects: 10, Store: &race.StoreCosts{Live: 400}}}),
		heatOf(race.Idle, 10, map[string]race.Result{"ours-raw": {Goroutines: 2, InUseBytes: 32 * kib}}),
	}
	text := string(p.summary())
	for _, part := range []string{
		"reads 2,000 pods peaks at **30 to 50 MiB**", "1000 MiB\ntyped and 3000 MiB dynamic", "**2.00 times**", "20.00 and 30.00 times",
		"**70 ms** of CPU", "takes 6.0 s", "**40.0 B**", "**2 goroutines and 32.0 KiB**",
	} {
		require.Contains(t, text, part)
	}
	p.heats = p.heats[1:]
	require.Nil(t, p.summary())
}

func TestThousands(t *testing.T) {
	require.Equal(t, "7", thousands(7))
	require.Equal(t, "1,000", thousands(1000))
	require.Equal(t, "1,002,003", thousands(1002003))
}

func TestThreeDigits(t *testing.T) {
	require.Equal(t, "0.12", threeDigits(0.123))
	require.Equal(t, "12.3", threeDigits(12.34))
	require.Equal(t, "1235", threeDigits(1234.6))
}

func TestAServerThatCanNotStartIsReported(t *testing.T) {
	require.Error(t, simulatedHost(podserver.Options{Pods: podserver.MaxPods + 1}).begin(t.Context()))
}
