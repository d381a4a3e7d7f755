package objectcache_test

import (
	"context"
	"fmt"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic/dynamiclister"
	"k8s.io/client-go/metadata/metadatalister"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/informertest"
	"github.com/rvinformer/informer/objectcache"
)

var widgetsResource = schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"}

// Informers of any resource take the place of those of client-go's dynamicinformer and
// metadatainformer. The listers are client-go's.
func ExampleNewSharedIndexInformerWithOptions() {
	server := informertest.NewServer(informertest.Options{})
	defer server.Close()
	if _, err := server.Create(widgetsResource, &unstructured.Unstructured{Object: map[string]interface{}{
		"apiVersion": "example.com/v1", "kind": "Widget",
		"metadata": map[string]interface{}{"namespace": "default", "name": "gear", "labels": map[string]interface{}{"app": "clock"}},
		"spec":     map[string]interface{}{"teeth": int64(12)},
	}}); err != nil {
		fmt.Println(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	if err := listWidgets(ctx, cancel, server.Config()); err != nil {
		fmt.Println(err)
	}
	// Output:
	// gear has 12 teeth
	// gear is of clock
}

func listWidgets(ctx context.Context, cancel context.CancelFunc, config *rest.Config) error {
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel()

	lister, err := informer.NewDynamicListerWatcherFactory(config)
	if err != nil {
		return err
	}
	lw := lister.ForResource("", widgetsResource)
	indexers := cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc}
	whole := objectcache.NewSharedIndexInformerWithOptions(lw, &unstructured.Unstructured{}, objectcache.Options{Indexers: indexers})
	metadata := objectcache.NewSharedIndexInformerWithOptions(lw, &metav1.PartialObjectMetadata{}, objectcache.Options{Indexers: indexers})
	running.Go(func() { whole.RunWithContext(ctx) })
	running.Go(func() { metadata.RunWithContext(ctx) })
	cache.WaitForCacheSync(ctx.Done(), whole.HasSynced, metadata.HasSynced)

	gear, err := dynamiclister.New(whole.GetIndexer(), widgetsResource).Namespace("default").Get("gear")
	if err != nil {
		return err
	}
	teeth, _, err := unstructured.NestedInt64(gear.Object, "spec", "teeth")
	if err != nil {
		return err
	}
	fmt.Println(gear.GetName(), "has", teeth, "teeth")

	all, err := metadatalister.New(metadata.GetIndexer(), widgetsResource).List(labels.Everything())
	if err != nil {
		return err
	}
	for _, m := range all {
		fmt.Println(m.Name, "is of", m.Labels["app"])
	}
	return nil
}
