package informer_test

import (
	"context"
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/informertest"
)

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
