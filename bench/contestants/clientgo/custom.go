package main

import (
	"sync"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/rvinformer/informer/bench/race"
	"github.com/rvinformer/informer/internal/testkit/samples"
)

// custom has custom resources of a Go type, as generated clients follow them.
func custom() race.Contestant {
	c := contestant("client-go-custom", "floor-json-watchlist", func(t *race.Target) (source, error) {
		config := t.Config()
		config.APIPath, config.GroupVersion = "/api", &schema.GroupVersion{Version: "v1"}
		config.ContentType = runtime.ContentTypeJSON
		config.NegotiatedSerializer = serializer.NewCodecFactory(samples.WorkloadScheme()).WithoutConversion()
		client, err := rest.RESTClientFor(config)
		return func(namespace string) (factory, cache.SharedIndexInformer) {
			lw := cache.NewListWatchFromClient(client, pods.Resource, namespace, fields.Everything())
			informer := cache.NewSharedIndexInformer(lw, &samples.Workload{}, 0, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
			return &single{informer: informer}, informer
		}, err
	})
	c.Scenarios = []race.Scenario{race.ColdStart, race.WatchBurst}
	return c
}

// single is the factory of one informer.
type single struct {
	informer cache.SharedIndexInformer
	running  sync.WaitGroup
}

func (s *single) Start(stopCh <-chan struct{}) { s.running.Go(func() { s.informer.Run(stopCh) }) }

func (s *single) Shutdown() { s.running.Wait() }
