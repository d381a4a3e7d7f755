//go:build unix

package protoobject_test

import (
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rvinformer/informer/internal/leaf/protoobject"
	"github.com/rvinformer/informer/internal/testkit/samples"
)

// BenchmarkUnmarshal reports CPU time, which a busy machine does not change as much as its time.
func BenchmarkUnmarshal(b *testing.B) {
	cpu := func() time.Duration {
		var usage syscall.Rusage
		require.NoError(b, syscall.Getrusage(syscall.RUSAGE_SELF, &usage))
		return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
	}
	var pool protoobject.Pool
	run := func(name string, messages [][]byte, make func() protoobject.Message, decode func(message []byte, into protoobject.Message) error) {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			began := cpu()
			for n := 0; b.Loop(); n++ {
				if err := decode(messages[n%len(messages)], make()); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(cpu()-began)/float64(b.N), "cpu-ns/op")
		})
	}
	newPod := func() protoobject.Message { return &corev1.Pod{} }
	newMetadata := func() protoobject.Message { return &metav1.PartialObjectMetadata{} }
	var listed, listedMetadata [][]byte // pods as they are next to each other in a list
	for _, pod := range (samples.Cluster{Seed: 1}).Pods(0, 2000, 1) {
		listed = append(listed, encoded(b, pod))
		listedMetadata = append(listedMetadata, encoded(b, &metav1.PartialObjectMetadata{ObjectMeta: pod.ObjectMeta}))
	}
	for _, of := range []struct {
		name     string
		messages [][]byte
		make     func() protoobject.Message
	}{
		{"metadata", [][]byte{encoded(b, &metav1.PartialObjectMetadata{ObjectMeta: pod().ObjectMeta})}, newMetadata},
		{"pod", [][]byte{encoded(b, pod())}, newPod},
		{"metadatas", listedMetadata, newMetadata},
		{"pods", listed, newPod},
	} {
		run(of.name+"/impl=own", of.messages, of.make, func(message []byte, into protoobject.Message) error {
			return pool.Unmarshal(message, known, into)
		})
		run(of.name+"/impl=generated", of.messages, of.make, func(message []byte, into protoobject.Message) error { return into.Unmarshal(message) })
	}
}

// BenchmarkRetained reports the heap that an object takes which is kept.
func BenchmarkRetained(b *testing.B) {
	const n = 20_000
	for _, of := range []struct {
		name string
		make func() protoobject.Message
	}{
		{"metadata", func() protoobject.Message { return &metav1.PartialObjectMetadata{} }},
		{"pod", func() protoobject.Message { return &corev1.Pod{} }},
	} {
		for _, own := range []bool{true, false} {
			name := of.name + "/impl=generated"
			if own {
				name = of.name + "/impl=own"
			}
			b.Run(name, func(b *testing.B) {
				for b.Loop() {
					kept := make([]protoobject.Message, 0, n)
					var pool protoobject.Pool
					before := heap()
					for _, pod := range (samples.Cluster{Seed: 1}).Pods(0, n, 1) {
						message, into := encoded(b, pod), of.make()
						var err error
						if own {
							err = pool.Unmarshal(message, protoobject.Known{}, into)
						} else {
							err = into.Unmarshal(message)
						}
						require.NoError(b, err)
						kept = append(kept, into)
					}
					b.ReportMetric(float64(heap()-before)/n, "B/object")
					runtime.KeepAlive(kept)
				}
			})
		}
	}
}

func heap() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
