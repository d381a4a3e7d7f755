package typedjson_test

import (
	"encoding/json"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/rvinformer/informer/internal/leaf/typedjson"
	"github.com/rvinformer/informer/internal/testkit/samples"
)

// BenchmarkKept tells what a decoded custom resource keeps, among others of its kind.
func BenchmarkKept(b *testing.B) {
	texts := make([][]byte, 3000)
	for i := range texts {
		var err error
		texts[i], err = json.Marshal((samples.Cluster{Seed: 1}).Workload(i, 0))
		require.NoError(b, err)
	}
	heap := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	for b.Loop() {
		before := heap()
		kept := make([]samples.Workload, len(texts))
		for i, text := range texts {
			require.NoError(b, typedjson.Decode(text, &kept[i]))
		}
		b.ReportMetric(float64(heap()-before)/float64(len(kept)), "B/object")
		runtime.KeepAlive(kept)
	}
}

// BenchmarkDecode decodes custom resources one after the other, as an informer does, beside
// apimachinery, and beside copying what was decoded.
func BenchmarkDecode(b *testing.B) {
	texts := make([][]byte, 500)
	for i := range texts {
		var err error
		texts[i], err = json.Marshal((samples.Cluster{Seed: 1}).Workload(i, 0))
		require.NoError(b, err)
	}
	var decoded samples.Workload
	require.NoError(b, utiljson.Unmarshal(texts[0], &decoded))
	for name, decode := range map[string]func(text []byte) error{
		"typedjson":    func(text []byte) error { return typedjson.Decode(text, &samples.Workload{}) },
		"apimachinery": func(text []byte) error { return utiljson.Unmarshal(text, &samples.Workload{}) },
		"deepcopy":     func([]byte) error { decoded.DeepCopyObject(); return nil },
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			size := 0
			for i := range b.N {
				text := texts[i%len(texts)]
				if err := decode(text); err != nil {
					b.Fatal(err)
				}
				size += len(text)
			}
			b.SetBytes(int64(size / b.N))
		})
	}
}
