package objectcache_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"

	"github.com/rvinformer/informer/internal/testkit/samples"
	"github.com/rvinformer/informer/objectcache"
)

var hotForms = map[string]func(n int) runtime.Object{
	"typed": func(n int) runtime.Object { return samples.Cluster{Seed: 1}.Pod(n, 0) },
	"small": func(n int) runtime.Object {
		pod := podOf("a", samples.Cluster{Seed: 1}.Pod(n, 0).Name, "u", "1")
		pod.Labels = map[string]string{"name": pod.Name}
		return pod
	},
	"unstructured": func(n int) runtime.Object {
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(samples.Cluster{Seed: 1}.Pod(n, 0))
		if err != nil {
			panic(err)
		}
		return &unstructured.Unstructured{Object: content}
	},
	"custom": func(n int) runtime.Object { return samples.Cluster{Seed: 1}.Release(n, 0) },
	"metadata": func(n int) runtime.Object {
		pod := samples.Cluster{Seed: 1}.Pod(n, 0)
		return &metav1.PartialObjectMetadata{ObjectMeta: pod.ObjectMeta}
	},
	"configuration": func(n int) runtime.Object {
		pod := samples.Cluster{Seed: 1}.Pod(n, 0)
		return &corev1.ConfigMap{ObjectMeta: pod.ObjectMeta, Data: map[string]string{"text": pod.String()}}
	},
}

// HotBytes is what decoded objects take, within the bound that its documentation says.
func TestHotBytesAreWhatObjectsTake(t *testing.T) {
	const objects = 400
	for name, object := range hotForms {
		t.Run(name, func(t *testing.T) {
			s := objectcache.NewStore(object(0), nil, objectcache.StoreOptions{HotBytes: 1 << 40})
			keys := make([]string, objects)
			for n := range keys {
				obj := object(n)
				keys[n], _ = cache.MetaNamespaceKeyFunc(obj)
				require.NoError(t, s.Add(obj))
			}
			before, counted := liveBytes(), s.SizeBytes()
			for _, key := range keys {
				_, exists, err := s.GetByKey(key)
				require.True(t, exists && err == nil, "%v", err)
			}
			counted = s.SizeBytes() - counted
			takes := liveBytes() - before
			ratio := float64(counted) / float64(takes)
			t.Logf("an object counts as %d bytes and takes %d: %.2f", counted/objects, takes/objects, ratio)
			require.InDelta(t, 1, ratio, 0.3)
			require.Equal(t, objects, s.Len())
		})
	}
}

func BenchmarkHotObject(b *testing.B) {
	for _, name := range []string{"typed", "unstructured"} {
		object := hotForms[name]
		b.Run(name, func(b *testing.B) {
			const objects = 500
			s := objectcache.NewStore(object(0), nil, objectcache.StoreOptions{HotBytes: 1 << 40})
			var keys []string
			all := make([]runtime.Object, objects)
			for n := range all {
				all[n] = object(n)
				key, _ := cache.MetaNamespaceKeyFunc(all[n])
				keys = append(keys, key)
			}
			for i := 0; b.Loop(); i++ {
				if i%objects == 0 {
					b.StopTimer()
					for _, obj := range all {
						if err := s.Add(obj); err != nil {
							b.Fatal(err)
						}
					}
					b.StartTimer()
				}
				if _, _, err := s.GetByKey(keys[i%objects]); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
