package typed_test

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/rvinformer/informer/factory"
	//lint:ignore ST1019 the page uses both names
	"github.com/rvinformer/informer/factory/typed"
	informers "github.com/rvinformer/informer/factory/typed"
	"github.com/rvinformer/informer/objectcache"
)

// The following are blocks of docs/coming-from-client-go.md, with what they take for granted.

func snippetOfAFactory(ctx context.Context, client kubernetes.Interface, config *rest.Config, handler cache.ResourceEventHandler) error {
	f := informers.NewSharedInformerFactoryWithOptions(client, 10*time.Minute,
		informers.WithRESTConfig(config)) // lists are read object by object; without it, no memory is saved
	pods := f.Core().V1().Pods()
	if _, err := pods.Informer().AddEventHandler(handler); err != nil {
		return err
	}
	f.StartWithContext(ctx)
	if err := f.WaitForCacheSyncWithContext(ctx).AsError(); err != nil {
		return err
	}
	pod, err := pods.Lister().Pods("default").Get("web")
	_ = pod
	return err
}

func snippetOfOptions(client kubernetes.Interface, config *rest.Config, registry *factory.Factory) *typed.Factory {
	f := typed.New(client, 0,
		typed.WithRESTConfig(config), // lists are read object by object
		typed.WithFactory(registry),  // informers are shared with others
		typed.WithCluster("east"))    // of several clusters
	return f
}

func snippetOfAnObjectCache(config *rest.Config) (*corev1.Pod, error) {
	f := typed.New(nil, 10*time.Minute,
		typed.WithRESTConfig(config),
		typed.WithObjectCache(objectcache.Options{Prune: []string{"metadata.managedFields"}}),
		typed.WithObjectCache(objectcache.Options{Keep: []string{"metadata.labels", "spec.nodeName"}}, &corev1.Pod{}))
	pods := f.Core().V1().Pods()
	pod, err := pods.Lister().Pods("default").Get("web") // decoded for this call: it may be changed
	return pod, err
}

var (
	_ = snippetOfAnObjectCache
	_ = snippetOfAFactory
	_ = snippetOfOptions
)
