package source

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/rvinformer/informer/internal/edge/report"
	"github.com/rvinformer/informer/internal/engine/object"
	"github.com/rvinformer/informer/internal/engine/server"
	"github.com/rvinformer/informer/internal/testkit/samples"
)

// BenchmarkSelectedList reads one list of 10,000 pods over loopback, in turns without a selector and
// with one that all of them match. X is the CPU time of the second, as a multiple of the first.
//
//	go test -run - -bench SelectedList -benchtime 30x -count 5 ./internal/engine/source
func BenchmarkSelectedList(b *testing.B) {
	const objects = 10_000
	for _, format := range []string{"json", "protobuf"} {
		b.Run(format, func(b *testing.B) {
			body := selectedList(b, format, objects)
			web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", map[string]string{"json": "application/json", "protobuf": "application/vnd.kubernetes.protobuf"}[format])
				_, _ = w.Write(body)
			}))
			defer web.Close()
			s, err := server.New(&rest.Config{Host: web.URL, QPS: -1, DisableCompression: true})
			if err != nil {
				b.Fatal(err)
			}
			resource := s.Resource("", schema.GroupVersionResource{Version: "v1", Resource: "pods"})
			expected := object.Expect(&corev1.Pod{}, "", object.Public{})
			form := expected.Form(true, nil)
			read := func(lw *server.Resource) time.Duration {
				list := New(Options{ListerWatcher: lw, Memory: &Memory{}, Expected: &expected, Form: &form, Report: &report.Report{Handler: func(err error) { b.Error(err) }}})
				began, n := cpu(), 0
				_, err := list.Page(b.Context(), metav1.ListOptions{}, func(it object.Item, unreadable error) error {
					raw, err := it.Copy(&object.Shared) // as for an object that goes into the queue
					if err == nil {
						object.Shared.Put(raw)
						n++
					}
					return unreadable
				})
				if err != nil || n != objects {
					b.Fatal(n, err)
				}
				return cpu() - began
			}
			selecting := resource.Tweaked(func(o *metav1.ListOptions) { o.LabelSelector = "pod-template-hash" })
			var ratios []float64
			for b.Loop() {
				ratios = append(ratios, 1/(float64(read(resource))/float64(read(selecting))))
			}
			slices.Sort(ratios)
			b.ReportMetric(ratios[len(ratios)/2], "x")
		})
	}
}

func cpu() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func selectedList(b *testing.B, format string, objects int) []byte {
	list := &corev1.PodList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PodList"}, ListMeta: metav1.ListMeta{ResourceVersion: strconv.Itoa(objects)}}
	for _, pod := range (samples.Cluster{}).Pods(0, objects, 0) {
		pod.TypeMeta = metav1.TypeMeta{}
		list.Items = append(list.Items, *pod)
	}
	var out bytes.Buffer
	if format == "json" {
		if err := json.NewEncoder(&out).Encode(list); err != nil {
			b.Fatal(err)
		}
		return out.Bytes()
	}
	message, err := list.Marshal()
	if err != nil {
		b.Fatal(err)
	}
	return protobufEnvelope(message)
}

// protobufEnvelope returns a list in the envelope of apimachinery.
func protobufEnvelope(message []byte) []byte {
	field := func(to []byte, number byte, data []byte) []byte {
		to = append(to, number<<3|2)
		for n := uint64(len(data)); ; n >>= 7 {
			if n < 0x80 {
				to = append(to, byte(n))
				break
			}
			to = append(to, byte(n)|0x80)
		}
		return append(to, data...)
	}
	out := field([]byte("k8s\x00"), 1, field(field(nil, 1, []byte("v1")), 2, []byte("PodList")))
	return field(field(field(out, 2, message), 3, nil), 4, nil)
}
