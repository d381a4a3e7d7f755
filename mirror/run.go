package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/dustin/go-humanize/english"
	"github.com/rvinformer/informer/mirror/internal/board"
	"github.com/rvinformer/informer/mirror/internal/clusters"
	"github.com/rvinformer/informer/mirror/internal/commandline"
	"github.com/rvinformer/informer/mirror/internal/demo"
	"github.com/rvinformer/informer/mirror/internal/display"
	"github.com/rvinformer/informer/mirror/internal/follow"
	"github.com/rvinformer/informer/mirror/internal/share"
	"github.com/rvinformer/informer/mirror/internal/verify"
	"github.com/rvinformer/informer/registry"
	"github.com/rvinformer/informer/sqlsink"
	"k8s.io/apimachinery/pkg/util/sets"
)

// program is one run of mirror.
type program struct {
	commandline.Options
	screen *display.Screen
	board  *board.Board
	sink   *sqlsink.Sink
	mirror *follow.Mirror
	demo   *demo.Demo // nil without --demo
}

// mirror does what the options ask for. It reports whether all that --once waits for is synced.
func mirror(ctx context.Context, o commandline.Options, to *display.Screen) (ok bool, err error) {
	p := &program{Options: o, screen: to, board: board.New()}
	var endpoints []clusters.Endpoint
	if !o.Demo && (o.Clusters == "" || len(o.Contexts) > 0) {
		if endpoints, err = clusters.InKubeconfig(o.Kubeconfig, o.Contexts); err != nil {
			return false, err
		}
	}
	fate := ""
	if o.Database == "" {
		dir, failed := os.MkdirTemp("", "mirror-demo-")
		if failed != nil {
			return false, fmt.Errorf("a place for the demo's database: %w", failed)
		}
		defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
		p.Database = commandline.SQLite + filepath.Join(dir, commandline.DefaultFile)
		fate = "; its directory is removed at the end, and stays after a kill"
	}
	if !o.IsFleet() { // which says it when its clusters are there
		n := len(endpoints)
		if o.Demo {
			n = len(demo.Names())
		}
		name, _ := sqlsink.Name(p.Database) // it was checked
		to.Print(fmt.Sprintf("mirroring %s into %s%s", english.Plural(n, "cluster", ""), name, fate))
	}
	stop, err := p.serve(ctx)
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, stop()) }()
	opening := newOpening(p.Options, to.Say)
	opened := p.board.Informers.Add(registry.Labels{Informer: "database"}, opening) // not ready before
	if p.sink, err = opening.Open(ctx); err != nil {
		switch {
		case ctx.Err() == nil:
			return false, err
		case o.IsFleet():
			return true, nil
		}
		return false, errors.New("stopped before the database was open")
	}
	defer func() { err = errors.Join(err, p.sink.Close()) }()
	if o.Demo {
		if err := p.simulate(ctx); err != nil {
			return false, err
		}
		defer p.demo.Close()
		endpoints = p.demo.Endpoints()
	}
	if err := p.prepare(endpoints); err != nil {
		return false, err
	}
	opened()
	if o.IsFleet() {
		return true, p.runFleet(ctx)
	}
	return p.run(ctx)
}

// serve serves the board where --listen says, and says so. It returns what ends that.
func (p *program) serve(ctx context.Context) (stop func() error, err error) {
	if p.Listen == "" {
		return func() error { return nil }, nil
	}
	link, stop, err := p.board.Serve(ctx, p.Listen)
	if err == nil {
		p.screen.Print("status: " + link + ", metrics at " + link + "metrics")
	}
	return stop, err
}

// simulate starts the clusters of a demo.
func (p *program) simulate(ctx context.Context) (err error) {
	began := time.Now()
	p.screen.Print(fmt.Sprintf("demo: creating %s objects", display.Comma(int64(p.DemoObjects))))
	p.demo, err = demo.New(ctx, p.DemoObjects)
	if err == nil {
		p.screen.Print(fmt.Sprintf("demo: ready after %s", display.Round(time.Since(began))))
	}
	return err
}

// prepare makes the mirror, with the clusters that are there now.
func (p *program) prepare(endpoints []clusters.Endpoint) (err error) {
	config := follow.Config{
		Database: follow.In(p.sink), Say: p.screen.Say, Resources: p.Resources, Shards: p.Shards, Prune: p.Prune(), PageSize: p.PageSize,
		BeginAnew: p.BeginAnew || p.Demo, // the clusters of each demo are new
	}
	if p.Once {
		config.Relist, config.Patience = true, follow.Patience(p.Timeout)
	}
	if p.mirror, err = follow.New(config); err != nil {
		return fmt.Errorf("--resources: %w", err)
	}
	p.board.Informers.AddFactory(p.mirror.Registry())
	for _, e := range endpoints {
		if err := p.mirror.Add(e.Name, e.Client); err != nil {
			return err
		}
	}
	return nil
}

// run mirrors until the context ends or, with --once, until everything has settled. It reports
// whether the first sync of everything was complete. With a demo and --once, the error says whether
// the database equals its servers.
func (p *program) run(ctx context.Context) (ok bool, err error) {
	began := time.Now()
	var verdict string
	err = p.mirror.Run(ctx, p.mirror.Follow, p.shown(p.mirror.Rows, func(ctx context.Context) (err error) {
		if p.demo != nil {
			churn := p.demo.Churn(ctx)
			defer func() { err = errors.Join(err, churn.Stop()) }()
			if p.Once {
				verdict, err = p.settleDemo(ctx, churn)
				return err
			}
		}
		if p.Once {
			return ignoreStop(ctx, p.mirror.Settled(ctx))
		}
		return p.mirror.Following(ctx)
	}))
	if p.sink.Err() != nil || errors.Is(err, follow.ErrNothing) {
		return false, err
	}
	rows := p.mirror.Rows()
	if p.Once {
		synced, failed := display.WriteSummary(p.screen.Out(), rows, time.Since(began))
		if verdict != "" {
			p.screen.Print(verdict)
		}
		return synced, errors.Join(err, failed)
	}
	sum := display.Total(rows)
	p.screen.Print(fmt.Sprintf("stopped after %s: %s objects of %d resources; %s",
		display.Round(time.Since(began)), display.Comma(int64(sum.Objects)), len(rows), sum.Counts))
	missing := display.Unsynced(rows)
	for _, line := range missing {
		p.screen.Say(line)
	}
	return len(missing) == 0, err
}

// shown returns what shows rows while during runs. The display ends first: the end of everything
// would look like trouble to it.
func (p *program) shown(rows func() []display.Row, during func(context.Context) error) func(context.Context) error {
	return func(ctx context.Context) error {
		watched, lookAway := context.WithCancel(ctx)
		var watching sync.WaitGroup
		defer watching.Wait()
		defer lookAway()
		watching.Go(func() { display.New(p.screen, rows, time.Now()).Run(watched) })
		return during(ctx)
	}
}

// settleDemo waits for the first sync of a demo, stops its changes, and compares the database with
// the servers.
func (p *program) settleDemo(ctx context.Context, churn *demo.Churn) (verdict string, err error) {
	if err := p.mirror.Settled(ctx); err != nil {
		return "", ignoreStop(ctx, err)
	}
	if err := churn.Stop(); err != nil {
		return "", err
	}
	mirrored := sets.New[display.Place]()
	for _, r := range p.mirror.Rows() {
		if r.Synced {
			mirrored.Insert(r.Place)
		}
	}
	if mirrored.Len() == 0 {
		return "", nil // there is nothing to compare
	}
	within, cancel := context.WithTimeout(ctx, p.Timeout)
	defer cancel()
	verdict, err = verify.Demo(within, p.sink, p.demo, mirrored)
	return verdict, ignoreStop(ctx, err)
}

// ignoreStop drops an error where the user has ended the run: the summary shows what was left
// undone.
func ignoreStop(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// runFleet mirrors where clusters come and go, or replicas share them.
func (p *program) runFleet(ctx context.Context) (err error) {
	var beside []func(context.Context)
	if p.Clusters != "" {
		folder := clusters.NewFolder(p.Clusters, p.mirror.Add, func(name string) { p.mirror.Remove(name) }, p.screen.Say)
		if err := folder.Look(); err != nil {
			return err
		}
		beside = append(beside, folder.Run)
	}
	work, sharing := p.mirror.Follow, ""
	if p.IsShared() {
		replica, err := p.Share.Replica(p.mirror)
		if err != nil {
			return err
		}
		p.board.Informers.AddFactory(replica.Registry())
		p.board.Add(replica)
		p.board.Handle("/units", share.UnitsPage{Status: replica.Status})
		beside = append(beside, func(ctx context.Context) { share.Tell(ctx, replica.Status, p.screen.Print) })
		work, sharing = replica.Run, fmt.Sprintf(", sharing the work by the Leases %s as %s", p.Share.Leases, replica.Identity())
	}
	p.screen.Print(fmt.Sprintf("mirroring into %s%s", p.sink, sharing))
	began := time.Now()
	err = p.mirror.Run(ctx, work, p.shown(p.mirror.ClusterRows, func(ctx context.Context) error {
		var running sync.WaitGroup
		for _, run := range beside {
			running.Go(func() { run(ctx) })
		}
		<-ctx.Done()
		running.Wait()
		return nil
	}))
	p.screen.Print(fmt.Sprintf("stopped after %s", display.Round(time.Since(began))))
	return err
}
