package informer_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"

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

// A destination that says which rows it refuses: the other rows of the batch are taken in, and those
// refused come again.
func ExampleFailedEvents() {
	server := informertest.NewServer(informertest.Options{}) // for a cluster
	defer server.Close()
	pods := schema.GroupVersionResource{Version: "v1", Resource: "pods"}
	for _, key := range []string{"default/db", "default/web"} {
		if _, err := server.Create(pods, object(pods, key, "")); err != nil {
			panic(err)
		}
	}
	factory, err := informer.NewDynamicListerWatcherFactory(server.Config())
	if err != nil {
		panic(err)
	}
	refused := map[string]error{"default/db": errors.New("value too long")}
	i := informer.NewResourceVersionInformer("pods", informer.InformerConfig{
		ListerWatcher: factory.ForResource("", pods),
		BatchHandler: informer.BatchHandlerFunc(func(_ context.Context, events []informer.Event) error {
			var failed informer.FailedEvents
			for at, event := range events {
				if err := refused[event.Key]; err != nil {
					fmt.Println(event.Key, err)
					failed = append(failed, informer.FailedEvent{Index: at, Err: err})
					delete(refused, event.Key) // the column is made wider
					continue
				}
				fmt.Println(event.Key, "written")
			}
			if len(failed) > 0 {
				return failed
			}
			return nil // and not failed, which is an error also if it is empty
		}),
		ErrorHandler: func(*informer.Reflector, error) {}, // the default logs it
	})
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		i.RunWithContext(ctx)
	}()
	<-i.HasSyncedChecker().Done()
	stop()
	<-done
	// Unordered output:
	// default/db value too long
	// default/web written
	// default/db written
}

// One factory is for one cluster. Informers read the objects of its ListerWatchers off the wire.
// Client-go's informers can use its ListerWatchers too.
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

// One watch for several handlers, which come and go.
func ExampleNewSharedResourceVersionInformer() {
	server := informertest.NewServer(informertest.Options{}) // for a cluster
	defer server.Close()
	resource := schema.GroupVersionResource{Version: "v1", Resource: "pods"}
	if _, err := server.Create(resource, object(resource, "default/web", "")); err != nil {
		panic(err)
	}
	lws, err := informer.NewDynamicListerWatcherFactory(server.Config())
	if err != nil {
		panic(err)
	}

	shared := informer.NewSharedResourceVersionInformer("pods", informer.InformerConfig{
		ListerWatcher: lws.ForResource("", resource),
		ExampleObject: &informer.RawObject{},
	})
	add := func(user string) *informer.HandlerRegistration {
		handler, err := shared.AddEventHandler(informer.ResourceEventHandlerFuncs{
			AddFunc: func(obj interface{}) { fmt.Println(user, "sees", obj.(*informer.RawObject).GetName()) },
		})
		if err != nil {
			panic(err)
		}
		return handler
	}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { shared.RunWithContext(ctx) })

	index := add("the index")
	<-index.HasSyncedChecker().Done()
	<-shared.RemoveHandler(index)
	late := add("the mirror")
	<-late.HasSyncedChecker().Done()
	cancel()
	running.Wait()
	// Output:
	// the index sees web
	// the mirror sees web
}

// A program writes an object, and goes on when its handler has taken the write in.
func ExampleResourceVersionInformer_writeThenWait() {
	server, lw := simulated("web")
	defer server.Close()
	var mirror sync.Map
	i := informer.NewResourceVersionInformer("pods", informer.InformerConfig{
		ListerWatcher: lw,
		ExampleObject: &informer.RawObject{},
		Handler: informer.ResourceEventHandlerDetailedFuncs{
			AddFunc:    func(obj interface{}, _ bool) { mirror.Store(obj.(*informer.RawObject).GetName(), "there") },
			DeleteFunc: func(interface{}) {},
		},
	})
	defer start(i.RunWithContext)()

	client, err := dynamic.NewForConfig(server.Config())
	if err != nil {
		panic(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	written, err := client.Resource(pods).Namespace("default").Create(ctx, object(pods, "default/db", ""), metav1.CreateOptions{})
	if err != nil {
		panic(err)
	}
	if err := i.WaitUntil(ctx, written.GetResourceVersion()); err != nil {
		panic(err)
	}
	fmt.Println(mirror.Load("db"))
	// Output: there true
}

// After the handler was mended, everything is delivered to it once more, while the watch goes on.
func ExampleResourceVersionInformer_redeliver() {
	server, lw := simulated("db", "web")
	defer server.Close()
	i := informer.NewResourceVersionInformer("pods", informer.InformerConfig{
		ListerWatcher: lw,
		ExampleObject: &informer.RawObject{},
		Handler: informer.ResourceEventHandlerFuncs{
			AddFunc:    func(obj interface{}) { fmt.Println("added", obj.(*informer.RawObject).GetName()) },
			UpdateFunc: func(_, obj interface{}) { fmt.Println("updated", obj.(*informer.RawObject).GetName()) },
		},
	})
	defer start(i.RunWithContext)()
	<-i.HasSyncedChecker().Done()

	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := i.Redeliver(ctx, informer.RedeliverOptions{PerSecond: 1000}); err != nil {
		panic(err)
	}
	// Output:
	// added db
	// added web
	// updated db
	// updated web
}

// An ordinary informer keeps a store of the caller's, and tells the old object too.
func ExampleNewInformer() {
	server, lw := simulated("web")
	defer server.Close()
	told := make(chan string)
	store := cache.NewStore(cache.DeletionHandlingMetaNamespaceKeyFunc)
	i := informer.NewInformer(lw, &unstructured.Unstructured{}, store, 0, cache.ResourceEventHandlerFuncs{
		AddFunc: func(obj interface{}) { told <- "added " + key(obj) },
		UpdateFunc: func(oldObj, newObj interface{}) {
			told <- fmt.Sprintf("updated from %q to %q", data(oldObj), data(newObj))
		},
	}, nil)
	stop := start(i.RunWithContext)
	fmt.Println(<-told)
	if _, err := server.Update(pods, object(pods, "default/web", "new")); err != nil {
		panic(err)
	}
	fmt.Println(<-told)
	stop()
	fmt.Println(store.ListKeys())
	// Output:
	// added default/web
	// updated from "" to "new"
	// [default/web]
}

// A controller has a function called with what happens to a key, from the oldest to the
// newest, and again where that fails.
func ExampleNewNamedController() {
	server, lw := simulated("web")
	defer server.Close()
	calls, done := 0, make(chan struct{})
	c := informer.NewNamedController("pods", &informer.Config{
		ListerWatcher: lw,
		RetryOnError:  true,
		Process: func(obj interface{}, isInInitialList bool) error {
			for _, delta := range obj.(cache.Deltas) {
				fmt.Println(delta.Type, key(delta.Object), isInInitialList)
			}
			if calls++; calls == 1 {
				return errors.New("not now")
			}
			close(done)
			return nil
		},
		WatchErrorHandler: func(_ *informer.Reflector, err error) {
			var failed *informer.ProcessError
			if errors.As(err, &failed) {
				fmt.Println(failed)
			}
		},
	})
	stop := start(c.RunWithContext)
	<-done
	stop()
	// Output:
	// Sync default/web true
	// processing "default/web": not now
	// Sync default/web true
}

// A Reflector fills any store.
func ExampleNewReflector() {
	server, lw := simulated("db", "web")
	defer server.Close()
	store := cache.NewStore(cache.MetaNamespaceKeyFunc)
	r := informer.NewReflector(lw, &unstructured.Unstructured{}, store, 0)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	stop := start(r.RunWithContext)
	cache.WaitForCacheSync(ctx.Done(), r.HasInitializedSynced)
	fmt.Println(len(store.List()), r.LastSyncResourceVersion() == server.ResourceVersion())
	stop()
	// Output: 2 true
}

// upToDate is a store that says up to which version it is complete.
type upToDate struct {
	cache.Store
	reached chan<- string
}

func (s upToDate) UpdateResourceVersion(resourceVersion string) { s.reached <- resourceVersion }

// A name is for logs. A store that is a ResourceVersionUpdater is told how far it is.
func ExampleNewNamedReflector() {
	server, lw := simulated("db", "web")
	defer server.Close()
	reached := make(chan string, 10)
	store := upToDate{cache.NewStore(cache.MetaNamespaceKeyFunc), reached}
	r := informer.NewNamedReflector("pods", lw, &unstructured.Unstructured{}, store, 0)
	stop := start(r.RunWithContext)
	fmt.Println(r.Name(), <-reached == server.ResourceVersion())
	if err := server.Delete(pods, "default", "db"); err != nil {
		panic(err)
	}
	fmt.Println(r.Name(), <-reached == server.ResourceVersion(), store.ListKeys())
	stop()
	// Output:
	// pods true
	// pods true [default/web]
}

// The Reflector fills the indexer, which can be asked for the objects of a namespace.
func ExampleNewNamespaceKeyedIndexerAndReflector() {
	server, lw := simulated("web")
	defer server.Close()
	indexer, r := informer.NewNamespaceKeyedIndexerAndReflector(lw, &unstructured.Unstructured{}, 0)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	stop := start(r.RunWithContext)
	cache.WaitForCacheSync(ctx.Done(), r.HasInitializedSynced)
	keys, err := indexer.IndexKeys(cache.NamespaceIndex, "default")
	if err != nil {
		panic(err)
	}
	fmt.Println(keys)
	stop()
	// Output: [default/web]
}
