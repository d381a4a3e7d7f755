// Command bench measures this library beside client-go and beside the floor, a
// plain GET of the same bytes whose body is thrown away; and its storage beside maps.
//
//	make bench            # everything; writes docs/performance.md and docs/bench-*.svg
//	make bench-quick      # 10,000 pods, once; writes nothing
//	go run . all -scenarios coldstart -contestants ours -runs 5
//	go run . all -scenarios storage,restart -docs ""
//	go run . all -real    # against a kube-apiserver
//	go run . peaks        # the memory of typed factories; writes docs/performance-more.md
//	go run . readcache    # caches that can be read; writes docs/performance-more.md
//	go run . clusters     # many servers; writes docs/performance-more.md
//	go run . fleet        # 25,000 informers of 500 servers; writes docs/performance-more.md
//	go run . shard        # half of a set; writes docs/performance-more.md
//	go run . ways         # each way to read a set, from a kube-apiserver; writes docs/performance-more.md
//
// It starts a server, simulated (package podserver) or real, in a process of its
// own, and each contestant in another, one at a time. Each run goes through all
// contestants; a ratio is of two results of one run, and what is quoted is the
// median of the runs.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/rvinformer/informer/bench/podserver"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := command(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func command(ctx context.Context, args []string) error {
	name := ""
	if len(args) > 0 {
		name, args = args[0], args[1:]
	}
	flags := flag.NewFlagSet("bench "+name, flag.ExitOnError)
	switch name {
	case "serve":
		var o podserver.Options
		flags.IntVar(&o.Pods, "pods", 100_000, "number of pods")
		flags.IntVar(&o.Changed, "changed", 0, "how many of them have changed already")
		flags.IntVar(&o.Events, "events", 0, "changes at the start of each watch")
		flags.BoolVar(&o.Samples, "samples", false, "objects with the entropy of real ones")
		flags.BoolVar(&o.Sharded, "sharded", false, "select by shardSelector")
		_ = flags.Parse(args) // it exits
		return serve(o)
	case "all":
		plan := defaultPlan()
		plan.flags(flags)
		_ = flags.Parse(args)
		return all(ctx, plan)
	case "peaks":
		plan := &peaksPlan{}
		plan.flags(flags)
		_ = flags.Parse(args) // it exits
		return peaks(ctx, plan)
	case "readcache":
		plan := &readcachePlan{}
		plan.flags(flags)
		_ = flags.Parse(args)
		_, err := readcache(ctx, plan)
		return err
	case "clusters":
		plan := defaultClustersPlan()
		plan.flags(flags)
		_ = flags.Parse(args)
		_, err := clusters(ctx, plan)
		return err
	case "fleet":
		plan := defaultFleetPlan()
		plan.flags(flags)
		_ = flags.Parse(args)
		_, err := fleet(ctx, plan)
		return err
	case "shard":
		plan := defaultShardPlan()
		plan.flags(flags)
		_ = flags.Parse(args)
		_, err := shards(ctx, plan)
		return err
	case "ways":
		plan := defaultWaysPlan()
		plan.flags(flags)
		_ = flags.Parse(args)
		_, err := ways(ctx, plan)
		return err
	case "serve-fleet":
		return serveFleet()
	case "serve-clusters":
		return serveClusters()
	}
	return fmt.Errorf("%q is not a command: all, peaks, readcache, clusters, fleet, shard, ways or serve", name)
}
