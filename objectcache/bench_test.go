package objectcache_test

import (
	"fmt"
	"runtime"

	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"

	"github.com/rvinformer/informer/internal/leaf/wire"
	"github.com/rvinformer/informer/internal/testkit/samples"
	"github.com/rvinformer/informer/objectcache"
)

var byNamespaceOnly = cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc}

// liveBytes is the memory in use.
func liveBytes() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

func fillPods(b testing.TB, store cache.Indexer, n int) {
	cluster := samples.Cluster{Seed: 1}
	for _, pod := range cluster.Pods(0, n, 0) {
		require.NoError(b, store.Add(pod))
	}
}

// BenchmarkBytesPerObject reports the live bytes of each object, all included.
func BenchmarkBytesPerObject(b *testing.B) {
	const n = 20_000
	cluster := samples.Cluster{Seed: 1}
	pod := func(i, revision int) apiruntime.Object { return cluster.Pod(i, revision) }
	release := func(i, revision int) apiruntime.Object { return cluster.Release(i, revision) }
	for _, kind := range []struct {
		name    string
		example apiruntime.Object
		object  func(i, revision int) apiruntime.Object
	}{{"pod", &corev1.Pod{}, pod}, {"custom", nil, release}} {
		b.Run(kind.name, func(b *testing.B) {
			for b.Loop() {
				before := liveBytes()
				s := objectcache.NewStore(kind.example, byNamespaceOnly, objectcache.StoreOptions{HotBytes: -1})
				for i := range n {
					require.NoError(b, s.Add(kind.object(i, 0)))
				}
				b.ReportMetric(float64(liveBytes()-before)/n, "B/object")
				b.ReportMetric(float64(s.SizeBytes())/n, "size-B/object")
				for revision := 1; revision <= 10; revision++ {
					for i := range n {
						i = i * 7919 % n
						require.NoError(b, s.Update(kind.object(i, revision)))
					}
				}
				b.ReportMetric(float64(liveBytes()-before)/n, "B/object-updated")
				b.ReportMetric(float64(s.SizeBytes())/n, "size-B/object-updated")
				runtime.KeepAlive(s)
			}
		})
	}
}

// BenchmarkGet reads objects of a Go type, in protobuf and, as custom resources, in JSON, beside
// copying them.
func BenchmarkGet(b *testing.B) {
	cluster := samples.Cluster{Seed: 1}
	for _, kind := range []struct {
		name    string
		example apiruntime.Object
		object  func(i int) apiruntime.Object
	}{
		{"pod", &corev1.Pod{}, func(i int) apiruntime.Object { return cluster.Pod(i, 0) }},
		{"custom", &samples.Workload{}, func(i int) apiruntime.Object { return cluster.Workload(i, 0) }},
	} {
		b.Run(kind.name, func(b *testing.B) { benchmarkGet(b, kind.example, kind.object) })
	}
}

func benchmarkGet(b *testing.B, example apiruntime.Object, object func(i int) apiruntime.Object) {
	const n = 5000
	keys, objects := make([]string, n), make([]apiruntime.Object, 100)
	s := objectcache.NewStore(example, byNamespaceOnly, objectcache.StoreOptions{})
	for i := range n {
		obj := object(i)
		objects[i%len(objects)] = obj
		key, err := cache.MetaNamespaceKeyFunc(obj)
		require.NoError(b, err)
		keys[i] = key
		require.NoError(b, s.Add(obj))
	}
	b.Run("DeepCopy", func(b *testing.B) {
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			_ = objects[i%len(objects)].DeepCopyObject()
		}
	})
	for name, of := range map[string]int{"cold": n, "hot": 100} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				_, exists, err := s.GetByKey(keys[i*7919%of])
				if !exists || err != nil {
					b.Fatal(exists, err)
				}
			}
		})
	}
}

func BenchmarkList(b *testing.B) {
	const n = 5000
	for name, store := range map[string]cache.Indexer{
		"client-go":   cache.NewIndexer(cache.DeletionHandlingMetaNamespaceKeyFunc, cache.Indexers{}),
		"objectcache": objectcache.NewStore(&corev1.Pod{}, nil, objectcache.StoreOptions{}),
	} {
		fillPods(b, store, n)
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				require.Len(b, store.List(), n)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/object")
		})
	}
}

// BenchmarkListMatching selects 1 object in 100 by a selector that was not used before.
func BenchmarkListMatching(b *testing.B) {
	const n = 100_000
	selector := func(i int) labels.Selector {
		s, err := labels.Parse(fmt.Sprintf("team=team-%02d", i%samples.Teams))
		require.NoError(b, err)
		return s
	}
	b.Run("client-go", func(b *testing.B) {
		store := cache.NewIndexer(cache.DeletionHandlingMetaNamespaceKeyFunc, cache.Indexers{})
		fillPods(b, store, n)
		found := 0
		for i := 0; b.Loop(); i++ {
			found = 0
			require.NoError(b, cache.ListAll(store, selector(i), func(interface{}) { found++ }))
		}
		b.ReportMetric(float64(found), "found")
	})
	b.Run("objectcache", func(b *testing.B) {
		store := objectcache.NewStore(&corev1.Pod{}, nil, objectcache.StoreOptions{})
		fillPods(b, store, n)
		found := 0
		for i := 0; b.Loop(); i++ {
			objects, err := objectcache.ListMatching(store, "", selector(i))
			require.NoError(b, err)
			found = len(objects)
		}
		b.ReportMetric(float64(found), "found")
	})
}

// BenchmarkFirstList reads lists off the wire into empty stores.
func BenchmarkFirstList(b *testing.B) {
	const n = 5000
	for _, kind := range []struct {
		name     string
		format   wire.Format
		example  apiruntime.Object
		indexers cache.Indexers
	}{
		{"pod", wire.Protobuf, &corev1.Pod{}, byNamespaceOnly},
		{"pod-indexed", wire.Protobuf, &corev1.Pod{}, cache.Indexers{"version": byVersion}},
		{"custom", wire.JSON, nil, byNamespaceOnly},
	} {
		b.Run(kind.name, func(b *testing.B) {
			text := body(b, kind.format, n, 0)
			b.ReportAllocs()
			for b.Loop() {
				s := objectcache.NewStore(kind.example, kind.indexers, objectcache.StoreOptions{})
				require.Equal(b, n, list(b, s, kind.format, text, kind.example))
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/object")
		})
	}
}

// BenchmarkUnchangedList reads lists off the wire that show what the stores have.
func BenchmarkUnchangedList(b *testing.B) {
	const n = 5000
	for _, kind := range []struct {
		name    string
		format  wire.Format
		example apiruntime.Object
	}{{"pod", wire.Protobuf, &corev1.Pod{}}, {"custom", wire.JSON, nil}} {
		b.Run(kind.name, func(b *testing.B) {
			text := body(b, kind.format, n, 0)
			s := objectcache.NewStore(kind.example, byNamespaceOnly, objectcache.StoreOptions{})
			list(b, s, kind.format, text, kind.example)
			b.ReportAllocs()
			for b.Loop() {
				require.Zero(b, list(b, s, kind.format, text, kind.example))
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/object")
		})
	}
}
