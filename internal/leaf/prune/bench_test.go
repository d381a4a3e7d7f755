//go:build unix

package prune_test

import (
	"encoding/json"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"
)

func cpuTime(b *testing.B) time.Duration {
	var usage syscall.Rusage
	require.NoError(b, syscall.Getrusage(syscall.RUSAGE_SELF, &usage))
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// So many that no branch predictor knows them by heart.
const benchPods = 500

// bench runs one object per operation. On a busy machine look at cpu-MB/s: per
// second of CPU, not of the clock.
func bench(b *testing.B, encode func(*corev1.Pod) ([]byte, error), once func(object []byte) error) {
	var objects [][]byte
	size := 0
	for i := range benchPods {
		object, err := encode(bigPod(i))
		require.NoError(b, err)
		objects = append(objects, object)
		size += len(object)
	}
	size /= benchPods
	b.SetBytes(int64(size))
	b.ReportAllocs()
	began := cpuTime(b)
	for i := 0; b.Loop(); i++ {
		if err := once(objects[i%benchPods]); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.N)*float64(size)/1e6/(cpuTime(b)-began).Seconds(), "cpu-MB/s")
}

var benchPaths = []struct{ name, keep, drop string }{
	{"nothing", "", "metadata.none metadata.annotations.none"},
	{"managed", "", managedFields},
	{"both", "", managedFields + " " + lastApplied},
	{"allButFew", strings.Join(fewFields, " "), ""},
}

func BenchmarkAppendJSON(b *testing.B) {
	encode := func(pod *corev1.Pod) ([]byte, error) { return json.Marshal(pod) }
	for _, drop := range benchPaths {
		fields := stay(b, strings.Fields(drop.keep), strings.Fields(drop.drop))
		b.Run("drop="+drop.name+"/impl=prune", func(b *testing.B) {
			var dst []byte
			bench(b, encode, func(text []byte) (err error) {
				dst, err = fields.AppendJSON(dst[:0], text)
				return err
			})
		})
		b.Run("drop="+drop.name+"/impl=prune+Decode", func(b *testing.B) {
			var dst []byte
			bench(b, encode, func(text []byte) (err error) {
				if dst, err = fields.AppendJSON(dst[:0], text); err != nil {
					return err
				}
				var u unstructured.Unstructured
				return utiljson.Unmarshal(dst, &u.Object)
			})
		})
		b.Run("drop="+drop.name+"/impl=Decode+Apply", func(b *testing.B) {
			bench(b, encode, func(text []byte) error {
				var u unstructured.Unstructured
				err := utiljson.Unmarshal(text, &u.Object)
				fields.Apply(&u)
				return err
			})
		})
	}
}

func BenchmarkAppendProtobuf(b *testing.B) {
	for _, drop := range benchPaths {
		fields := stay(b, strings.Fields(drop.keep), strings.Fields(drop.drop))
		of := fields.Of(podType)
		b.Run("drop="+drop.name+"/impl=prune", func(b *testing.B) {
			var dst []byte
			bench(b, (*corev1.Pod).Marshal, func(message []byte) (err error) {
				dst, err = of.AppendProtobuf(dst[:0], message)
				return err
			})
		})
		b.Run("drop="+drop.name+"/impl=prune+Unmarshal", func(b *testing.B) {
			var dst []byte
			bench(b, (*corev1.Pod).Marshal, func(message []byte) (err error) {
				if dst, err = of.AppendProtobuf(dst[:0], message); err != nil {
					return err
				}
				var pod corev1.Pod
				return pod.Unmarshal(dst)
			})
		})
		b.Run("drop="+drop.name+"/impl=Unmarshal+Apply", func(b *testing.B) {
			bench(b, (*corev1.Pod).Marshal, func(message []byte) error {
				var pod corev1.Pod
				err := pod.Unmarshal(message)
				fields.Apply(&pod)
				return err
			})
		})
	}
}
