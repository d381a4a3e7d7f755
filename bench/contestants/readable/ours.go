package main

import (
	"context"
	"fmt"
	"os"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/bench/race"
	"github.com/rvinformer/informer/internal/testkit/samples"
	"github.com/rvinformer/informer/objectcache"
)

func ourStore(example runtime.Object) func() cache.Indexer {
	return func() cache.Indexer {
		return objectcache.NewStore(example, indexers(), objectcache.StoreOptions{})
	}
}

func match(of cache.Indexer, selector labels.Selector) (int, error) {
	found, err := objectcache.ListMatching(of.(*objectcache.Store), "", selector)
	return len(found), err
}

func ourTyped(ctx context.Context, t *race.Target, loss *race.Loss) (*race.Running, error) {
	return ours(ctx, t, loss, corev1.SchemeGroupVersion.WithResource("pods"), &corev1.Pod{})
}

func ourUnstructured(ctx context.Context, t *race.Target, loss *race.Loss) (*race.Running, error) {
	return ours(ctx, t, loss, samples.ReleaseResource, exampleRelease())
}

// ours runs an informer of package objectcache.
func ours(ctx context.Context, t *race.Target, loss *race.Loss, resource schema.GroupVersionResource, example runtime.Object) (*race.Running, error) {
	config := loss.Config(t)
	factory, err := informer.NewDynamicListerWatcherFactory(config)
	if err != nil {
		return nil, err
	}
	opts := objectcache.Options{Indexers: indexers(), ErrorHandler: func(_ *informer.Reflector, err error) {
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
	}}
	i := objectcache.NewSharedIndexInformerWithOptions(factory.ForResource("", resource), example, opts)
	running := race.Run(ctx, i)
	running.Decoded = i.Store().Decoded
	return running, nil
}
