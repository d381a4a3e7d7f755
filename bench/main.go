// Command bench measures this library beside client-go and beside the floor, a
// plain GET of the same bytes whose body is thrown away; and its storage beside maps.
//
//	make bench            # everything; writes docs/performance.md
//	make bench-quick      # 10,000 pods, once; writes nothing
//	go run . all -scenarios coldstart -contestants ours -runs 5
//	go run . all -scenarios storage,restart -docs ""
//	go run . all -real    # against a kube-apiserver
//	go run . peaks        # the memory of typed factories; writes docs/performance-more.md
//	go run . readcache    # caches that can be read; writes docs/performance-more.md
//	go run . clusters     # many servers; writes docs/performance-more.md
//	go run . fleet        # 25,000 informers of 500 servers; writes docs/performance-more.md
//	go run . shard        # half of a set; writes docs/performance-more.md
//	go run . handlers     # handlers that start together; writes docs/performance-more.md
//	go run . ways         # each way to read a set, from a kube-apiserver; writes docs/performance-more.md
//	KUBERNETES=1.36 go run . ways # from an older one
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
	if name == serveCommand {
		return serve()
	}
	b := map[string]benchmark{
		"all": newAll(), "peaks": newPeaks(), "readcache": newReadcache(), "clusters": newClusters(), "fleet": newFleet(), "shard": newShard(), "handlers": newHandlers(), "ways": newWays(),
	}[name]
	if b == nil {
		return fmt.Errorf("%q is not a command: all, peaks, readcache, clusters, fleet, shard, handlers or ways", name)
	}
	flags := flag.NewFlagSet("bench "+name, flag.ExitOnError)
	b.flags(flags)
	_ = flags.Parse(args) // it exits
	return execute(ctx, b)
}
