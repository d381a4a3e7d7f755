package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/rvinformer/informer/bench/podserver"
	"github.com/rvinformer/informer/bench/race"
)

// peaksPlan is what is to be measured of the typed factories.
type peaksPlan struct {
	pods, runs int
	docs       string
}

func (p *peaksPlan) flags(f *flag.FlagSet) {
	f.IntVar(&p.pods, "pods", 100_000, "number of pods")
	f.IntVar(&p.runs, "runs", 3, "how often each is run; medians are quoted")
	f.StringVar(&p.docs, "docs", "../docs", "directory of performance-more.md, to write the table to; none if empty")
}

// factoryKind is one way to make a factory.
type factoryKind struct{ ours, protobuf bool }

var factoryKinds = []factoryKind{{true, true}, {false, true}, {true, false}, {false, false}}

func (k factoryKind) String() string {
	name, form := "client-go's", "JSON"
	if k.ours {
		name = "`factory/typed`"
	}
	if k.protobuf {
		form = "protobuf"
	}
	return name + ", " + form
}

// peaks measures the memory of the typed factories, each in processes of its own.
func peaks(ctx context.Context, p *peaksPlan) (err error) {
	began := time.Now()
	programs, err := buildPrograms(ctx)
	if err != nil {
		return err
	}
	s, err := startServer(ctx, podserver.Options{Pods: p.pods})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.stop()) }()
	load := currentLoad()
	measured := map[factoryKind][]race.Peaks{}
	for run := range p.runs {
		for _, k := range factoryKinds {
			fmt.Fprintf(os.Stderr, "run %d: %v\n", run+1, k)
			var one race.Peaks
			order := race.FactoryOrder{Ours: k.ours, Protobuf: k.protobuf, Target: s.target}
			if err := tell(ctx, filepath.Join(programs.dir, "factories"), order, &one); err != nil {
				return fmt.Errorf("%v: %w", k, err)
			}
			measured[k] = append(measured[k], one)
		}
	}
	var text bytes.Buffer
	fmt.Fprintf(&text, peaksNotes, commandLine(), time.Now().UTC().Format(time.DateOnly), time.Since(began).Round(time.Second), hardware(), load.alone(), medians(p.runs), p.pods)
	peaksTable(&text, measured, p.pods)
	return publish(p.docs, "bench-peaks", text.Bytes())
}

const peaksNotes = `## Memory of typed factories

    %s

%s, in %v, against the simulated server (` + "`bench/podserver`" + `) in a process of its own,
on %s,
which server and client share%s.
%s A ratio is of two figures of one process.

One informer of %d pods, made by a typed factory: client-go's, with its defaults, and
` + "`factory/typed`" + ` with WithRESTConfig. Settled is what is resident after the start, once the garbage
is collected and what is free is given back (debug.FreeOSMemory). The peaks are VmHWM: of
the start, and, counted anew from the settled state, of the list that follows when the
watch is cut and the next one is answered with 410. Nothing has changed meanwhile. The bytes received
are counted at the sockets. No answer is compressed.

`

func peaksTable(w io.Writer, measured map[factoryKind][]race.Peaks, objects int) {
	fmt.Fprintln(w, "| | settled | peak of the start | × settled | peak of a list | × settled | allocated by the list, per object | settled after it | received in the start | in the list |")
	fmt.Fprintln(w, "|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|")
	for _, k := range factoryKinds {
		all := measured[k]
		if len(all) == 0 {
			continue
		}
		mebibytes := func(of func(race.Peaks) int64) string {
			return fmt.Sprintf("%.0f MiB", middle(all, func(p race.Peaks) float64 { return float64(of(p)) / (1 << 20) }))
		}
		ratio := func(of func(race.Peaks) int64) string {
			return fmt.Sprintf("%.2f", middle(all, func(p race.Peaks) float64 { return float64(of(p)) / float64(p.Settled) }))
		}
		start, list := func(p race.Peaks) int64 { return p.Start }, func(p race.Peaks) int64 { return p.Relist }
		fmt.Fprintf(w, "| %v | %s | %s | %s | %s | %s | %.2f KiB | %s | %s | %s |\n", k,
			mebibytes(func(p race.Peaks) int64 { return p.Settled }), mebibytes(start), ratio(start), mebibytes(list), ratio(list),
			middle(all, func(p race.Peaks) float64 { return float64(p.RelistBytes) / 1024 / float64(objects) }),
			mebibytes(func(p race.Peaks) int64 { return p.SettledAgain }),
			mebibytes(func(p race.Peaks) int64 { return p.StartReceived }), mebibytes(func(p race.Peaks) int64 { return p.RelistReceived }))
	}
}

func middle(all []race.Peaks, of func(race.Peaks) float64) float64 {
	values := make([]float64, 0, len(all))
	for _, p := range all {
		values = append(values, of(p))
	}
	slices.Sort(values)
	return values[len(values)/2]
}
