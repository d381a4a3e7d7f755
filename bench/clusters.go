package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/rvinformer/informer/bench/podserver"
	"github.com/rvinformer/informer/bench/race"
)

// clustersPlan is what is to be run with many clusters.
type clustersPlan struct {
	clusters, pods, hugePods, times, runs int
	profile, only, docs                   string
	idles                                 []clustersIdle
}

func defaultClustersPlan() *clustersPlan {
	return &clustersPlan{clusters: 200, pods: 200, hugePods: 20_000, times: 1000, runs: 3, docs: "../docs", idles: clustersIdles}
}

func (p *clustersPlan) flags(f *flag.FlagSet) {
	f.IntVar(&p.clusters, "clusters", p.clusters, "simulated clusters, each followed in 5 resources")
	f.IntVar(&p.pods, "pods", p.pods, "objects of each resource")
	f.IntVar(&p.hugePods, "huge", p.hugePods, "objects of each resource of a cluster that is huge")
	f.IntVar(&p.times, "times", p.times, "informers that are added and removed")
	f.IntVar(&p.runs, "runs", p.runs, "how often each is run; medians are quoted")
	f.StringVar(&p.profile, "profile", "", "write the heap and the goroutines of idle informers to files whose names begin so")
	f.StringVar(&p.only, "only", "", "only what has this in its name")
	f.StringVar(&p.docs, "docs", p.docs, "directory of the document that the tables are written into; none if empty")
}

// clusterResources are what is followed of each.
var clusterResources = []string{"pods", "services", "secrets", "configmaps", "endpoints"}

// start is one way that they start.
type clustersStart struct {
	name     string
	budget   int64
	handling time.Duration
	// last are the troubles of the last clusters, and huge tells that the one before
	// has more pods.
	last []podserver.Trouble
	huge bool
}

const defaultBudget, hugeBudget = 16 << 20, 16 << 30

// troubles are of the last clusters where there are some.
var troubles = []podserver.Trouble{podserver.Dead, podserver.Slow, podserver.Forbidden}

var clustersStarts = []clustersStart{
	{name: "all healthy", budget: defaultBudget},
	{name: "without the last three", budget: defaultBudget, last: make([]podserver.Trouble, 3)},
	{name: "one dead, one slow, one forbidden", budget: defaultBudget, last: troubles},
	{name: "one huge", budget: defaultBudget, huge: true},
	{name: "all healthy, no limit (a budget of 16 GiB)", budget: hugeBudget},
	{name: "handlers that sleep 1 ms", budget: defaultBudget, handling: time.Millisecond},
	{name: "handlers that sleep 1 ms, no limit", budget: hugeBudget, handling: time.Millisecond},
}

// clustersIdle is one way that they are idle.
type clustersIdle struct {
	name               string
	plain, http1, bare bool
}

var clustersIdles = []clustersIdle{
	{name: "HTTP/2"},
	{name: "HTTP/2, bare watches", bare: true},
	{name: "HTTP/1.1 over TLS", http1: true},
	{name: "HTTP/1.1 over TLS, bare watches", http1: true, bare: true},
	{name: "HTTP/1.1, plain", plain: true},
	{name: "HTTP/1.1, plain, bare watches", plain: true, bare: true},
}

// clustersReport is what came out.
type clustersReport struct {
	plan  *clustersPlan
	load  load
	start map[string][]race.ClustersResult
	idle  map[string][]race.ClustersResult
	churn []race.ClustersResult
}

// clusters runs a plan and writes what came out.
func clusters(ctx context.Context, p *clustersPlan) (_ *clustersReport, err error) {
	programs, err := buildContestants(ctx, []string{"./contestants/clusters"})
	if err != nil {
		return nil, err
	}
	program := filepath.Join(programs.dir, "clusters")
	r := &clustersReport{plan: p, load: currentLoad(), start: map[string][]race.ClustersResult{}, idle: map[string][]race.ClustersResult{}}
	for range p.runs {
		if err := r.run(ctx, program); err != nil {
			return nil, err
		}
	}
	var tables bytes.Buffer
	r.tables(&tables)
	return r, publish(p.docs, "bench-clusters", tables.Bytes())
}

// run runs everything once.
func (r *clustersReport) run(ctx context.Context, program string) error {
	p := r.plan
	for _, s := range clustersStarts {
		if !strings.Contains(s.name, p.only) {
			continue
		}
		options := make([]podserver.Options, p.clusters)
		for i := range options {
			options[i] = podserver.Options{Pods: p.pods, Resources: clusterResources[1:]}
		}
		without := len(s.last) > 0 && s.last[0] == podserver.Healthy
		for i, trouble := range s.last {
			options[p.clusters-1-i].Trouble = trouble
		}
		if without {
			options = options[:p.clusters-len(s.last)]
		}
		if s.huge {
			options[p.clusters-1].Pods = p.hugePods
		}
		// The huge one, and those in trouble, are not waited for.
		notAwaited := 0
		if s.huge {
			notAwaited = 1
		} else if !without {
			notAwaited = len(s.last)
		}
		order := race.ClustersOrder{Do: race.StartClusters, Budget: s.budget, Handling: s.handling}
		result, err := runClusters(ctx, program, options, notAwaited, order)
		if err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
		r.start[s.name] = append(r.start[s.name], result)
		fmt.Fprintf(os.Stderr, "%s start %-45s %8d objects, wall %6.2fs  cpu %6.2fs  received %6.1f MiB  peak %6.1f MiB\n",
			time.Now().Format(time.TimeOnly), s.name, result.Objects, result.Wall.Seconds(), result.CPU.Seconds(), float64(result.Received)/(1<<20), float64(result.PeakRSS)/(1<<20))
	}
	for _, i := range p.idles {
		if !strings.Contains("idle, "+i.name, p.only) {
			continue
		}
		order := race.ClustersOrder{Do: race.IdleClusters, Budget: defaultBudget, HTTP1: i.http1, Bare: i.bare}
		if p.profile != "" {
			order.Profile = p.profile + "-" + map[bool]string{false: "ours", true: "bare"}[i.bare] + map[bool]string{false: "-http2", true: "-http1"}[i.http1 || i.plain]
		}
		result, err := runClusters(ctx, program, emptyClusters(p.clusters, i.plain), 0, order)
		if err != nil {
			return fmt.Errorf("idle, %s: %w", i.name, err)
		}
		r.idle[i.name] = append(r.idle[i.name], result)
		fmt.Fprintf(os.Stderr, "%s idle  %-45s %.1f goroutines, %.1f KiB of stacks, %.1f KiB live, %.1f KiB in use, %.1f KiB resident\n",
			time.Now().Format(time.TimeOnly), i.name, result.Goroutines, result.StackBytes/1024, result.LiveBytes/1024, result.InUseBytes/1024, result.RSS/1024)
	}
	if !strings.Contains("churn", p.only) {
		return nil
	}
	churned := min(p.clusters, 20)
	result, err := runClusters(ctx, program, emptyClusters(churned, false), 0, race.ClustersOrder{Do: race.ChurnClusters, Budget: defaultBudget, Times: p.times})
	if err != nil {
		return fmt.Errorf("churn: %w", err)
	}
	r.churn = append(r.churn, result)
	return nil
}

func emptyClusters(n int, plain bool) []podserver.Options {
	options := make([]podserver.Options, n)
	for i := range options {
		options[i] = podserver.Options{Resources: clusterResources[1:], Plain: plain}
	}
	return options
}

// runClusters has the program obey an order, with servers of its own.
func runClusters(ctx context.Context, program string, options []podserver.Options, notAwaited int, order race.ClustersOrder) (result race.ClustersResult, err error) {
	ctx, cancel := context.WithTimeout(ctx, runTimeout)
	defer cancel()
	var targets []race.Target
	stop, err := startProcess(ctx, "serve-clusters", options, &targets)
	if err != nil {
		return result, err
	}
	defer func() { err = errors.Join(err, stop()) }()
	order.Resources = clusterResources
	for i, target := range targets {
		order.Clusters = append(order.Clusters, race.Cluster{Target: target, Troubled: i >= len(targets)-notAwaited})
	}
	var env []string
	if order.Profile != "" {
		env = append(env, "GODEBUG=memprofilerate=1")
	}
	return result, tell(ctx, program, order, &result, env...)
}

// serveClusters is the process of many simulated servers: their options are on its
// input, and it ends when that does.
func serveClusters() (err error) {
	var options []podserver.Options
	input := json.NewDecoder(os.Stdin)
	if err := input.Decode(&options); err != nil {
		return err
	}
	var targets []race.Target
	for _, o := range options {
		s, err := podserver.Start(o)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, s.Close()) }()
		config := s.Config()
		targets = append(targets, race.Target{Host: config.Host, CA: config.CAData, Simulated: true, Objects: o.Pods})
	}
	if err := json.NewEncoder(os.Stdout).Encode(targets); err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, io.MultiReader(input.Buffered(), os.Stdin))
	return err
}
