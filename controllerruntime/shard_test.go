package controllerruntime_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/controllerruntime"
	"github.com/rvinformer/informer/objectcache"
)

// A cache of a shard reads the objects of the shard, and finds no others.
func TestReadsOfAShard(t *testing.T) {
	half := informer.Shard{}.Split(2)[0]
	for name, own := range map[string]controllerruntime.Options{
		"all kinds":    {Objects: objectcache.Options{Shard: half}},
		"one kind":     {ByObject: map[client.Object]objectcache.Options{&corev1.Pod{}: {Shard: half}}},
		"kept decoded": {Objects: objectcache.Options{Shard: half, Decoded: true}},
	} {
		bubbleRun(t, name, func(t *testing.T, b *bench) {
			b.pods("one", 20)
			b.start(cache.Options{}, own)
			all, err := b.server.List(podResource, "")
			require.NoError(t, err)
			found := 0
			for _, pod := range all {
				err := b.cache.Get(t.Context(), client.ObjectKeyFromObject(pod), &corev1.Pod{})
				if half.Includes(pod.GetNamespace(), string(pod.GetUID())) {
					require.NoError(t, err)
					found++
				} else {
					require.True(t, apierrors.IsNotFound(err), "%v", err)
				}
			}
			var list corev1.PodList
			require.NoError(t, b.cache.List(t.Context(), &list))
			require.Len(t, list.Items, found)
			require.Greater(t, found, 0)
			require.Less(t, found, 20)
		})
	}
}
