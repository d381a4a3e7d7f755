package objectcache_test

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/informertest"
	"github.com/rvinformer/informer/objectcache"
)

// A program writes an object, and then reads it from the store.
func ExampleInformer_WaitUntil() {
	server := informertest.NewServer(informertest.Options{}) // for a cluster
	defer server.Close()
	factory, err := informer.NewDynamicListerWatcherFactory(server.Config())
	if err != nil {
		panic(err)
	}
	pods := objectcache.NewSharedIndexInformerWithOptions(
		factory.ForResource("", corev1.SchemeGroupVersion.WithResource("pods")), &corev1.Pod{}, objectcache.Options{})
	ctx, stop := context.WithTimeout(context.Background(), time.Minute)
	var running sync.WaitGroup
	defer running.Wait()
	defer stop()
	running.Go(func() { pods.RunWithContext(ctx) })

	client, err := kubernetes.NewForConfig(server.Config())
	if err != nil {
		panic(err)
	}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"}}
	written, err := client.CoreV1().Pods("default").Create(ctx, pod, metav1.CreateOptions{})
	if err != nil {
		panic(err)
	}
	if err := pods.WaitUntil(ctx, written.ResourceVersion); err != nil {
		panic(err)
	}
	obj, exists, err := pods.Store().GetByKey("default/web")
	if err != nil || !exists {
		panic(fmt.Sprint("not found: ", err))
	}
	fmt.Println(obj.(*corev1.Pod).ResourceVersion == written.ResourceVersion)
	// Output: true
}
