package controllerruntime_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
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
		for name, list := range map[string]struct {
			opts []client.ListOption
			n    int
		}{
			"all":                          {nil, 130},
			"namespace":                    {[]client.ListOption{client.InNamespace("two")}, 30},
			"labels":                       {[]client.ListOption{client.MatchingLabels{"team": "blue"}}, 13},
			"labels in a namespace":        {[]client.ListOption{client.MatchingLabels{"team": "blue"}, client.InNamespace("one")}, 10},
			"index":                        {[]client.ListOption{client.MatchingFields{"spec.nodeName": "node-two"}}, 30},
			"two indexes":                  {[]client.ListOption{client.MatchingFields{"spec.nodeName": "node-two", "n": "7"}}, 1},
			"two indexes, no object":       {[]client.ListOption{client.MatchingFields{"spec.nodeName": "node-two", "n": "77"}}, 0},
			"index in a namespace":         {[]client.ListOption{client.MatchingFields{"n": "7"}, client.InNamespace("one")}, 1},
			"index, labels, namespace":     {[]client.ListOption{client.MatchingFields{"n": "20"}, client.MatchingLabels{"team": "blue"}, client.InNamespace("two")}, 1},
			"limit":                        {[]client.ListOption{client.Limit(7)}, 7},
			"limit beyond one namespace":   {[]client.ListOption{client.Limit(103)}, 103},
			"limit of objects that match":  {[]client.ListOption{client.Limit(3), client.MatchingLabels{"team": "blue"}}, 3},
			"nothing":                      {[]client.ListOption{client.MatchingLabels{"team": "red"}}, 0},
			"limit of more than there are": {[]client.ListOption{client.Limit(99), client.InNamespace("two")}, 30},
		} {
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

func TestDecodedCacheReadsEachForm(t *testing.T) {
	bubble(t, func(t *testing.T, b *bench) {
		b.pods("one", 1)
		b.start(cache.Options{}, keptDecoded)
		key := client.ObjectKey{Namespace: "one", Name: "pod-0"}
		loose := &unstructured.Unstructured{}
		loose.SetGroupVersionKind(podKind)
		metadata := &metav1.PartialObjectMetadata{}
		metadata.SetGroupVersionKind(podKind)
		for range 2 {
			for _, obj := range []client.Object{&corev1.Pod{Spec: corev1.PodSpec{Hostname: "of before"}}, loose.DeepCopy(), metadata.DeepCopy()} {
				require.NoError(t, b.cache.Get(t.Context(), key, obj))
				require.Equal(t, podKind, obj.GetObjectKind().GroupVersionKind())
				require.Equal(t, map[string]string{"name": "pod-0", "n": "0", "team": "blue"}, obj.GetLabels())
				obj.GetLabels()["name"] = "changed by its reader"
				if p, typed := obj.(*corev1.Pod); typed {
					require.Empty(t, p.Spec.Hostname)
				}
			}
		}
		lists := []client.ObjectList{&corev1.PodList{}, &unstructured.UnstructuredList{}, &metav1.PartialObjectMetadataList{}}
		for _, list := range lists {
			list.GetObjectKind().SetGroupVersionKind(podKind.GroupVersion().WithKind("PodList"))
			require.NoError(t, b.cache.List(t.Context(), list))
		}
		require.Equal(t, "pod-0", lists[0].(*corev1.PodList).Items[0].Labels["name"])
		require.Equal(t, "pod-0", lists[1].(*unstructured.UnstructuredList).Items[0].GetLabels()["name"])
		require.Equal(t, "pod-0", lists[2].(*metav1.PartialObjectMetadataList).Items[0].Labels["name"])
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
