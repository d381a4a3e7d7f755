// Command mirror copies the objects of any number of Kubernetes clusters into one SQLite file or a
// PostgreSQL database, in little memory, and keeps it up to date.
//
// Its words: a place is one resource of one cluster. A feed is the informer of a place, as a
// handler of batches that makes each of them one transaction. The writer gives the feeds their
// turns at the database. A feed is synced when all that its first list showed is in the database.
//
// A batch is acknowledged when its transaction is committed, so an informer knows what the database
// has, and nothing else. Objects and their resource versions are in the same rows, and a start
// seeds the informers with these resource versions: it is told what differs. The informers keep
// their checkpoints in the database too, and go on from there without a list where they can.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/dustin/go-humanize/english"
	"github.com/spf13/pflag"
	"k8s.io/klog/v2"
)

// Exit codes.
const (
	exitOK      = 0
	exitFailed  = 1 // something is not synced, or not written
	exitMisused = 2
)

func main() {
	ends := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) { // nohup ignores it
		ends = append(ends, syscall.SIGHUP)
	}
	ctx, stop := signal.NotifyContext(context.Background(), ends...)
	defer stop()
	context.AfterFunc(ctx, stop) // the next signal kills

	to := newScreen(os.Stdout, os.Stderr)
	logTo(to)
	os.Exit(run(ctx, os.Args[1:], to))
}

// logTo has the logs of client-go written through the screen, each line once: klog would write an
// error as a warning too, and as an information.
func logTo(to *screen) {
	flags := flag.NewFlagSet("klog", flag.PanicOnError)
	klog.InitFlags(flags)
	_ = flags.Parse([]string{"-logtostderr=false", "-one_output=true"}) // it panics rather
	klog.SetOutput(to)
}

// run is the program without its process: it ends with the context, and returns the exit code.
func run(ctx context.Context, args []string, to *screen) int {
	o, err := parseOptions(args, to.out)
	switch {
	case errors.Is(err, pflag.ErrHelp):
		return exitOK
	case err != nil:
		to.Say(err.Error() + " (--help shows the usage)")
		return exitMisused
	}
	ok, err := mirrorClusters(ctx, o, to)
	if err != nil {
		to.Say(err.Error())
	}
	if err != nil || !ok {
		return exitFailed
	}
	return exitOK
}

// mirrorClusters does what the options ask for. It reports whether all that --once waits for is
// synced.
func mirrorClusters(ctx context.Context, o options, to *screen) (ok bool, err error) {
	if o.isFleet() {
		return true, mirrorFleet(ctx, o, to)
	}
	var endpoints []endpoint
	clusters := len(demoNames())
	if !o.demo {
		if endpoints, err = endpointsOf(o.kubeconfig, o.contexts); err != nil {
			return false, err
		}
		clusters = len(endpoints)
	}
	name, fate := o.db, ""
	switch {
	case o.postgres != nil:
		name = nameOf(o.postgres.ConnConfig)
	case o.db == "": // only with --demo
		dir, failed := os.MkdirTemp("", "mirror-demo-")
		if failed != nil {
			return false, fmt.Errorf("a place for the demo's database: %w", failed)
		}
		defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
		o.db = filepath.Join(dir, defaultDatabase)
		name = o.db
		fate = "; its directory is removed at the end, and stays after a kill"
	}
	to.Print(fmt.Sprintf("mirroring %s into %s%s", english.Plural(clusters, "cluster", ""), name, fate))
	on := newBoard()
	stop, err := o.serve(ctx, on, to)
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, stop()) }()
	opening := o.opening(to.Say)
	opened := on.ShowDatabase(opening)
	db, err := opening.Open(ctx)
	if err != nil {
		return false, stopped(ctx, err)
	}
	defer func() { err = errors.Join(err, db.Close()) }()

	var simulated *demo
	if o.demo {
		began := time.Now()
		to.Print(fmt.Sprintf("demo: creating %s objects", comma(int64(o.demoObjects))))
		if simulated, err = newDemo(ctx, o.demoObjects); err != nil {
			return false, err
		}
		defer simulated.Close()
		endpoints = simulated.Endpoints()
		to.Print(fmt.Sprintf("demo: ready after %s", round(time.Since(began))))
	}

	config := mirrorConfig{
		endpoints: endpoints,
		resources: o.resources,
		database:  db,
		store:     db,
		prune:     o.prune(),
		pageSize:  o.pageSize,
		beginAnew: o.beginAnew || o.demo, // the clusters of each demo are new
		board:     on,
	}
	if o.once {
		// Only a list tells when the database is up to date. A watch that goes on from a checkpoint
		// tells what has happened since, and then nothing: neither that this was all.
		config.relist, config.timeout = true, o.timeout
	}
	m := newMirror(config, to)
	opened()
	return follow(ctx, m, simulated, o, to)
}
