package informer_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

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

// With a BatchHandler, changes are taken in many at a time, in a transaction for
// instance, and come again if that fails. With a Checkpoint, the next process goes on
// where this one has ended, without a list.
func ExampleBatchHandler() {
	server := informertest.NewServer(informertest.Options{})
	defer server.Close()
	pods := schema.GroupVersionResource{Version: "v1", Resource: "pods"}
	factory, err := informer.NewDynamicListerWatcherFactory(server.Config())
	if err != nil {
		panic(err)
	}
	directory, err := os.MkdirTemp("", "checkpoint")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(directory)

	process := func(change func()) { // what one process does
		arrived := make(chan struct{}, 10)
		i := informer.NewResourceVersionInformer("pods", informer.InformerConfig{
			ListerWatcher: factory.ForResource("", pods),
			ExampleObject: &informer.RawObject{},
			Checkpoint:    informer.FileCheckpoint(filepath.Join(directory, "pods")),
			BatchHandler: informer.BatchHandlerFunc(func(ctx context.Context, events []informer.Event) error {
				for _, event := range events { // in a transaction of ctx
					fmt.Println(event.Type, event.Key)
				}
				arrived <- struct{}{}
				return nil // or why it was rolled back: the batch comes again
			}),
		})
		ctx, stop := context.WithCancel(context.Background())
		done := make(chan struct{})
		go func() {
			defer close(done)
			i.RunWithContext(ctx)
		}()
		<-i.HasSyncedChecker().Done() // the checkpoint has a whole list, and the next process goes on from there
		change()
		<-arrived
		stop()
		<-done
	}
	process(func() { _, err = server.Create(pods, object(pods, "default/web", "")) })
	process(func() { err = server.Delete(pods, "default", "web") })
	if err != nil {
		panic(err)
	}
	// Output:
	// Added default/web
	// Deleted default/web
}
