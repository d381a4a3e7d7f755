package factory_test

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/tools/cache"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/factory"
	"github.com/rvinformer/informer/informertest"
)

// Code that was written for Istio's informerfactory.
func ExampleNewSharedInformerFactory() {
	server := informertest.NewServer(informertest.Options{}) // for a cluster
	defer server.Close()
	create(failing{}, server, pods, "web")
	client, err := dynamic.NewForConfig(server.Config())
	if err != nil {
		panic(err)
	}

	f := factory.NewSharedInformerFactory()
	opts := factory.InformerOptions{Namespace: "default", InformerType: factory.DynamicInformer}
	inf := f.InformerFor(pods, opts, func() cache.SharedIndexInformer {
		return dynamicinformer.NewFilteredDynamicInformer(client, pods, opts.Namespace, 0, cache.Indexers{}, nil).Informer()
	})

	stop := make(chan struct{})
	f.Start(stop)
	fmt.Println("synced:", f.WaitForCacheSync(stop))
	fmt.Println(inf.Informer.GetStore().ListKeys())
	close(stop)
	f.Shutdown()
	// Output:
	// synced: true
	// [default/web]
}

// Two parts of a program use one informer. It is gone when both have given it back.
func ExampleNew() {
	server := informertest.NewServer(informertest.Options{}) // for a cluster
	defer server.Close()
	client, err := dynamic.NewForConfig(server.Config())
	if err != nil {
		panic(err)
	}

	f := factory.New()
	use := func() *factory.Lease[cache.SharedIndexInformer] {
		opts := factory.InformerOptions{Cluster: "east", LabelSelector: "app=web", InformerType: factory.DynamicInformer}
		lease, err := f.Acquire(pods, opts, func() cache.SharedIndexInformer {
			fmt.Println("made")
			tweak := func(o *metav1.ListOptions) { o.LabelSelector = opts.LabelSelector }
			return dynamicinformer.NewFilteredDynamicInformer(client, pods, opts.Namespace, 0, cache.Indexers{}, tweak).Informer()
		})
		if err != nil {
			panic(err)
		}
		if err := lease.Start(); err != nil {
			panic(err)
		}
		return lease
	}
	one, other := use(), use()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := f.WaitForCacheSyncWithContext(ctx).AsError(); err != nil {
		panic(err) // it says which informers have not synced, and why
	}

	<-one.Release()
	fmt.Println(other.Status().Phase)
	<-other.Release()
	fmt.Println(other.Status().Phase)
	// Output:
	// made
	// watching
	// stopped
}

// An informer that keeps no objects is leased as any other is.
func ExampleFactory_AcquireResourceVersion() {
	server := informertest.NewServer(informertest.Options{}) // for a cluster
	defer server.Close()
	create(failing{}, server, pods, "web")
	lws, err := informer.NewDynamicListerWatcherFactory(server.Config())
	if err != nil {
		panic(err)
	}

	f := factory.New()
	lease, err := f.AcquireResourceVersion(pods, factory.InformerOptions{Cluster: "east"}, func() informer.ResourceVersionInformer {
		return informer.NewResourceVersionInformer("pods of east", informer.InformerConfig{
			ListerWatcher: lws.ForResource("", pods),
			ExampleObject: &informer.RawObject{},
			Handler: informer.ResourceEventHandlerDetailedFuncs{
				AddFunc: func(obj interface{}, _ bool) { fmt.Println("added", obj.(*informer.RawObject).GetName()) },
			},
		})
	})
	if err != nil {
		panic(err)
	}
	if err := lease.Start(); err != nil {
		panic(err)
	}
	fmt.Println("synced:", f.WaitForCacheSync(nil))
	<-f.StopCluster("east") // whoever uses them
	<-lease.Done()
	lease.Release()
	// Output:
	// added web
	// synced: true
}

// Users of one informer that keeps no objects add their handlers to it, at any time, and share its
// watch.
func ExampleFactory_ResourceVersionInformerFor() {
	server := informertest.NewServer(informertest.Options{}) // for a cluster
	defer server.Close()
	create(failing{}, server, pods, "web")
	lws, err := informer.NewDynamicListerWatcherFactory(server.Config())
	if err != nil {
		panic(err)
	}

	f := factory.New()
	defer f.Shutdown()
	follow := func(user string) {
		shared := f.ResourceVersionInformerFor(pods, factory.InformerOptions{Cluster: "east"}, informer.InformerConfig{
			ListerWatcher: lws.ForResource("", pods),
			ExampleObject: &informer.RawObject{},
		})
		handler, err := shared.Informer.AddEventHandler(informer.ResourceEventHandlerFuncs{
			AddFunc: func(obj interface{}) { fmt.Println(user, "sees", obj.(*informer.RawObject).GetName()) },
		})
		if err != nil {
			panic(err)
		}
		shared.Start(nil)
		<-handler.HasSyncedChecker().Done()
	}
	follow("the index")
	follow("the mirror") // which is told of all objects, too
	// Output:
	// the index sees web
	// the mirror sees web
}

// Two requests for the same, in other words, get the same informer.
func ExampleNewKey() {
	one, err := factory.NewKey(pods, factory.InformerOptions{Cluster: "east", LabelSelector: "tier in (web),app=shop"})
	if err != nil {
		panic(err)
	}
	other, err := factory.NewKey(pods, factory.InformerOptions{Cluster: "east", LabelSelector: "app==shop, tier=web"})
	if err != nil {
		panic(err)
	}
	fmt.Println(one)
	fmt.Println(one == other)
	_, err = factory.NewKey(pods, factory.InformerOptions{LabelSelector: "app=shop,"})
	fmt.Println(err != nil)
	// Output:
	// v1/pods, cluster east, labels app=shop,tier=web, standard
	// true
	// true
}

// failing is a test for examples, which have none.
type failing struct{}

func (failing) Errorf(format string, args ...interface{}) { panic(fmt.Sprintf(format, args...)) }
func (failing) FailNow()                                  { panic("failed") }
