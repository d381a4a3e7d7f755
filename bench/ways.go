package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/rvinformer/informer/bench/podserver"
	"github.com/rvinformer/informer/bench/race"
)

// waysPlan is what is to be run with the ways to read a set.
type waysPlan struct {
	pods, runs int
	forms      string
	simulated  bool
	profile    string
	docs       string
}

func defaultWaysPlan() *waysPlan { return &waysPlan{pods: 20_000, runs: 3, docs: "../docs"} }

func (p *waysPlan) flags(f *flag.FlagSet) {
	f.IntVar(&p.pods, "pods", p.pods, "pods that are created in the server")
	f.IntVar(&p.runs, "runs", p.runs, "how often each is run; medians are quoted")
	f.StringVar(&p.forms, "forms", "", "only forms of objects whose names begin so")
	f.StringVar(&p.profile, "profile", "", "write CPU profiles to files whose names begin so")
	f.StringVar(&p.docs, "docs", p.docs, "directory of the document that the table is written into; none if empty")
	f.BoolFunc("simulated", "a simulated server, which compresses nothing; writes nothing", func(string) error {
		p.simulated, p.docs = true, ""
		return nil
	})
}

// waysReport is what came out.
type waysReport struct {
	plan *waysPlan
	load load
	// forms are the forms of objects, in order.
	forms []string
	results
}

// ways runs a plan and writes what came out.
func ways(ctx context.Context, p *waysPlan) (_ *waysReport, err error) {
	programs, err := buildContestants(ctx, []string{"./contestants/floor", "./contestants/ways"}, "floor", "ways")
	if err != nil {
		return nil, err
	}
	r := &waysReport{plan: p, load: currentLoad(), results: results{runs: map[string][]race.Result{}}}
	if err := r.run(ctx, programs); err != nil {
		return nil, err
	}
	var table bytes.Buffer
	r.table(&table)
	return r, publish(p.docs, "bench-ways", table.Bytes())
}

// run runs each form in each way after its floor, and all of them again.
func (r *waysReport) run(ctx context.Context, programs *programs) (err error) {
	var s *server
	if r.plan.simulated {
		s, err = startServer(ctx, podserver.Options{Pods: r.plan.pods})
	} else {
		s, err = startRealServer(ctx, r.plan.pods)
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.stop()) }()
	for _, e := range programs.entries {
		if form, _, ok := strings.Cut(e.Name, ", "); ok && strings.HasPrefix(form, r.plan.forms) {
			r.entries = append(r.entries, e)
			if n := len(r.forms); n == 0 || r.forms[n-1] != form {
				r.forms = append(r.forms, form)
			}
		}
	}
	for run := range r.plan.runs {
		for _, e := range r.entries {
			for _, name := range []string{e.Floor, e.Name} {
				if len(r.runs[name]) > run {
					continue // a floor of several
				}
				contestant, err := programs.entry(name)
				if err != nil {
					return err
				}
				order := race.Order{Scenario: race.ColdStart, Target: s.target}
				if r.plan.profile != "" {
					order.Profile = r.plan.profile + "-" + strings.NewReplacer(", ", "-", " ", "-").Replace(name)
				}
				result, err := contestant.run(ctx, order)
				if err != nil {
					return fmt.Errorf("%s: %w", name, err)
				}
				r.runs[name] = append(r.runs[name], result)
				fmt.Fprintf(os.Stderr, "%s ways %-50s wall %6.2fs  cpu %6.3fs  server %6.3fs  received %6.1f MiB  peak %5.1f MiB\n", time.Now().Format(time.TimeOnly),
					name, result.Wall.Seconds(), result.CPU.Seconds(), result.ServerCPU.Seconds(), receivedMB(result), peakMB(result))
			}
		}
	}
	return nil
}
