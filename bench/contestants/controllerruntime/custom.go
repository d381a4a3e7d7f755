package main

import (
	"context"
	"fmt"
	"os"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	toolscache "k8s.io/client-go/tools/cache"
	crcache "sigs.k8s.io/controller-runtime/pkg/cache"

	"github.com/rvinformer/informer/bench/race"
	"github.com/rvinformer/informer/internal/testkit/samples"
)

// custom has a cache of custom resources of a Go type, and a handler.
func custom(name string, construct crcache.NewCacheFunc) race.Contestant {
	entry := race.Entry{Name: name, Floor: "floor-json-watchlist", Scenarios: []race.Scenario{race.ColdStart, race.WatchBurst}}
	return race.Contestant{Entry: entry, Connect: func(t *race.Target) (race.Source, error) {
		config := t.Config()
		config.ContentType = runtime.ContentTypeJSON
		mapper := meta.NewDefaultRESTMapper(nil)
		mapper.Add(corev1.SchemeGroupVersion.WithKind("Pod"), meta.RESTScopeNamespace)
		cache, err := construct(config, crcache.Options{Scheme: samples.WorkloadScheme(), Mapper: mapper})
		return source{cache}, err
	}}
}

type source struct{ cache crcache.Cache }

func (s source) Follow(ctx context.Context, f race.Follow) *race.Following {
	informer, err := s.cache.GetInformer(ctx, &samples.Workload{}, crcache.BlockUntilSynced(false))
	var registration toolscache.ResourceEventHandlerRegistration
	if err == nil {
		registration, err = informer.AddEventHandler(f.Handler())
	}
	if err != nil { // not possible: the scheme and the mapper have the kind
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	var running sync.WaitGroup
	running.Go(func() {
		if err := s.cache.Start(ctx); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
	})
	return &race.Following{Synced: registration.HasSyncedChecker().Done(), Wait: running.Wait}
}
