package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"time"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/bench/podserver"
	"github.com/rvinformer/informer/bench/race"
)

// shardPlan is what is to be run with a half of a set.
type shardPlan struct {
	pods, runs    int
	profile, docs string
}

func defaultShardPlan() *shardPlan { return &shardPlan{pods: 100_000, runs: 5, docs: "../docs"} }

func (p *shardPlan) flags(f *flag.FlagSet) {
	f.IntVar(&p.pods, "pods", p.pods, "objects of the server")
	f.IntVar(&p.runs, "runs", p.runs, "how often each is run; medians are quoted")
	f.StringVar(&p.profile, "profile", "", "write CPU profiles to files whose names begin so")
	f.StringVar(&p.docs, "docs", p.docs, "directory of the document that the table is written into; none if empty")
	f.BoolFunc("quick", "10,000 pods, once; writes nothing", func(string) error {
		p.quicken()
		return nil
	})
}

// quicken makes the plan small.
func (p *shardPlan) quicken() { p.pods, p.runs, p.docs = 10_000, 1, "" }

// shardCase is one way that a set, or a half of it, is read.
type shardCase struct {
	name, contestant string
	// half has half of the range followed, and sharded is of a server that selects by it.
	half, sharded bool
}

// The cases, in the order of their runs.
const (
	shardFloor    = "plain GETs of all pages, thrown away"
	shardWhole    = "informer of all"
	shardServed   = "informer of half, and a server that sends no more"
	shardFiltered = "informer of half, and a server that sends all"
)

var shardCases = []shardCase{
	{name: shardFloor, contestant: "floor-json"},
	{name: shardWhole, contestant: "ours-raw-paged"},
	{name: shardServed, contestant: "ours-raw-paged", half: true, sharded: true},
	{name: shardFiltered, contestant: "ours-raw-paged", half: true},
}

// shardReport is what came out.
type shardReport struct {
	plan *shardPlan
	load load
	half int // objects in it
	results
}

// shards runs a plan and writes what came out.
func shards(ctx context.Context, p *shardPlan) (_ *shardReport, err error) {
	programs, err := buildContestants(ctx, []string{"./contestants/floor", "./contestants/ours"}, "floor", "ours")
	if err != nil {
		return nil, err
	}
	r := &shardReport{plan: p, load: currentLoad(), results: results{runs: map[string][]race.Result{}}}
	if err := r.run(ctx, programs); err != nil {
		return nil, err
	}
	var table bytes.Buffer
	r.table(&table)
	return r, publish(p.docs, "bench-shard", table.Bytes())
}

// run runs all cases, and all of them again.
func (r *shardReport) run(ctx context.Context, programs *programs) (err error) {
	half := informer.Shard{}.Split(2)[0].String()
	if r.half, err = (podserver.Options{Pods: r.plan.pods}).InShard(half); err != nil {
		return err
	}
	targets := map[bool]race.Target{} // by shardCase.sharded
	for _, sharded := range []bool{false, true} {
		s, err := startServer(ctx, podserver.Options{Pods: r.plan.pods, Sharded: sharded})
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, s.stop()) }()
		targets[sharded] = s.target
	}
	for range r.plan.runs {
		for _, c := range shardCases {
			e, err := programs.entry(c.contestant)
			if err != nil {
				return err
			}
			order := race.Order{Scenario: race.ColdStart, Target: targets[c.sharded]}
			if c.half {
				order.Shard, order.Target.Objects = half, r.half
			}
			if r.plan.profile != "" {
				order.Profile = fmt.Sprintf("%s-%s-%v-%v", r.plan.profile, c.contestant, c.half, c.sharded)
			}
			result, err := e.run(ctx, order)
			if err != nil {
				return fmt.Errorf("%s: %w", c.name, err)
			}
			r.runs[c.name] = append(r.runs[c.name], result)
			fmt.Fprintf(os.Stderr, "%s shard %-50s %7d objects delivered, wall %6.2fs  cpu %6.3fs  server's %6.3fs  received %6.1f MiB  peak %5.1f MiB\n", time.Now().Format(time.TimeOnly),
				c.name, result.Delivered, result.Wall.Seconds(), result.CPU.Seconds(), result.ServerCPU.Seconds(), receivedMB(result), peakMB(result))
		}
	}
	return nil
}
