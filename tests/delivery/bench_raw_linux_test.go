package delivery_test

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/tests/harness"
)

// BenchmarkRawSync reads a watch-list of pods as raw objects, from memory: what the library takes
// beyond the connection. Floor is the bytes copied into a buffer, as a client that throws them away
// does.
//
//	go test -run - -bench RawSync -benchmem ./tests/delivery
func BenchmarkRawSync(b *testing.B) {
	for _, format := range []string{runtime.ContentTypeProtobuf, runtime.ContentTypeJSON} {
		const objects = 10_000
		body := watchListBody(b, format, objects)
		b.Run(format[len("application/"):], func(b *testing.B) {
			b.Run("floor", func(b *testing.B) {
				room := make([]byte, 32<<10)
				cpuPerObject(b, objects, func() {
					for r := (&pieces{rest: body}); ; {
						if _, err := r.Read(room); err == io.EOF {
							break
						}
					}
				})
			})
			b.Run("informer", func(b *testing.B) {
				config := &rest.Config{Host: "http://127.0.0.1:1", ContentConfig: rest.ContentConfig{ContentType: format}}
				config.WrapTransport = func(http.RoundTripper) http.RoundTripper { return watchLists{format, body} }
				factory, err := informer.NewDynamicListerWatcherFactory(config)
				if err != nil {
					b.Fatal(err)
				}
				cpuPerObject(b, objects, func() {
					i := informer.NewResourceVersionInformer("pods", informer.InformerConfig{
						ListerWatcher: factory.ForResource("", harness.Pods), ExampleObject: &informer.RawObject{}, Handler: informer.ResourceEventHandlerFuncs{},
					})
					stop := harness.Synced(i)
					stop()
					if n := i.Status().Objects; n != objects {
						b.Fatalf("%d objects of %d", n, objects)
					}
				})
			})
		})
	}
}

// cpuPerObject runs sync, and reports the CPU that it takes.
func cpuPerObject(b *testing.B, objects int, sync func()) {
	b.ReportAllocs()
	began := cpuTime(b)
	for b.Loop() {
		sync()
	}
	b.ReportMetric(float64(cpuTime(b)-began)/float64(b.N)/float64(objects), "cpu-ns/object")
}

// watchLists answers each watch with the same body.
type watchLists struct {
	contentType string
	body        []byte
}

func (w watchLists) RoundTrip(r *http.Request) (*http.Response, error) {
	answer := &http.Response{StatusCode: http.StatusOK, Request: r, Header: http.Header{"Content-Type": {w.contentType}}}
	if r.URL.Query().Get("watch") == "" {
		answer.Header.Set("Content-Type", runtime.ContentTypeJSON)
		answer.Body = io.NopCloser(bytes.NewReader([]byte(`{"kind":"Namespace","apiVersion":"v1","metadata":{"name":"kube-system","uid":"u"}}`)))
		return answer, nil
	}
	answer.Body = &pieces{rest: w.body, done: r.Context().Done()}
	return answer, nil
}

// pieces is a body that comes in the pieces of HTTP/2, and then waits.
type pieces struct {
	rest []byte
	done <-chan struct{}
}

func (p *pieces) Read(to []byte) (int, error) {
	const piece = 16 << 10
	if len(p.rest) == 0 {
		if p.done != nil {
			<-p.done
		}
		return 0, io.EOF
	}
	n := copy(to, p.rest[:min(len(p.rest), piece)])
	p.rest = p.rest[n:]
	return n, nil
}

func (p *pieces) Close() error { return nil }

// watchListBody is the initial events of pods, and the bookmark that ends them.
func watchListBody(b *testing.B, format string, objects int) (body []byte) {
	add := func(event watch.EventType, pod *corev1.Pod) {
		pod.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}
		if format == runtime.ContentTypeJSON {
			text, err := json.Marshal(map[string]any{"type": event, "object": pod})
			if err != nil {
				b.Fatal(err)
			}
			body = append(append(body, text...), '\n')
			return
		}
		message, err := pod.Marshal()
		if err != nil {
			b.Fatal(err)
		}
		unknown := runtime.Unknown{TypeMeta: runtime.TypeMeta{APIVersion: "v1", Kind: "Pod"}, Raw: message}
		object, err := unknown.Marshal()
		if err != nil {
			b.Fatal(err)
		}
		frame, err := (&metav1.WatchEvent{Type: string(event), Object: runtime.RawExtension{Raw: append([]byte("k8s\x00"), object...)}}).Marshal()
		if err != nil {
			b.Fatal(err)
		}
		body = append(binary.BigEndian.AppendUint32(body, uint32(len(frame))), frame...)
	}
	for n := range objects {
		add(watch.Added, benchPod(n))
	}
	add(watch.Bookmark, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		ResourceVersion: fmt.Sprint(1_000_000 + objects), Annotations: map[string]string{metav1.InitialEventsAnnotationKey: "true"},
	}})
	return body
}

// benchPod is a pod of some 3 KB of protobuf.
func benchPod(n int) *corev1.Pod {
	owner := fmt.Sprintf("deployment-%03d-%08x", n/100, n/10*2654435761)
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: fmt.Sprintf("namespace-%02d", n/1000), Name: fmt.Sprintf("%s-%05x", owner, n*7919%(1<<20)), UID: types.UID(fmt.Sprintf("%08x-0000-4000-8000-%012x", n*2654435761%(1<<32), n)),
		ResourceVersion: fmt.Sprint(1_000_000 + n), GenerateName: owner + "-", Labels: map[string]string{"app": owner, "pod-template-hash": owner[len(owner)-8:], "team": "team-of-some-name"},
		CreationTimestamp: metav1.Unix(1_700_000_000+int64(n), 0),
		OwnerReferences:   []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: owner, UID: types.UID(owner)}},
		ManagedFields:     []metav1.ManagedFieldsEntry{{Manager: "kube-controller-manager", Operation: "Update", FieldsType: "FieldsV1", FieldsV1: &metav1.FieldsV1{Raw: []byte("[" + strings.Repeat(`"f:x",`, 150) + "0]")}}},
	}}
	for c := range 3 {
		pod.Spec.Containers = append(pod.Spec.Containers, corev1.Container{
			Name: fmt.Sprintf("container-%d", c), Image: "registry.example.com/team/image@sha256:" + owner, Args: []string{"--verbose", "--log-format=json", "--listen=:8080"},
			Env: []corev1.EnvVar{{Name: "POD_IP", Value: "some value of an environment variable that is not short at all"}},
		})
	}
	pod.Spec.NodeName = fmt.Sprintf("node-%04d", n*31%500)
	pod.Status.Phase, pod.Status.PodIP = corev1.PodRunning, fmt.Sprintf("10.%d.%d.%d", n>>16, n>>8&255, n&255)
	return pod
}
