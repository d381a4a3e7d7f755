// Command clientgo has client-go's informers as its factories make them, with its
// defaults: where the server has watch-lists, they read these (the feature
// WatchListClient).
package main

import (
	"context"
	"fmt"
	"os"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/tools/cache"

	"github.com/rvinformer/informer/bench/race"
)

func main() {
	race.Main(
		contestant("client-go-typed", "floor-protobuf-watchlist", func(t *race.Target) (source, error) {
			config := t.Config()
			config.ContentType = runtime.ContentTypeProtobuf
			client, err := kubernetes.NewForConfig(config)
			return func(namespace string) (factory, cache.SharedIndexInformer) {
				f := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithNamespace(namespace))
				return f, f.Core().V1().Pods().Informer()
			}, err
		}, race.Restart),
		contestant("client-go-dynamic", "floor-json-watchlist", func(t *race.Target) (source, error) {
			client, err := dynamic.NewForConfig(t.Config())
			return func(namespace string) (factory, cache.SharedIndexInformer) {
				f := dynamicinformer.NewFilteredDynamicSharedInformerFactory(client, 0, namespace, nil)
				return f, f.ForResource(pods).Informer()
			}, err
		}),
		custom(),
		contestant("client-go-metadata", "floor-metadata-protobuf-watchlist", func(t *race.Target) (source, error) {
			client, err := metadata.NewForConfig(t.Config())
			return func(namespace string) (factory, cache.SharedIndexInformer) {
				f := metadatainformer.NewFilteredSharedInformerFactory(client, 0, namespace, nil)
				return f, f.ForResource(pods).Informer()
			}, err
		}),
	)
}

var pods = schema.GroupVersionResource{Version: "v1", Resource: "pods"}

func contestant(name, floor string, connect func(*race.Target) (source, error), more ...race.Scenario) race.Contestant {
	scenarios := append([]race.Scenario{race.ColdStart, race.SlowHandler, race.WatchBurst, race.Idle}, more...)
	return race.Contestant{Entry: race.Entry{Name: name, Floor: floor, Scenarios: scenarios},
		Connect: func(t *race.Target) (race.Source, error) { return connect(t) }}
}

// factory is what the three kinds of factories have in common.
type factory interface {
	Start(stopCh <-chan struct{})
	Shutdown()
}

// source makes a factory with one informer.
type source func(namespace string) (factory, cache.SharedIndexInformer)

func (s source) Follow(ctx context.Context, f race.Follow) *race.Following {
	factory, informer := s(f.Namespace)
	registration, err := informer.AddEventHandler(f.Handler())
	if err != nil { // not possible: it does not run yet
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	factory.Start(ctx.Done())
	return &race.Following{Synced: registration.HasSyncedChecker().Done(), Wait: factory.Shutdown}
}
