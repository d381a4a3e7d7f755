//go:build unix

package wire

import (
	"bytes"
	"encoding/json"
	"io"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const benchPods = 2000

// benchItems runs one item per operation, over and over the same body. On a busy machine look at
// cpu-MB/s: per second of CPU, not of the clock.
func benchItems(b *testing.B, body []byte, items int, next func() error, again func(io.Reader)) {
	b.Helper()
	source := bytes.NewReader(body)
	again(source)
	b.SetBytes(int64(len(body) / items))
	b.ReportAllocs()
	b.ResetTimer()
	began := cpuTime(b)
	defer func() {
		b.ReportMetric(float64(b.N)*float64(len(body)/items)/1e6/(cpuTime(b)-began).Seconds(), "cpu-MB/s")
	}()
	for i := 0; i < b.N; {
		switch err := next(); err {
		case nil:
			i++
		case io.EOF:
			source.Reset(body)
			again(source)
		default:
			b.Fatal(err)
		}
	}
}

func cpuTime(b *testing.B) time.Duration {
	var usage syscall.Rusage
	require.NoError(b, syscall.Getrusage(syscall.RUSAGE_SELF, &usage))
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

func BenchmarkJSONList(b *testing.B) {
	body := encoded(b, jsonCodec, generatedList(benchPods))
	b.Run("impl=wire", func(b *testing.B) {
		l := NewListReader(nil, JSON, Options{})
		benchItems(b, body, benchPods, func() error { _, err := l.Next(); return err }, l.Reset)
	})
	// What is read at the least: the bytes copied into a buffer.
	b.Run("impl=floor", func(b *testing.B) {
		b.SetBytes(int64(len(body) / benchPods))
		buf := make([]byte, defaultBufferBytes)
		source := bytes.NewReader(body)
		for left := b.N * len(body) / benchPods; left > 0; {
			n, err := source.Read(buf)
			if left -= n; err == io.EOF {
				source.Reset(body)
			}
		}
	})
	b.Run("impl=json.Decoder+RawMessage", func(b *testing.B) {
		var d *json.Decoder
		var raw json.RawMessage
		benchItems(b, body, benchPods, func() error {
			if !d.More() {
				return io.EOF
			}
			return d.Decode(&raw)
		}, func(r io.Reader) {
			d = json.NewDecoder(r)
			for {
				if token, err := d.Token(); err != nil || token == json.Delim('[') {
					require.NoError(b, err)
					return
				}
			}
		})
	})
}

func BenchmarkProtoList(b *testing.B) {
	body := encoded(b, protoCodec, generatedList(benchPods))
	b.Run("impl=wire", func(b *testing.B) {
		l := NewListReader(nil, Protobuf, Options{})
		benchItems(b, body, benchPods, func() error { _, err := l.Next(); return err }, l.Reset)
	})
	b.Run("impl=Unmarshal", func(b *testing.B) {
		l := NewListReader(nil, Protobuf, Options{})
		benchItems(b, body, benchPods, func() error {
			item, err := l.Next()
			if err == nil {
				var pod corev1.Pod
				err = pod.Unmarshal(item.Bytes)
			}
			return err
		}, l.Reset)
	})
}

func BenchmarkJSONWatch(b *testing.B) {
	var body bytes.Buffer
	for i := range benchPods {
		pod := generatedPod(i)
		pod.APIVersion, pod.Kind = "v1", "Pod"
		body.WriteString(`{"type":"MODIFIED","object":`)
		body.Write(bytes.TrimSpace(encoded(b, jsonCodec, &pod)))
		body.WriteString("}\n")
	}
	b.Run("impl=wire", func(b *testing.B) {
		var w WatchReader
		benchItems(b, body.Bytes(), benchPods, func() error { _, err := w.Next(); return err }, func(r io.Reader) { w = NewWatchReader(r, JSON, Options{}) })
	})
	b.Run("impl=json.Decoder+WatchEvent", func(b *testing.B) {
		var d *json.Decoder
		benchItems(b, body.Bytes(), benchPods, func() error {
			var event metav1.WatchEvent
			return d.Decode(&event)
		}, func(r io.Reader) { d = json.NewDecoder(r) })
	})
}

func BenchmarkProtoWatch(b *testing.B) {
	var body bytes.Buffer
	for i := range benchPods {
		pod := generatedPod(i)
		body.Write(protoFrame(b, "MODIFIED", encoded(b, protoCodec, &pod)))
	}
	b.Run("impl=wire", func(b *testing.B) {
		var w WatchReader
		benchItems(b, body.Bytes(), benchPods, func() error { _, err := w.Next(); return err }, func(r io.Reader) { w = NewWatchReader(r, Protobuf, Options{}) })
	})
}

func BenchmarkAppendObject(b *testing.B) {
	for _, format := range []Format{JSON, Protobuf} {
		b.Run(format.String(), func(b *testing.B) {
			body := encoded(b, jsonCodec, generatedList(1))
			if format == Protobuf {
				body = encoded(b, protoCodec, generatedList(1))
			}
			item, err := NewListReader(bytes.NewReader(body), format, Options{}).Next()
			require.NoError(b, err)
			b.SetBytes(int64(len(item.Bytes)))
			b.ReportAllocs()
			var object []byte
			for b.Loop() {
				object = item.AppendObject(object[:0], "v1", "Pod")
			}
		})
	}
}
