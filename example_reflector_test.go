package informer_test

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/cache"

	"github.com/rvinformer/informer"
)

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
	// Replaced default/web true
	// processing "default/web": not now
	// Replaced default/web true
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
