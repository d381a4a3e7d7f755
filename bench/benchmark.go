package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"time"

	"github.com/rvinformer/informer/bench/race"
	"github.com/rvinformer/informer/e2e/cluster"
)

// benchmark is a command: what it runs, and what it writes about that.
type benchmark interface {
	common() *settings
	// flags registers the flags of the command.
	flags(f *flag.FlagSet)
	// plan returns what is to be run with contestants, in order.
	plan(contestants) ([]*heat, error)
	// sections are what is written when that was run.
	sections() ([]section, error)
}

// settings are those of all benchmarks, and what is said of each.
type settings struct {
	runs int
	// pods is the number of objects of a server, or of each resource of one; 0 where the benchmark
	// has several numbers.
	pods int
	docs string
	// profile is what the names of profiles begin with; there are none if it is empty.
	profile string
	// programs are those that have the contestants.
	programs []string

	load load
	took time.Duration
}

// newSettings returns those of a benchmark whose contestants are in programs.
func newSettings(runs, pods int, programs ...string) settings {
	return settings{runs: runs, pods: pods, docs: "../docs", programs: programs}
}

func (s *settings) common() *settings { return s }

func (s *settings) flags(f *flag.FlagSet) {
	f.IntVar(&s.runs, "runs", s.runs, "how often each is run; medians are quoted")
	f.StringVar(&s.docs, "docs", s.docs, "directory of the documents that the tables are written into; none if empty")
	f.StringVar(&s.profile, "profile", "", "write profiles to files whose names begin so")
	if s.pods > 0 {
		f.IntVar(&s.pods, "pods", s.pods, "objects of a server, or of each resource of one")
	}
}

// newHeat returns a heat whose variants are run as often as the settings say.
func (s *settings) newHeat(scenario race.Scenario, size int, hosts ...*host) *heat {
	h := newHeat(scenario, size, s.runs, hosts...)
	h.profile = s.profile
	return h
}

// execute runs a benchmark and publishes what came out.
func execute(ctx context.Context, b benchmark) error {
	s, began := b.common(), time.Now()
	all, err := buildContestants(ctx, s.programs...)
	if err != nil {
		return err
	}
	s.load = currentLoad()
	heats, err := b.plan(all)
	if err != nil {
		return err
	}
	if err := runHeats(ctx, heats); err != nil {
		return err
	}
	s.took = time.Since(began)
	sections, err := b.sections()
	if err != nil {
		return err
	}
	return publish(s.docs, sections)
}

// runHeats runs heats. A server runs from the first heat that needs it to the last one.
func runHeats(ctx context.Context, heats []*heat) (err error) {
	last := map[*host]*heat{}
	for _, h := range heats {
		for _, at := range h.hosts {
			last[at] = h
		}
	}
	defer func() {
		for at := range last {
			err = errors.Join(err, at.end())
		}
	}()
	for _, h := range heats {
		for _, at := range h.hosts {
			if err := at.begin(ctx); err != nil {
				return err
			}
		}
		if err := h.do(ctx, h); err != nil {
			return err
		}
		for _, at := range h.hosts {
			if last[at] == h {
				if err := at.end(); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// head begins a section: what was run, when, and on what.
func (s *settings) head(title string) string {
	return fmt.Sprintf("%s\n\n    %s\n\n%s, on %s%s.\n%s\n", title, commandLine(), today(), hardware(), s.load.alone(), medians(s.runs))
}

// headAgainst is head with a server.
func (s *settings) headAgainst(title, server string) string {
	return fmt.Sprintf("## %s\n\n    %s\n\n%s, in %v, against %s in a process of its own,\non %s,\nwhich server and client share%s.\n%s",
		title, commandLine(), today(), s.took.Round(time.Second), server, hardware(), s.load.alone(), medians(s.runs))
}

// commandLine is what was run.
func commandLine() string {
	if len(os.Args) == 2 && os.Args[1] == "all" {
		return "make bench"
	}
	line := "cd bench && "
	if minor := os.Getenv(cluster.Variable); minor != "" {
		line += cluster.Variable + "=" + minor + " "
	}
	line += "go run ."
	for _, arg := range os.Args[1:] {
		if arg == "" {
			arg = `""`
		}
		line += " " + arg
	}
	return line
}

const simulatedServer = "the simulated server (`bench/podserver`)"

func today() string { return time.Now().UTC().Format(time.DateOnly) }

func medians(runs int) string {
	if runs == 1 {
		return "One run."
	}
	return fmt.Sprintf("Medians of %d runs; ratios are within a run.", runs)
}
