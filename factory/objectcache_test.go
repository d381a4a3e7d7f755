package factory_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/factory"
	"github.com/rvinformer/informer/informertest"
	"github.com/rvinformer/informer/objectcache"
)

// A registry gives out informers of an object cache as any others, with their status.
func TestObjectCacheInARegistry(t *testing.T) {
	bubble(t, informertest.Options{Wrap: forbidden("configmaps")}, func(t *testing.T, s *informertest.Server) {
		create(t, s, pods, "one")
		f := factory.New()
		defer f.Shutdown()
		lws, err := informer.NewDynamicListerWatcherFactory(s.Config())
		require.NoError(t, err)
		acquire := func(opts factory.InformerOptions) *factory.Lease[cache.SharedIndexInformer] {
			lease, err := f.Acquire(pods, opts, func() cache.SharedIndexInformer {
				return objectcache.NewSharedIndexInformer(lws.ForResource(opts.Namespace, pods), &corev1.Pod{}, 0, cache.Indexers{})
			})
			require.NoError(t, err)
			require.NoError(t, lease.Start())
			return lease
		}
		first, second := acquire(factory.InformerOptions{}), acquire(factory.InformerOptions{})
		require.True(t, f.WaitForCacheSync(t.Context().Done()))
		synctest.Wait() // the watch begins after that
		require.Same(t, first.Informer, second.Informer)
		require.Equal(t, informer.PhaseWatching, first.Status().Phase)
		require.Equal(t, 2, first.Status().Leases)
		require.Len(t, first.Informer.GetStore().ListKeys(), 1)

		refused, err := f.Acquire(configMaps, factory.InformerOptions{}, func() cache.SharedIndexInformer {
			return objectcache.NewSharedIndexInformer(lws.ForResource("", configMaps), &corev1.ConfigMap{}, 0, cache.Indexers{})
		})
		require.NoError(t, err)
		require.NoError(t, refused.Start())
		time.Sleep(time.Minute)
		require.Equal(t, informer.PhaseBackoff, refused.Status().Phase)
		require.Equal(t, factory.ErrorForbidden, refused.Status().ErrorClass())

		first.Release()
		require.False(t, second.Informer.IsStopped())
		<-second.Release()
		require.True(t, second.Informer.IsStopped())
	})
}
