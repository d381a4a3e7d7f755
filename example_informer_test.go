package informer_test

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/informertest"
)

// simulated is a cluster with pods of the namespace "default", and what lists and watches
// them. A program has a rest.Config instead of that of the server.
func simulated(names ...string) (*informertest.Server, cache.ListerWatcher) {
	server := informertest.NewServer(informertest.Options{})
	for _, name := range names {
		if _, err := server.Create(pods, object(pods, "default/"+name, "")); err != nil {
			panic(err)
		}
	}
	factory, err := informer.NewDynamicListerWatcherFactory(server.Config())
	if err != nil {
		panic(err)
	}
	return server, factory.ForResource("default", pods)
}

// namesOf are the names of the objects that lw lists.
func namesOf(lw cache.ListerWatcher) (names []string) {
	list, err := lw.List(metav1.ListOptions{})
	if err != nil {
		panic(err)
	}
	err = meta.EachListItem(list, func(obj runtime.Object) error {
		names = append(names, obj.(metav1.Object).GetName())
		return nil
	})
	if err != nil {
		panic(err)
	}
	return names
}

// One factory is for one cluster. What it makes is for informers, which read it off the
// wire, and for client-go's.
func ExampleNewDynamicListerWatcherFactory() {
	server, _ := simulated("db", "web")
	defer server.Close()
	factory, err := informer.NewDynamicListerWatcherFactory(server.Config())
	if err != nil {
		panic(err)
	}
	all := factory.ForResource("", pods)
	some := factory.ForResourceWithOptions("default", pods, func(options *metav1.ListOptions) {
		options.FieldSelector = "metadata.name!=db"
	})
	fmt.Println(namesOf(all), namesOf(some))
	// Output: [db web] [web]
}

// Any ListerWatcher can be restricted.
func ExampleNewFilteredListerWatcher() {
	server, all := simulated("db", "web")
	defer server.Close()
	some := informer.NewFilteredListerWatcher(all, func(options *metav1.ListOptions) {
		options.FieldSelector = "metadata.name=db"
	})
	fmt.Println(namesOf(some))
	// Output: [db]
}

// A storage is filled with what an earlier process has known, and tells what it knows now.
func ExampleNewResourceVersionStorage() {
	storage := informer.NewResourceVersionStorage()
	err := storage.Replace(map[string]interface{}{"default/db": "7", "default/web": "12"}) // from a database
	if err != nil {
		panic(err)
	}
	var file bytes.Buffer // or in a format of its own
	if _, err := storage.WriteTo(&file); err != nil {
		panic(err)
	}

	again := informer.NewResourceVersionStorage()
	if _, err := again.ReadFrom(&file); err != nil {
		panic(err)
	}
	known := maps.Collect(again.All())
	for _, key := range slices.Sorted(maps.Keys(known)) {
		fmt.Println(key, known[key])
	}
	// Output:
	// default/db 7
	// default/web 12
}

// Many informers of a process share the bytes that wait for their handlers.
func ExampleNewBudget() {
	server, lw := simulated("db", "web")
	defer server.Close()
	budget := informer.NewBudget(4 << 20)
	var stops []func()
	for range 10 {
		i := informer.NewResourceVersionInformer("pods", informer.InformerConfig{
			ListerWatcher: lw,
			Handler:       informer.ResourceEventHandlerFuncs{AddFunc: func(interface{}) {}},
			Budget:        budget,
		})
		stops = append(stops, start(i.RunWithContext))
		<-i.HasSyncedChecker().Done()
	}
	for _, stop := range stops {
		stop()
	}
	fmt.Println("in use:", budget.InUse())
	fmt.Println("never more than the limit:", budget.Peak() <= budget.Limit())
	// Output:
	// in use: 0
	// never more than the limit: true
}

// A process that has a checkpoint goes on where the last one has ended. It is not told
// again what that one has taken in, and need not list.
func ExampleFileCheckpoint() {
	server, lw := simulated("db", "web")
	defer server.Close()
	directory, err := os.MkdirTemp("", "checkpoint")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(directory)

	process := func() {
		told := 0
		i := informer.NewResourceVersionInformer("pods", informer.InformerConfig{
			ListerWatcher: lw,
			Handler:       informer.ResourceEventHandlerFuncs{AddFunc: func(interface{}) { told++ }},
			Checkpoint:    informer.FileCheckpoint(filepath.Join(directory, "pods")),
		})
		stop := start(i.RunWithContext)
		<-i.HasSyncedChecker().Done()
		stop()
		fmt.Println("told of", told)
	}
	process()
	process()
	// Output:
	// told of 2
	// told of 0
}

// A handler without a use for unchanged objects says so, and they are not even decoded.
func ExampleIgnoreSynced() {
	server, lw := simulated("db", "web")
	defer server.Close()
	follow := func(storage *informer.ResourceVersionStorage, handler informer.BatchHandler) {
		i := informer.NewResourceVersionInformer("pods", informer.InformerConfig{
			ListerWatcher: lw,
			Storage:       storage,
			BatchHandler:  handler,
		})
		stop := start(i.RunWithContext)
		<-i.HasSyncedChecker().Done()
		stop()
	}
	storage := informer.NewResourceVersionStorage()
	print := informer.BatchHandlerFunc(func(_ context.Context, events []informer.Event) error {
		for _, event := range events {
			fmt.Println(event.Type, event.Key)
		}
		return nil
	})
	follow(storage, informer.IgnoreSynced(print))
	follow(storage, informer.IgnoreSynced(print)) // nothing
	follow(storage, print)
	// Unordered output:
	// Added default/db
	// Added default/web
	// Synced default/db
	// Synced default/web
}
