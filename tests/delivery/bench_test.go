package delivery_test

import (
	"fmt"
	"iter"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/informertest"
	"github.com/rvinformer/informer/tests/harness"
)

// BenchmarkInitialSync reads 5,000 pods of about 4 KB over loopback, in pages of
// 500: decoded page by page, as any ListerWatcher has it; item by item off the
// socket, as the factory's; and again with a storage that knows them all.
//
//	go test -run - -bench InitialSync -benchmem -count 5 ./tests/delivery
func BenchmarkInitialSync(b *testing.B) {
	const objects = 5000
	s := informertest.NewServer(informertest.Options{})
	defer s.Close()
	if err := s.Load(harness.Pods, manyPods(objects)); err != nil {
		b.Fatal(err)
	}
	config := s.Config()
	config.DisableCompression = true // it would take longer than the rest
	factory, err := informer.NewDynamicListerWatcherFactory(config)
	if err != nil {
		b.Fatal(err)
	}
	streamed := factory.ForResource("", harness.Pods)
	context := cache.ToListerWatcherWithContext(streamed)
	decoded := &cache.ListWatch{ListWithContextFunc: context.ListWithContext, WatchFuncWithContext: context.WatchWithContext}
	known := informer.NewResourceVersionStorage()
	sync := func(b *testing.B, lw cache.ListerWatcher, storage *informer.ResourceVersionStorage, keep ...string) {
		i := informer.NewResourceVersionInformer("pods", informer.InformerConfig{
			ListerWatcher: lw, Storage: storage, Handler: informer.ResourceEventHandlerFuncs{}, ListMode: informer.ListModePaged, Keep: keep,
		})
		stop := harness.Synced(i)
		stop()
		if n := i.Status().Objects; n != objects {
			b.Fatalf("%d objects of %d", n, objects)
		}
	}
	sync(b, streamed, known)
	for _, bench := range []struct {
		name    string
		lw      cache.ListerWatcher
		storage *informer.ResourceVersionStorage
		keep    []string
	}{
		{"decoded", decoded, nil, nil},
		{"streamed", streamed, nil, nil},
		{"kept", streamed, nil, []string{"spec.nodeName", "spec.containers.resources", "status.phase"}},
		{"unchanged-decoded", decoded, known, nil},
		{"unchanged-streamed", streamed, known, nil},
		{"unchanged-kept", streamed, known, []string{"spec.nodeName", "spec.containers.resources", "status.phase"}},
	} {
		b.Run(bench.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				sync(b, bench.lw, bench.storage, bench.keep...)
			}
			b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N)/objects, "µs/object")
		})
	}
}

func manyPods(n int) iter.Seq[runtime.Object] {
	return func(yield func(runtime.Object) bool) {
		for i := range n {
			obj := harness.Object(harness.Pods, fmt.Sprintf("namespace-%02d/deployment-with-a-name-%08x-%05d", i%20, i/10, i), "")
			containers := []interface{}{}
			for c := range 3 {
				containers = append(containers, map[string]interface{}{
					"name": fmt.Sprintf("container-%d", c), "image": "registry.example.com/team/image:" + strings.Repeat("0", 40),
					"args":      []interface{}{"--verbose", "--log-format=json", "--listen=:8080"},
					"env":       []interface{}{map[string]interface{}{"name": "POD_IP", "value": strings.Repeat("x", 200)}},
					"resources": map[string]interface{}{"limits": map[string]interface{}{"cpu": "500m", "memory": "512Mi"}},
				})
			}
			obj.Object["spec"] = map[string]interface{}{"nodeName": "node-1", "containers": containers, "volumes": strings.Repeat("v", 1000)}
			obj.Object["status"] = map[string]interface{}{"phase": "Running", "conditions": strings.Repeat("c", 1000)}
			if !yield(obj) {
				return
			}
		}
	}
}
