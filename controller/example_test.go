package controller_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/cache"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/controller"
	"github.com/rvinformer/informer/tests/harness"
)

// A Controller brings something in line with the store of an informer, which others may
// use as well.
func ExampleNewResource() {
	server, lister := harness.Simulated("web")
	defer server.Close()
	shared := cache.NewSharedIndexInformer(lister, &unstructured.Unstructured{}, 0, cache.Indexers{})
	called := make(chan string)
	c := &controller.Controller{
		Log: slog.New(slog.NewTextHandler(os.Stderr, nil)),
		Resource: controller.NewResource(shared,
			func(key string, obj interface{}) error {
				called <- fmt.Sprintf("upsert %s: %s", key, obj.(*unstructured.Unstructured).GetKind())
				return nil // or an error, and it is called again
			},
			func(key string, obj interface{}) error {
				called <- fmt.Sprintf("delete %s", key)
				return nil
			}),
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		c.RunWithContext(ctx) // returns after everything that it has started
	}()
	fmt.Println(<-called)
	if err := server.Delete(harness.Pods, "default", "web"); err != nil {
		panic(err)
	}
	fmt.Println(<-called)
	stop()
	<-done
	// Output:
	// upsert default/web: Pod
	// delete default/web
}

// Without a store: Upsert is given the object of the event, and what it has not taken in
// comes again, also in the next process.
func ExampleNewStorelessResource() {
	server, lister := harness.Simulated("web")
	defer server.Close()
	acknowledged := informer.NewResourceVersionStorage()
	attempts := 0
	c := &controller.Controller{
		Resource: controller.NewStorelessResource("pods",
			informer.InformerConfig{
				ListerWatcher: lister,
				Storage:       acknowledged, // or a Checkpoint: what a later process goes on from
			},
			func(key string, obj interface{}) error {
				if attempts++; attempts == 1 {
					return errors.New("not now")
				}
				fmt.Printf("upsert %s: %s\n", key, obj.(*unstructured.Unstructured).GetKind())
				return nil
			},
			func(key string, obj interface{}) error { return nil }),
		Log:        slog.New(slog.DiscardHandler),
		MaxRetries: -1,
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		c.RunWithContext(ctx)
	}()
	<-c.HasSyncedChecker().Done() // everything that was listed was upserted
	stop()
	<-done
	fmt.Println("acknowledged:", acknowledged.Len())
	// Output:
	// upsert default/web: Pod
	// acknowledged: 1
}

// Controllers may share one watch, with each other and with other handlers.
func ExampleNewHandlerResource() {
	server, lister := harness.Simulated("web")
	defer server.Close()
	shared := informer.NewSharedResourceVersionInformer("pods", informer.InformerConfig{ListerWatcher: lister})
	control := func(name string) *controller.Controller {
		return &controller.Controller{Resource: controller.NewHandlerResource(shared, informer.HandlerConfig{Name: name},
			func(key string, _ interface{}) error {
				fmt.Println(name, "upserts", key)
				return nil
			},
			func(key string, _ interface{}) error { return nil })}
	}
	ctx, stop := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { shared.RunWithContext(ctx) }) // a factory would do that
	for _, name := range []string{"the registrar", "the auditor"} {
		c := control(name)
		running.Go(func() { c.RunWithContext(ctx) })
		<-c.HasSyncedChecker().Done()
	}
	stop()
	running.Wait()
	// Output:
	// the registrar upserts default/web
	// the auditor upserts default/web
}

// In a test, one line runs a Resource and one stops it.
func ExampleTestControllerRun() {
	server, lister := harness.Simulated("web")
	defer server.Close()
	shared := cache.NewSharedIndexInformer(lister, &unstructured.Unstructured{}, 0, cache.Indexers{})
	upserted := make(chan string)
	ignore := func(string, interface{}) error { return nil }
	stop := controller.TestControllerRun(controller.NewResource(shared,
		func(key string, _ interface{}) error {
			upserted <- key
			return nil
		}, ignore))
	fmt.Println(<-upserted)
	stop()
	stop() // does no harm
	// Output: default/web
}
