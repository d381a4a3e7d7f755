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
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/rvinformer/informer/bench/podserver"
	"github.com/rvinformer/informer/bench/race"
	"github.com/rvinformer/informer/internal/selfsigned"
)

// fleetPlan is what is to be run with a fleet of clusters.
type fleetPlan struct {
	clusters, kinds, pods, troubled, runs int
	settle, outage                        time.Duration
	budget                                int64
	leases, paged                         bool
	profile, only, docs                   string
}

// fleetSettles is how long a quiet watch-list may last until it is replaced: until a bookmark
// comes, 30 s more, and some for a busy machine.
const fleetSettles = 100 * time.Second

func defaultFleetPlan() *fleetPlan {
	return &fleetPlan{clusters: 500, kinds: 50, pods: 20, troubled: 30, runs: 3, settle: fleetSettles, outage: time.Minute, budget: defaultBudget, docs: "../docs"}
}

func (p *fleetPlan) flags(f *flag.FlagSet) {
	f.IntVar(&p.clusters, "clusters", p.clusters, "simulated clusters")
	f.IntVar(&p.kinds, "kinds", p.kinds, "resources of each, each with an informer")
	f.IntVar(&p.pods, "pods", p.pods, "objects of each resource")
	f.IntVar(&p.troubled, "troubled", p.troubled, "clusters in trouble: a third dead, a third slow, a third forbidden")
	f.IntVar(&p.runs, "runs", p.runs, "how often each is run; medians are quoted")
	f.DurationVar(&p.settle, "settle", p.settle, "how long the informers of all healthy servers are left alone before their memory is measured")
	f.DurationVar(&p.outage, "outage", p.outage, "how long all servers are away; 0 leaves that out")
	f.BoolVar(&p.leases, "leases", p.leases, "leases of a factory instead of package fleet")
	f.BoolVar(&p.paged, "paged", p.paged, "lists in pages instead of watch-lists")
	f.StringVar(&p.profile, "profile", "", "write profiles to files whose names begin so")
	f.StringVar(&p.only, "only", "", "only what has this in its name")
	f.StringVar(&p.docs, "docs", p.docs, "directory of the document that the tables are written into; none if empty")
	f.BoolFunc("quick", "20 clusters, once, and an outage of 5 s; writes nothing", func(string) error {
		p.quicken()
		return nil
	})
}

// quicken makes the plan small.
func (p *fleetPlan) quicken() {
	p.clusters, p.kinds, p.troubled, p.runs, p.settle, p.outage, p.docs = 20, 10, 6, 1, 0, 5*time.Second, ""
}

// fleetCase is one way that a fleet is followed.
type fleetCase struct {
	name string
	// fewer leaves those in trouble out, and troubled has them; else all clusters are healthy.
	fewer, troubled bool
	floor, outage   bool
}

// The cases, in the order of their runs.
const (
	fleetFloor     = "plain GETs"
	fleetHealthy   = "informers, all healthy"
	fleetFewer     = "informers, without those in trouble"
	fleetTroubled  = "informers, with those in trouble"
	fleetInTrouble = 3 // kinds of trouble
)

var fleetCases = []fleetCase{
	{name: fleetFloor, floor: true, outage: true},
	{name: fleetHealthy, outage: true},
	{name: fleetFewer, fewer: true},
	{name: fleetTroubled, troubled: true},
}

// fleetReport is what came out.
type fleetReport struct {
	plan *fleetPlan
	load load
	runs map[string][]race.FleetResult
}

// fleet runs a plan and writes what came out.
func fleet(ctx context.Context, p *fleetPlan) (_ *fleetReport, err error) {
	programs, err := buildContestants(ctx, []string{"./contestants/fleet"})
	if err != nil {
		return nil, err
	}
	program := filepath.Join(programs.dir, "fleet")
	r := &fleetReport{plan: p, load: currentLoad(), runs: map[string][]race.FleetResult{}}
	for range p.runs {
		for _, c := range fleetCases {
			if !strings.Contains(c.name, p.only) {
				continue
			}
			result, err := p.run(ctx, program, c)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", c.name, err)
			}
			r.runs[c.name] = append(r.runs[c.name], result)
			r.log(c, result)
		}
	}
	var tables bytes.Buffer
	r.tables(&tables)
	return r, publish(p.docs, "bench-fleet", tables.Bytes())
}

func (r *fleetReport) log(c fleetCase, result race.FleetResult) {
	fmt.Fprintf(os.Stderr, "%s fleet %-36s %7d objects, wall %6.2fs  cpu %6.2fs  server's %6.2fs  received %6.1f MiB  peak %6.1f MiB (%.1f until synced), settled %6.1f MiB, %.2f goroutines, %d connections\n",
		time.Now().Format(time.TimeOnly), c.name, result.Objects, result.Wall.Seconds(), result.CPU.Seconds(),
		(result.After.CPU - result.Before.CPU).Seconds(), float64(result.Received)/(1<<20), float64(result.PeakRSS)/(1<<20), float64(result.SyncedRSS)/(1<<20), float64(result.RSS)/(1<<20), result.Goroutines, result.After.Accepted)
	if o := result.Outage; o != nil {
		fmt.Fprintf(os.Stderr, "%s fleet watches open again: 95 of 100 after %.2fs, all after %.2fs, cpu %.2fs (%.2fs while away), %d attempts, at most %d within a second at one server, %d objects listed\n",
			time.Now().Format(time.TimeOnly), o.Most.Seconds(), o.All.Seconds(), o.CPU.Seconds(), o.AwayCPU.Seconds(), o.Usage.Attempts, o.Usage.MostAttempts, o.Listed)
	}
}

// fleetServers is what the process of the servers is told, and fleetTargets what it answers.
type (
	fleetServers struct {
		Options         []podserver.Options
		Refuse, Swallow int
	}
	fleetTargets struct {
		Clusters []race.Cluster
		Control  string
	}
)

// servers are those of a case.
func (p *fleetPlan) servers(c fleetCase) (s fleetServers) {
	var resources []string
	for i := range p.kinds {
		resources = append(resources, fleetResource(i))
	}
	add := func(n int, trouble podserver.Trouble) {
		for range n {
			s.Options = append(s.Options, podserver.Options{Pods: p.pods, Resources: resources, Trouble: trouble})
		}
	}
	if !c.fewer && !c.troubled {
		add(p.clusters, podserver.Healthy)
		return s
	}
	add(p.clusters-p.troubled, podserver.Healthy)
	if c.troubled {
		each := p.troubled / fleetInTrouble
		add(each, podserver.SlowLink)
		add(each, podserver.Forbidden)
		dead := p.troubled - 2*each
		s.Refuse, s.Swallow = dead/2, dead-dead/2
	}
	return s
}

func fleetResource(i int) string { return fmt.Sprintf("kind%02ds", i) }

// run runs a case once, with servers of its own.
func (p *fleetPlan) run(ctx context.Context, program string, c fleetCase) (result race.FleetResult, err error) {
	ctx, cancel := context.WithTimeout(ctx, runTimeout)
	defer cancel()
	var targets fleetTargets
	stop, err := startProcess(ctx, "serve-fleet", p.servers(c), &targets)
	if err != nil {
		return result, err
	}
	defer func() { err = errors.Join(err, stop()) }()
	order := race.FleetOrder{Clusters: targets.Clusters, Control: targets.Control, Floor: c.floor, Leases: p.leases, Paged: p.paged, Budget: p.budget}
	for i := range p.kinds {
		order.Resources = append(order.Resources, fleetResource(i))
	}
	if c.outage {
		order.Settle, order.Outage = p.settle, p.outage
	}
	if p.profile != "" {
		order.Profile = p.profile + "-" + strings.ReplaceAll(c.name, " ", "-")
	}
	return result, tell(ctx, program, order, &result)
}

// startProcess starts this program with a command in a process of its own, which is given an order,
// gives an answer, and ends when its input does.
func startProcess(ctx context.Context, command string, order, answer any) (stop func() error, err error) {
	executable, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, executable, command)
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	stop = func() error {
		stdin.Close()
		return cmd.Wait()
	}
	if err := errors.Join(json.NewEncoder(stdin).Encode(order), json.NewDecoder(stdout).Decode(answer)); err != nil {
		return nil, fmt.Errorf("%s: %w (%v)", command, err, stop())
	}
	return stop, nil
}

// serveFleet is the process of the servers of a fleet.
func serveFleet() (err error) {
	var order fleetServers
	input := json.NewDecoder(os.Stdin)
	if err := input.Decode(&order); err != nil {
		return err
	}
	f, err := podserver.StartFleet(order.Options, order.Refuse, order.Swallow)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	targets := fleetTargets{Control: f.Control()}
	for i, s := range f.Servers {
		config := s.Config()
		target := race.Target{Host: config.Host, CA: config.CAData, Simulated: true, Objects: order.Options[i].Pods}
		targets.Clusters = append(targets.Clusters, race.Cluster{Target: target, Troubled: order.Options[i].Trouble != podserver.Healthy})
	}
	for _, a := range f.Absent {
		_, ca, err := selfsigned.Certificate() // its own, or client-go shares the transport
		if err != nil {
			return err
		}
		targets.Clusters = append(targets.Clusters, race.Cluster{Target: race.Target{Host: "https://" + a.Address, CA: ca}, Troubled: true})
	}
	if err := json.NewEncoder(os.Stdout).Encode(targets); err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, io.MultiReader(input.Buffered(), os.Stdin))
	return err
}
