package objectcache_test

import (
	"context"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/objectcache"
)

// The following is a block of docs/coming-from-client-go.md, with what it takes for granted.
func snippetOfAListWatch(ctx context.Context, running *sync.WaitGroup, config *rest.Config, handler cache.ResourceEventHandler) error {
	lists, err := informer.NewDynamicListerWatcherFactory(config)
	if err != nil {
		return err
	}
	lw := informer.NewFilteredListerWatcher(lists.ForResource("", pods), func(o *metav1.ListOptions) {
		o.FieldSelector = "spec.nodeName=node-1"
	})
	i := objectcache.NewSharedIndexInformer(lw, &corev1.Pod{}, 0, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
	if _, err := i.AddEventHandler(handler); err != nil {
		return err
	}
	running.Go(func() { i.RunWithContext(ctx) })
	if !cache.WaitForCacheSync(ctx.Done(), i.HasSynced) {
		return context.Cause(ctx)
	}
	pod, exists, err := i.GetStore().GetByKey("default/web")
	_, _ = pod, exists
	return err
}

var _ = snippetOfAListWatch
