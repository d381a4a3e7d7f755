package controllerruntime_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/rvinformer/informer/controllerruntime"
	"github.com/rvinformer/informer/objectcache"
)

var keptDecoded = controllerruntime.Options{Objects: objectcache.Options{Decoded: true}}

func TestDecodedCacheAnswersEachRead(t *testing.T) {
	bubble(t, func(t *testing.T, b *bench) {
		b.pods("one", 100)
		b.pods("two", 30)
		b.pods("three", 5)
		b.make(inTwo, keptDecoded)
		require.NoError(t, b.cache.IndexField(t.Context(), &corev1.Pod{}, "spec.nodeName", nodeName))
		require.NoError(t, b.cache.IndexField(t.Context(), &corev1.Pod{}, "n", func(obj client.Object) []string { return []string{obj.GetLabels()["n"]} }))
		b.run()
		for name, list := range podLists {
			var pods corev1.PodList
			require.NoError(t, b.cache.List(t.Context(), &pods, list.opts...), name)
			require.Len(t, pods.Items, list.n, name)
			require.NotNil(t, pods.Items, name)
			for _, p := range pods.Items {
				require.Equal(t, podKind, p.GroupVersionKind(), name)
			}
		}
		var p corev1.Pod
		err := b.cache.Get(t.Context(), client.ObjectKey{Namespace: "one", Name: "missing"}, &p)
		require.True(t, apierrors.IsNotFound(err), "%v", err)
		for _, fields := range []client.MatchingFields{{"a": "b"}, {"n": "7", "spec.none": "b"}} {
			require.ErrorContains(t, b.cache.List(t.Context(), &corev1.PodList{}, fields), "does not exist")
		}
	})
}

func TestUnsafeReadersOfADecodedCacheShareObjects(t *testing.T) {
	bubble(t, func(t *testing.T, b *bench) {
		b.pods("one", 3)
		b.start(cache.Options{}, controllerruntime.Options{
			ByObject: map[client.Object]objectcache.Options{&corev1.Pod{}: {Decoded: true}},
		})
		var first, second, own corev1.Pod
		key := client.ObjectKey{Namespace: "one", Name: "pod-1"}
		require.NoError(t, b.cache.Get(t.Context(), key, &first, client.UnsafeDisableDeepCopy))
		first.Labels["shared"] = "yes"
		require.NoError(t, b.cache.Get(t.Context(), key, &second, client.UnsafeDisableDeepCopy))
		require.Equal(t, "yes", second.Labels["shared"])
		require.Equal(t, podKind, second.GroupVersionKind())
		var listed corev1.PodList
		require.NoError(t, b.cache.List(t.Context(), &listed, client.UnsafeDisableDeepCopy, client.MatchingLabels{"name": "pod-1"}))
		require.Equal(t, "yes", listed.Items[0].Labels["shared"])
		require.Equal(t, podKind, listed.Items[0].GroupVersionKind())

		require.NoError(t, b.cache.Get(t.Context(), key, &own))
		own.Labels["shared"] = "no"
		require.Equal(t, "yes", second.Labels["shared"])
		i, err := b.cache.GetInformer(t.Context(), &corev1.Pod{})
		require.NoError(t, err)
		kept, _, err := i.(*objectcache.Informer).GetIndexer().GetByKey("one/pod-1")
		require.NoError(t, err)
		require.True(t, kept.(*corev1.Pod).GroupVersionKind().Empty(), "readers set the kind of their own copy")
	})
}

// A Transform may make another type of an object. A read of it fails, and does not panic.
func TestReadOfAnotherTypeFails(t *testing.T) {
	toMetadata := func(obj any) (any, error) {
		p, ok := obj.(*corev1.Pod)
		if !ok {
			return nil, errors.New("no pod")
		}
		return &metav1.PartialObjectMetadata{ObjectMeta: p.ObjectMeta}, nil
	}
	for name, own := range map[string]controllerruntime.Options{"encoded": {}, "decoded": keptDecoded} {
		bubbleRun(t, name, func(t *testing.T, b *bench) {
			b.pods("one", 1)
			b.start(cache.Options{DefaultTransform: toMetadata}, own)
			key := client.ObjectKey{Namespace: "one", Name: "pod-0"}
			shared := client.UnsafeDisableDeepCopy
			require.ErrorContains(t, b.cache.Get(t.Context(), key, &corev1.Pod{}, shared), "cache had type *v1.PartialObjectMetadata")
			require.ErrorContains(t, b.cache.List(t.Context(), &corev1.PodList{}, shared), "cache had type *v1.PartialObjectMetadata")
			require.Error(t, b.cache.Get(t.Context(), key, &corev1.Pod{}))
			require.Error(t, b.cache.List(t.Context(), &corev1.PodList{}))
		})
	}
}
