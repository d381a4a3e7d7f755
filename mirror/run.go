package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/dustin/go-humanize/english"
	"github.com/rvinformer/informer/mirror/internal/board"
	"github.com/rvinformer/informer/mirror/internal/clusters"
	"github.com/rvinformer/informer/mirror/internal/commandline"
	"github.com/rvinformer/informer/mirror/internal/demo"
	"github.com/rvinformer/informer/mirror/internal/display"
	"github.com/rvinformer/informer/mirror/internal/follow"
	"github.com/rvinformer/informer/mirror/internal/share"
	"github.com/rvinformer/informer/registry"
	"github.com/rvinformer/informer/sqlsink"
	"k8s.io/client-go/rest"
)

// program is one run of mirror.
type program struct {
	commandline.Options
	screen *display.Screen
	board  *board.Board
	sink   *sqlsink.Sink
	mirror *follow.Mirror
	demo   demo.Demo        // empty without --demo
	folder *clusters.Folder // with --once and --clusters: the files that were read
}

// mirror does what the options ask for. It reports whether all that --once waits for is synced.
func mirror(ctx context.Context, o commandline.Options, to *display.Screen) (ok bool, err error) {
	p := &program{Options: o, screen: to, board: board.New()}
	var endpoints []clusters.Endpoint
	number := len(demo.Names())
	if !o.Demo && (o.Clusters == "" || len(o.Contexts) > 0) {
		if endpoints, err = clusters.InKubeconfig(o.Kubeconfig, o.Contexts); err != nil {
			return false, err
		}
		number = len(endpoints)
	}
	if o.Clusters != "" && o.Once {
		p.folder = clusters.NewFolder(o.Clusters, func(name string, client *rest.Config) error {
			endpoints = append(endpoints, clusters.Endpoint{Name: name, Client: client})
			return nil
		}, nil, to.Say)
		if err := p.folder.Look(); err != nil {
			return false, err
		}
		if number = len(endpoints); number == 0 {
			return false, fmt.Errorf("--clusters: there is no kubeconfig in %s", o.Clusters)
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
		name, _ := sqlsink.Name(p.Database) // it was checked
		to.Print(fmt.Sprintf("mirroring %s into %s%s", english.Plural(number, "cluster", ""), name, fate))
	}
	if o.Listen != "" {
		link, stop, failed := p.board.Serve(ctx, o.Listen)
		if failed != nil {
			return false, failed
		}
		defer func() { err = errors.Join(err, stop()) }()
		to.Print("status: " + link + ", metrics at " + link + "metrics")
	}
	opening := &opening{Options: p.Options, say: to.Say, began: time.Now()}
	opened := p.board.Informers.Add(registry.Labels{Informer: "database"}, opening) // not ready before
	p.sink, err = opening.Open(ctx)
	switch {
	case err != nil && ctx.Err() == nil:
		return false, explained(err)
	case err != nil && o.IsFleet():
		return true, nil
	case err != nil:
		return false, errors.New("stopped before the database was open")
	}
	defer func() { err = explained(errors.Join(err, p.sink.Close())) }()
	if o.Demo {
		if err := p.simulate(ctx); err != nil {
			return false, err
		}
		defer p.demo.Close()
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

// explained is an error with who the other writer of the database may be.
func explained(err error) error {
	if errors.Is(err, sqlsink.ErrAnotherWriter) {
		return fmt.Errorf("%w; it may be another mirror: those that share a database have --share", err)
	}
	return err
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
	p.Follow.Database, p.Follow.Say = follow.Sink{Sink: p.sink}, p.screen.Say
	if p.mirror, err = follow.New(p.Follow); err != nil {
		return fmt.Errorf("--resources: %w", err)
	}
	p.board.Informers.AddFactory(p.mirror.Registry())
	p.board.Handle("POST /redeliver", http.NewCrossOriginProtection().Handler(http.HandlerFunc(p.mirror.ServeRedeliver)))
	for _, c := range p.demo {
		endpoints = append(endpoints, c.Endpoint())
	}
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
	err = p.mirror.Run(ctx, p.mirror.Follow, func(ctx context.Context) (err error) {
		stop := p.demo.Churn(ctx)
		defer func() { err = errors.Join(err, stop()) }()
		if !p.Once {
			return p.mirror.Following(ctx)
		}
		verdict, err = p.settle(ctx, stop)
		if ctx.Err() != nil {
			return nil // the summary shows what was left undone
		}
		return err
	}, display.New(p.screen, p.mirror.Rows, began).Run)
	if p.sink.Err() != nil || errors.Is(err, follow.ErrNothing) {
		return false, err
	}
	rows := p.mirror.Rows()
	if p.Once {
		synced, failed := display.WriteSummary(p.screen.Out(), rows, time.Since(began))
		if verdict != "" {
			p.screen.Print(verdict)
		}
		unreached := display.Unreached(rows)
		if p.folder != nil {
			unreached = append(unreached, p.folder.Failed()...)
		}
		if len(unreached) > 0 {
			p.screen.Say("not reached: " + strings.Join(unreached, ", "))
		}
		return synced && len(unreached) == 0, errors.Join(err, failed)
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

// settle waits for the first sync. Then it stops the changes of a demo, and compares the database
// with its servers.
func (p *program) settle(ctx context.Context, stop func() error) (verdict string, err error) {
	if err := p.mirror.Settled(ctx); err != nil {
		return "", err
	}
	if err := stop(); err != nil {
		return "", err
	}
	within, cancel := context.WithTimeout(ctx, p.Timeout)
	defer cancel()
	return p.demo.Verify(within, p.sink, p.mirror.Rows())
}

// runFleet mirrors where clusters come and go, or replicas share them.
func (p *program) runFleet(ctx context.Context) (err error) {
	var beside []func(context.Context)
	if p.Clusters != "" {
		folder := clusters.NewFolder(p.Clusters, p.mirror.Put, p.mirror.Remove, p.screen.Say)
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
		p.board.Metrics.MustRegister(replica)
		p.board.Handle("/units", share.UnitsPage(replica.Status))
		beside = append(beside, func(ctx context.Context) { share.Tell(ctx, replica.Status, p.screen.Print) })
		work, sharing = replica.Run, fmt.Sprintf(", sharing the work by the Leases %s as %s", p.Share.Leases, replica.Identity())
	}
	p.screen.Print(fmt.Sprintf("mirroring into %s%s", p.sink, sharing))
	began := time.Now()
	err = p.mirror.Run(ctx, work, func(ctx context.Context) error {
		display.New(p.screen, p.mirror.ClusterRows, began).Run(ctx)
		return nil
	}, beside...)
	p.screen.Print(fmt.Sprintf("stopped after %s", display.Round(time.Since(began))))
	return err
}
