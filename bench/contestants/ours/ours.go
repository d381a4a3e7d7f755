// Command ours has this library's informers: one contestant for each form of
// objects and way to read a set.
package main

import (
	"context"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/bench/race"
)

func main() {
	every := race.Scenarios
	race.Main(
		contestant("ours-unstructured", "floor-json", &unstructured.Unstructured{}, runtime.ContentTypeJSON, informer.ListModePaged, every...),
	)
}

func contestant(name, floor string, example runtime.Object, contentType string, mode informer.ListMode, scenarios ...race.Scenario) race.Contestant {
	return race.Contestant{Entry: race.Entry{Name: name, Floor: floor, Scenarios: scenarios}, Connect: func(t *race.Target) (race.Source, error) {
		config := t.Config()
		config.ContentType, config.AcceptContentTypes = contentType, contentType
		factory, err := informer.NewDynamicListerWatcherFactory(config)
		return source{name, factory, example, mode}, err
	}}
}

var pods = schema.GroupVersionResource{Version: "v1", Resource: "pods"}

type source struct {
	name    string
	factory informer.DynamicListerWatcherFactory
	example runtime.Object
	mode    informer.ListMode
}

func (s source) Follow(ctx context.Context, f race.Follow) *race.Following {
	i := informer.NewResourceVersionInformer(s.name, informer.InformerConfig{
		ListerWatcher:     s.factory.ForResource(f.Namespace, pods),
		Storage:           f.Storage,
		ExampleObject:     s.example,
		ListMode:          s.mode,
		WatchListPageSize: race.PageSize,
		Handler: informer.ResourceEventHandlerFuncs{
			AddFunc:    func(interface{}) { f.Added() },
			UpdateFunc: func(_, obj interface{}) { f.Updated(obj.(metav1.Object).GetResourceVersion()) },
		},
	})
	var running sync.WaitGroup
	running.Go(func() { i.RunWithContext(ctx) })
	return &race.Following{Synced: i.HasSyncedChecker().Done(), Wait: running.Wait}
}
