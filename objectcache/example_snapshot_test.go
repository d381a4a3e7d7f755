package objectcache_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/informertest"
	"github.com/rvinformer/informer/objectcache"
)

// keptPods keeps the pods of a cluster, also for the next process.
func keptPods(lw cache.ListerWatcher, file string) *objectcache.Informer {
	return objectcache.NewSharedIndexInformerWithOptions(lw, &corev1.Pod{}, objectcache.Options{
		Snapshot: informer.FileCheckpoint(file),
	})
}

// A process serves reads before its server answers, from what the process before has saved.
func Example_snapshot() {
	dir, err := os.MkdirTemp("", "snapshot")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	server := informertest.NewServer(informertest.Options{}) // for a cluster
	defer server.Close()
	web := &corev1.Pod{}
	web.Namespace, web.Name = "default", "web"
	if _, err := server.Create(corev1.SchemeGroupVersion.WithResource("pods"), web); err != nil {
		panic(err)
	}
	factory, err := informer.NewDynamicListerWatcherFactory(server.Config())
	if err != nil {
		panic(err)
	}

	// process runs an informer until it has a pod.
	process := func() {
		pods := keptPods(factory.ForResource("", corev1.SchemeGroupVersion.WithResource("pods")), filepath.Join(dir, "pods"))
		ctx, stop := context.WithTimeout(context.Background(), time.Minute)
		defer stop()
		var running sync.WaitGroup
		running.Go(func() { pods.RunWithContext(ctx) })
		for len(pods.GetStore().ListKeys()) == 0 && ctx.Err() == nil {
			time.Sleep(time.Millisecond)
		}
		fmt.Println(pods.GetStore().ListKeys(), "synced:", pods.HasSynced())
		stop()
		running.Wait() // the snapshot is saved
	}
	process()
	// The server answers for the namespace kube-system, which says that it is the same cluster, and for nothing else.
	server.Inject(informertest.Fault{Effect: informertest.Status(503)})
	process()
	// Output:
	// [default/web] synced: true
	// [default/web] synced: false
}
