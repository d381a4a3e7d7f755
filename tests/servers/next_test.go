//go:build clientgo038

package servers_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/sharding"
	"k8s.io/client-go/tools/cache"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/informertest"
	"github.com/rvinformer/informer/objectcache"
	"github.com/rvinformer/informer/tests/harness"
)

// A ListerWatcher of the library that client-go divides is read off the wire, and not decoded: a
// RawObject can be had of nothing else.
func TestShardedListWatchIsSeenThrough(t *testing.T) {
	for _, divides := range []bool{false, true} {
		harness.BubbleRun(t, fmt.Sprint("the server divides: ", divides), informertest.Options{ShardedListAndWatch: divides}, func(t *testing.T, w *harness.World) {
			w.CreatePods(harness.Keys(20)...)
			factory, err := informer.NewDynamicListerWatcherFactory(w.Config())
			require.NoError(t, err)
			shard := informer.Shard{}.Split(2)[0]
			selector, err := sharding.NewShardRangeSelector(string(informer.ShardByUID), 0, 2)
			require.NoError(t, err)
			require.Equal(t, shard.String(), selector.String())
			lw := cache.NewShardedListWatch(factory.ForResource("", harness.Pods), selector)
			var r harness.Recorder
			i := informer.NewResourceVersionInformer("pods", informer.InformerConfig{Handler: &r, ListerWatcher: lw, ExampleObject: &informer.RawObject{}})
			w.Run(i)
			cached := objectcache.NewSharedIndexInformerWithOptions(lw, &corev1.Pod{}, objectcache.Options{AuditEvery: time.Hour})
			defer harness.Start(cached.RunWithContext)()
			shared := informer.NewSharedResourceVersionInformer("shared", informer.InformerConfig{ListerWatcher: lw})
			var second harness.Recorder
			_, err = shared.AddEventHandler(&second)
			require.NoError(t, err)
			defer harness.Start(shared.RunWithContext)()
			harness.Sleep(time.Minute)
			want := map[string]string{}
			all, err := w.List(harness.Pods, "")
			require.NoError(t, err)
			for _, pod := range all {
				if shard.Includes(pod.GetNamespace(), string(pod.GetUID())) {
					want[pod.GetNamespace()+"/"+pod.GetName()] = pod.GetResourceVersion()
				}
			}
			require.Equal(t, want, r.State())
			require.Equal(t, want, second.State())
			require.Len(t, cached.GetStore().ListKeys(), len(want))
			require.Equal(t, shard, i.Status().Shard)
			require.Equal(t, shard, cached.Status().Shard)
			require.Panics(t, func() {
				objectcache.NewSharedIndexInformerWithOptions(lw, &corev1.Pod{}, objectcache.Options{Shard: informer.Shard{}.Split(2)[1]})
			}, "two shards")
		})
	}
}
