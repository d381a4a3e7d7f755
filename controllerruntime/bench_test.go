package controllerruntime_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/rvinformer/informer/controllerruntime"
	"github.com/rvinformer/informer/informertest"
	"github.com/rvinformer/informer/internal/testkit/samples"
)

// BenchmarkRead reads pods of 3.4 KB, 500 in each of 20 namespaces, from both caches.
func BenchmarkRead(b *testing.B) {
	const pods, perNamespace = 10_000, 500
	server := informertest.NewServer(informertest.Options{})
	defer server.Close()
	cluster := samples.Cluster{Seed: 1}
	require.NoError(b, server.Load(podResource, func(yield func(runtime.Object) bool) {
		for i := range pods {
			if !yield(cluster.Pod(i, 0)) {
				return
			}
		}
	}))
	keys := make([]client.ObjectKey, pods)
	for i := range keys {
		keys[i] = client.ObjectKeyFromObject(cluster.Pod(i, 0))
	}
	for name, newCache := range map[string]cache.NewCacheFunc{"controller-runtime": cache.New, "encoded": controllerruntime.NewCache} {
		ctx, cancel := context.WithCancel(b.Context())
		c, err := newCache(server.Config(), cache.Options{})
		require.NoError(b, err)
		ended := make(chan error, 1)
		go func() { ended <- c.Start(ctx) }()
		_, err = c.GetInformer(ctx, &corev1.Pod{})
		require.NoError(b, err)
		require.True(b, c.WaitForCacheSync(ctx))

		get := func(b *testing.B, of int) {
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				var p corev1.Pod
				if err := c.Get(ctx, keys[i%of], &p); err != nil {
					b.Fatal(err)
				}
			}
		}
		list := func(b *testing.B, n int, opts ...client.ListOption) {
			b.ReportAllocs()
			for b.Loop() {
				var all corev1.PodList
				if err := c.List(ctx, &all, opts...); err != nil || n > 0 && len(all.Items) != n || len(all.Items) == 0 {
					b.Fatal(len(all.Items), err)
				}
			}
		}
		b.Run("get-1-of-100/impl="+name, func(b *testing.B) { get(b, 100) })
		b.Run("get-1-of-10000/impl="+name, func(b *testing.B) { get(b, pods) })
		b.Run("list-500-of-namespace/impl="+name, func(b *testing.B) {
			list(b, perNamespace, client.InNamespace(samples.Namespace(3*perNamespace)))
		})
		b.Run("list-1-of-100-by-label/impl="+name, func(b *testing.B) {
			list(b, 0, client.MatchingLabels{"team": cluster.Pod(7, 0).Labels["team"]})
		})
		cancel()
		require.NoError(b, <-ended)
	}
}
