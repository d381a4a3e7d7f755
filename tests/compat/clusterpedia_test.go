package compat_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/informertest"
	"github.com/rvinformer/informer/tests/harness"
)

// What follows is written as users of clusterpedia's informer v0.8.1 write: it compiles after a
// change of the import. What does not is in docs/coming-from-clusterpedia.md.

// synchro mirrors the objects of a cluster.
type synchro struct {
	storage *informer.ResourceVersionStorage
}

var _ informer.ResourceEventHandler = &synchro{}

func newSynchro(config *rest.Config, versions map[string]interface{}) (informer.ResourceVersionInformer, error) {
	factory, err := informer.NewDynamicListerWatcherFactory(config)
	if err != nil {
		return nil, err
	}
	s := &synchro{storage: informer.NewResourceVersionStorage()}
	if err := s.storage.Replace(versions); err != nil {
		return nil, err
	}
	gvr := schema.GroupVersionResource{Version: "v1", Resource: "pods"}
	example := &unstructured.Unstructured{}
	example.SetAPIVersion("v1")
	example.SetKind("Pod")
	return informer.NewResourceVersionInformer("pods", informer.InformerConfig{
		ListerWatcher: factory.ForResource(metav1.NamespaceAll, gvr),
		Storage:       s.storage,

		ExampleObject: example,
		Handler:       s,
		ErrorHandler: func(r *informer.Reflector, err error) {
			if err != nil {
				informer.DefaultWatchErrorHandler(r, err)
			}
		},
		ExtraStore: nil,

		WatchListPageSize:            500,
		ForcePaginatedList:           true,
		StreamHandleForPaginatedList: true,
	}), nil
}

func (s *synchro) OnAdd(obj interface{}, isInInitialList bool) { s.write("add", obj) }
func (s *synchro) OnUpdate(_, newObj interface{})              { s.write("update", newObj) }
func (s *synchro) OnDelete(obj interface{})                    { s.write("delete", obj) }
func (s *synchro) OnSync(obj interface{})                      { s.write("sync", obj) }

func (s *synchro) write(what string, obj interface{}) {
	key, err := cache.DeletionHandlingMetaNamespaceKeyFunc(obj)
	if err != nil {
		panic(err)
	}
	fmt.Println(what, key)
}

// Code that was written for clusterpedia's informer.
func Example_clusterpedia() {
	server := informertest.NewServer(informertest.Options{}) // for a cluster
	defer server.Close()
	var mirrored string
	for _, name := range []string{"same", "changed", "new"} {
		created, err := server.Create(harness.Pods, harness.Object(harness.Pods, "default/"+name, ""))
		if err != nil {
			panic(err)
		}
		if name == "same" {
			mirrored = created.GetResourceVersion()
		}
	}
	pods, err := newSynchro(server.Config(), map[string]interface{}{ // from a database
		"default/same":    mirrored,
		"default/changed": "1",
		"default/gone":    "1",
	})
	if err != nil {
		panic(err)
	}
	stop := make(chan struct{})
	done := make(chan struct{})
	go func() {
		defer close(done)
		pods.Run(stop)
	}()
	cache.WaitForCacheSync(stop, pods.HasSynced)
	close(stop)
	<-done
	// Unordered output:
	// sync default/same
	// update default/changed
	// add default/new
	// delete default/gone
}

// S1: the names of v0.8.1 and their signatures. NewReflector and NewNamedReflector take more than a
// cache.Store.
var (
	_ func(r *informer.Reflector, err error)                                                                                                  = informer.DefaultWatchErrorHandler
	_ func(cache.ListerWatcher, runtime.Object, cache.Store, time.Duration, cache.ResourceEventHandler, cache.TransformFunc) cache.Controller = informer.NewInformer
	_ func(name string, config *informer.Config) cache.Controller                                                                             = informer.NewNamedController
	_ func(*rest.Config) (informer.DynamicListerWatcherFactory, error)                                                                        = informer.NewDynamicListerWatcherFactory
	_ func(cache.ListerWatcher, interface{}, time.Duration) (cache.Indexer, *informer.Reflector)                                              = informer.NewNamespaceKeyedIndexerAndReflector
	_ func(name string, config informer.InformerConfig) informer.ResourceVersionInformer                                                      = informer.NewResourceVersionInformer
	_ func() *informer.ResourceVersionStorage                                                                                                 = informer.NewResourceVersionStorage
	_ informer.TweakListOptionsFunc                                                                                                           = func(*metav1.ListOptions) {}
	_ informer.WatchErrorHandler                                                                                                              = func(*informer.Reflector, error) {}
	_ informer.ExtraStore                                                                                                                     = cache.Store(nil)

	_ interface {
		HasInitializedSynced() bool
		LastSyncResourceVersion() string
		ListAndWatch(stopCh <-chan struct{}) error
		Run(stopCh <-chan struct{})
	} = &informer.Reflector{}
	_ interface {
		Run(stopCh <-chan struct{})
		HasSynced() bool
	} = informer.ResourceVersionInformer(nil)
	_ interface {
		Add(obj interface{}) error
		Delete(obj interface{}) error
		Get(obj interface{}) (string, bool, error)
		GetByKey(key string) (item interface{}, exists bool, err error)
		ListKeys() []string
		Replace(versions map[string]interface{}) error
		Update(obj interface{}) error
	} = &informer.ResourceVersionStorage{}
	_ interface {
		ForResource(namespace string, gvr schema.GroupVersionResource) cache.ListerWatcher
		ForResourceWithOptions(namespace string, gvr schema.GroupVersionResource, optionsFunc informer.TweakListOptionsFunc) cache.ListerWatcher
	} = informer.DynamicListerWatcherFactory(nil)
	_ interface{ UpdateResourceVersion(resourceVersion string) } = informer.ResourceVersionUpdater(nil)
)

func TestS1CodeCompiles(t *testing.T) {
	lw := harness.Script{
		List:  harness.Listing("10", harness.Pod("a/1", "7")),
		Watch: func(context.Context, metav1.ListOptions) (watch.Interface, error) { return watch.NewFake(), nil },
	}.LW()
	// A controller over a queue of one's own.
	store := harness.NewStore()
	fifo := cache.NewDeltaFIFOWithOptions(cache.DeltaFIFOOptions{KnownObjects: store, EmitDeltaTypeReplaced: true})
	stop := make(chan struct{})
	c := informer.NewNamedController("pods", &informer.Config{
		Queue:            fifo,
		ListerWatcher:    lw,
		ObjectType:       &unstructured.Unstructured{},
		FullResyncPeriod: time.Hour,
		ShouldResync:     func() bool { return false },
		RetryOnError:     false,
		Process: func(obj interface{}, isInInitialList bool) error {
			close(stop)
			return harness.Apply(store, obj)
		},
		WatchErrorHandler:            func(*informer.Reflector, error) {},
		WatchListPageSize:            500,
		StreamHandleForPaginatedList: true,
		ForcePaginatedList:           true,
	})
	c.Run(stop)
	require.Equal(t, map[string]string{"a/1": "7"}, harness.Contents(store))

	// Reflectors over stores.
	var s cache.Store = harness.NewStore()
	for _, r := range []*informer.Reflector{
		informer.NewReflector(lw, &unstructured.Unstructured{}, s, time.Hour),
		informer.NewNamedReflector("pods", lw, &unstructured.Unstructured{}, s, time.Hour),
	} {
		r.MaxInternalErrorRetryDuration = time.Minute
		r.ShouldResync = func() bool { return true }
		r.WatchListPageSize = 500
		r.StreamHandleForPaginatedList = true
		r.ForcePaginatedList = true
	}

	// Adapters as fields, and as values of the interface.
	var handler informer.ResourceEventHandler = informer.FilteringResourceEventHandler{
		FilterFunc: func(obj interface{}) bool { return true },
		Handler: informer.ResourceEventHandlerFuncs{
			AddFunc:    func(obj interface{}) {},
			UpdateFunc: func(oldObj, newObj interface{}) {},
			DeleteFunc: func(obj interface{}) {},
			SyncFunc:   func(obj interface{}) {},
		},
	}
	handler.OnSync(nil)
}
