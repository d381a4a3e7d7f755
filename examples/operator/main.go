// The operator merges ConfigMaps. README.md shows how to run it.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"

	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/rvinformer/informer/controllerruntime"
)

// caches are those that --cache names.
var caches = map[string]cache.NewCacheFunc{
	"encoded": controllerruntime.NewCache,
	"default": cache.New,
}

func main() {
	name := flag.String("cache", "encoded", "the cache: encoded, or default for controller-runtime's own")
	flag.Parse() // --kubeconfig is controller-runtime's
	ctrl.SetLogger(klog.NewKlogr())
	newCache := caches[*name]
	if newCache == nil {
		fmt.Fprintf(os.Stderr, "unknown cache %q\n", *name)
		os.Exit(2)
	}
	config, err := ctrl.GetConfig()
	if err == nil {
		err = run(ctrl.SetupSignalHandler(), config, newCache, controller.Options{})
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// run runs the operator until ctx ends.
func run(ctx context.Context, config *rest.Config, newCache cache.NewCacheFunc, options controller.Options) error {
	scheme, err := newScheme()
	if err != nil {
		return err
	}
	consistent := true
	mgr, err := ctrl.NewManager(config, manager.Options{
		NewCache: newCache, // the one line that another cache takes
		Scheme:   scheme,
		Metrics:  server.Options{BindAddress: "0"},
		// A read waits until the cache has what this process has written.
		Client: client.Options{Cache: &client.CacheOptions{EnableReadYourWritesConsistency: &consistent}},
	})
	if err != nil {
		return err
	}
	if err := setup(ctx, mgr, options); err != nil {
		return err
	}
	return mgr.Start(ctx)
}
