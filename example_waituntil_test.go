package informer_test

import (
	"context"
	"fmt"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"

	"github.com/rvinformer/informer"
)

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
