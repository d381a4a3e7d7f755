//go:build unix

package field_test

import (
	"encoding/json"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/rvinformer/informer/internal/leaf/field"
)

// bench reports the CPU time of an operation, which a busy machine does not change as much as its
// time.
func bench(b *testing.B, once func()) {
	cpu := func() time.Duration {
		var usage syscall.Rusage
		require.NoError(b, syscall.Getrusage(syscall.RUSAGE_SELF, &usage))
		return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
	}
	b.ReportAllocs()
	began := cpu()
	for b.Loop() {
		once()
	}
	b.ReportMetric(float64(cpu()-began)/float64(b.N), "cpu-ns/op")
}

var benchPaths = []string{"metadata.name", "metadata.labels.tier", "spec.nodeName", "status.phase", "status.startTime"}

func BenchmarkJSON(b *testing.B) {
	text, err := json.Marshal(pod())
	require.NoError(b, err)
	b.Logf("%d bytes", len(text))
	for _, path := range benchPaths {
		b.Run("Field="+path, func(b *testing.B) { bench(b, func() { field.InJSON(text, path) }) })
	}
	b.Run("Labels", func(b *testing.B) { bench(b, func() { field.Labels(text, false) }) })
	b.Run("Owners", func(b *testing.B) { bench(b, func() { field.Owners(text, false) }) })
	b.Run("decode=metadata", func(b *testing.B) {
		bench(b, func() { require.NoError(b, utiljson.Unmarshal(text, &metav1.PartialObjectMetadata{})) })
	})
	b.Run("decode=map", func(b *testing.B) {
		bench(b, func() {
			var object map[string]interface{}
			require.NoError(b, utiljson.Unmarshal(text, &object))
		})
	})
	b.Run("decode=Pod", func(b *testing.B) {
		bench(b, func() { require.NoError(b, utiljson.Unmarshal(text, &corev1.Pod{})) })
	})
}

func BenchmarkProtobuf(b *testing.B) {
	encoded, err := pod().Marshal()
	require.NoError(b, err)
	b.Logf("%d bytes", len(encoded))
	typed := field.Of(podType)
	for _, path := range benchPaths {
		b.Run("Field="+path, func(b *testing.B) { bench(b, func() { typed.InProtobuf(encoded, path) }) })
	}
	b.Run("Labels", func(b *testing.B) { bench(b, func() { field.Labels(encoded, true) }) })
	b.Run("Owners", func(b *testing.B) { bench(b, func() { field.Owners(encoded, true) }) })
	b.Run("decode=metadata", func(b *testing.B) {
		bench(b, func() { require.NoError(b, (&metav1.PartialObjectMetadata{}).Unmarshal(encoded)) })
	})
	b.Run("decode=Pod", func(b *testing.B) {
		bench(b, func() { require.NoError(b, (&corev1.Pod{}).Unmarshal(encoded)) })
	})
}
