package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/rvinformer/informer/bench/podserver"
	"github.com/rvinformer/informer/bench/race"
)

// all runs a plan and writes what came out.
func all(ctx context.Context, p *plan) error {
	p.settle()
	began := time.Now()
	programs, err := buildPrograms(ctx)
	if err != nil {
		return err
	}
	r := &report{plan: p, load: currentLoad()}
	if err := p.run(ctx, r, programs.entries); err != nil {
		return err
	}
	r.took = time.Since(began)
	var tables bytes.Buffer
	r.tables(&tables, false)
	if _, err := tables.WriteTo(os.Stdout); err != nil {
		return err
	}
	if p.docs == "" {
		return nil
	}
	return r.write(p.docs)
}

// run runs the scenarios.
func (p *plan) run(ctx context.Context, r *report, entries []entry) error {
	for _, size := range p.pods {
		if !slices.ContainsFunc(race.Served, func(s race.Scenario) bool { return p.chosen(s, size) }) {
			continue
		}
		if err := p.runSize(ctx, r, entries, size); err != nil {
			return err
		}
	}
	if !p.chosen(race.Storage, p.keys) {
		return nil
	}
	for _, names := range []race.Names{race.PodNames, race.RandomNames} {
		h := p.results(entries, heat{race.Storage, p.keys, names})
		if err := p.runInTurn(ctx, h, race.Target{Objects: p.keys}); err != nil {
			return err
		}
		r.heats = append(r.heats, h)
	}
	return nil
}

// results are those of a heat before it.
func (p *plan) results(entries []entry, of heat) *results {
	h := &results{heat: of, runs: map[string][]race.Result{}}
	for _, e := range entries {
		if p.takesPart(e, of) {
			h.entries = append(h.entries, e)
		}
	}
	return h
}

// runSize runs the scenarios that need a server with a set of one size.
func (p *plan) runSize(ctx context.Context, r *report, entries []entry, size int) (err error) {
	var s *server
	if p.real {
		s, err = startRealServer(ctx, size)
	} else {
		s, err = startServer(ctx, podserver.Options{Pods: size})
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.stop()) }()
	if s.target.Simulated && size == p.pods[0] && p.chosen(race.ColdStart, size) {
		if r.capacity, err = measureCapacity(ctx, entries, s.target); err != nil {
			return err
		}
	}
	for _, scenario := range race.Served {
		if !p.chosen(scenario, size) {
			continue
		}
		h := p.results(entries, heat{scenario: scenario, size: size})
		target := s.target
		switch scenario {
		case race.SlowHandler:
			err = p.runTogether(ctx, h, target)
		case race.WatchBurst:
			err = p.runBurst(ctx, h)
		case race.Restart:
			err = p.runRestart(ctx, h, target)
		default:
			err = p.runInTurn(ctx, h, target)
		}
		if err != nil {
			return err
		}
		r.heats = append(r.heats, h)
	}
	return nil
}

// runInTurn runs the contestants one after the other, and all of them again.
func (p *plan) runInTurn(ctx context.Context, h *results, target race.Target) error {
	for run := range p.runsOf(h.heat) {
		for _, e := range h.entries {
			order := race.Order{Scenario: h.scenario, Target: target, Limits: p.limits, Names: h.names}
			if p.profile != "" {
				order.Profile = fmt.Sprintf("%s-%s-%s", p.profile, h.scenario, e.Name)
			}
			result, err := e.run(ctx, order)
			if err != nil {
				return err
			}
			h.add(run, e, result)
		}
	}
	return nil
}

// runBurst is runInTurn with a server that sends changes.
func (p *plan) runBurst(ctx context.Context, h *results) (err error) {
	s, err := startServer(ctx, podserver.Options{Pods: p.burstPods, Events: p.events})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.stop()) }()
	return p.runInTurn(ctx, h, s.target)
}

// oneChangedIn is of how many pods one has changed when a contestant starts again.
const oneChangedIn = 100

// runRestart is runInTurn with a server on which some pods have changed since
// target was. What a contestant is to remember, it does in a process of its own.
func (p *plan) runRestart(ctx context.Context, h *results, target race.Target) (err error) {
	later, err := startServer(ctx, podserver.Options{Pods: h.size, Changed: max(1, h.size/oneChangedIn)})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, later.stop()) }()
	dir, err := os.MkdirTemp("", "rvinformer-bench-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	for run := range p.runsOf(h.heat) {
		for _, e := range h.entries {
			o := race.Order{Scenario: race.Restart, Target: later.target, Checkpoint: filepath.Join(dir, e.Name)}
			if e.Memory != race.Nothing {
				before := race.Order{Scenario: race.Remember, Target: target, Checkpoint: o.Checkpoint}
				if _, err := e.run(ctx, before); err != nil {
					return err
				}
			}
			result, err := e.run(ctx, o)
			if err != nil {
				return err
			}
			h.add(run, e, result)
		}
	}
	return nil
}

// runTogether runs the contestants once and side by side: what they do is sleep.
func (p *plan) runTogether(ctx context.Context, h *results, target race.Target) error {
	all := make([]race.Result, len(h.entries))
	errs := make([]error, len(h.entries))
	var running sync.WaitGroup
	for i, e := range h.entries {
		running.Go(func() {
			all[i], errs[i] = e.run(ctx, race.Order{Scenario: h.scenario, Target: target, Limits: p.limits})
		})
	}
	running.Wait()
	if err := errors.Join(errs...); err != nil {
		return err
	}
	for i, e := range h.entries {
		h.add(0, e, all[i])
	}
	return nil
}

func (r *results) add(run int, e entry, result race.Result) {
	r.runs[e.Name] = append(r.runs[e.Name], result)
	fmt.Fprintf(os.Stderr, "%s %-10s %8d objects, run %d, %-34s wall %6.2fs  cpu %6.2fs  server %5.2fs  %6.1f allocs  peak %6.1f MiB\n",
		time.Now().Format(time.TimeOnly), r.scenario, r.size, run+1, e.Name,
		wall(result), cpu(result), serverCPU(result), allocs(result), peakMB(result))
}
