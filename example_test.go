package informer_test

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/informertest"
)

// A ResourceVersionInformer tells a handler what happens to the pods of a
// cluster, here a simulated one, and remembers only their keys and versions.
func ExampleNewResourceVersionInformer() {
	server := informertest.NewServer(informertest.Options{})
	defer server.Close()
	pods := schema.GroupVersionResource{Version: "v1", Resource: "pods"}
	if _, err := server.Create(pods, object(pods, "default/web", "")); err != nil {
		panic(err)
	}

	factory, err := informer.NewDynamicListerWatcherFactory(server.Config())
	if err != nil {
		panic(err)
	}
	storage := informer.NewResourceVersionStorage() // fill it with Replace to go on from an earlier run
	i := informer.NewResourceVersionInformer("pods", informer.InformerConfig{
		ListerWatcher: factory.ForResource("", pods),
		Storage:       storage,
		Prune:         []string{"metadata.managedFields"},
		Handler: informer.ResourceEventHandlerDetailedFuncs{
			AddFunc:    func(obj interface{}, isInInitialList bool) { fmt.Println("added", key(obj), isInInitialList) },
			UpdateFunc: func(_, obj interface{}) { fmt.Println("updated", key(obj)) },
			DeleteFunc: func(obj interface{}) { fmt.Println("deleted", key(obj)) }, // maybe a tombstone
		},
	})

	ctx, stop := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		i.RunWithContext(ctx) // returns after everything that it started
	}()
	<-i.HasSyncedChecker().Done()
	stop()
	<-done
	fmt.Println("remembered", storage.Len())
	// Output:
	// added default/web true
	// remembered 1
}
