package podserver

import (
	"bytes"
	"context"
	"fmt"
	"iter"
	"sync"

	"google.golang.org/protobuf/encoding/protowire"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/rvinformer/informer/bench/podserver/extra"
	"github.com/rvinformer/informer/internal/testkit/samples"
)

// SampleCluster has the objects of all servers with Options.Samples.
var SampleCluster = samples.Cluster{Seed: extra.SampleSeed}

// sampled are the sample objects of a server, encoded. They are held, because a client
// reads one in less time than it takes to make it.
type sampled struct {
	set                              Options
	jsonPods, protobufPods, releases archive
}

// archive is a set of encoded objects, made when they are first asked for.
type archive struct {
	once sync.Once
	data []byte
	ends []int // of the objects in data
}

// fill takes the encoded objects, the first time.
func (a *archive) fill(objects iter.Seq[[]byte]) *archive {
	a.once.Do(func() {
		for object := range objects {
			a.data = append(a.data, object...)
			a.ends = append(a.ends, len(a.data))
		}
	})
	return a
}

func (a *archive) object(i int) []byte {
	if i == 0 {
		return a.data[:a.ends[0]]
	}
	return a.data[a.ends[i-1]:a.ends[i]]
}

// sampleForm is how sample objects are sent.
type sampleForm struct {
	encoding
	// itemsSayKind tells that the items of a list say it, as those of custom resources do.
	itemsSayKind bool
	objects      *archive
}

func (s *sampled) pods(protobuf bool) sampleForm {
	f := sampleForm{encoding: encoding{podKind, protobuf}}
	if protobuf {
		f.objects = s.protobufPods.fill(s.encodedPods(func(pod *corev1.Pod) []byte {
			encoded, err := pod.Marshal()
			must(err)
			return encoded
		}))
	} else {
		f.objects = s.jsonPods.fill(s.encodedPods(func(pod *corev1.Pod) []byte { return f.encodeObject(pod) }))
	}
	return f
}

func (s *sampled) encodedPods(encode func(*corev1.Pod) []byte) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		for _, pod := range SampleCluster.Pods(0, s.set.Pods, 0) {
			if !yield(encode(pod)) {
				return
			}
		}
	}
}

func (s *sampled) releaseForm() sampleForm {
	f := sampleForm{itemsSayKind: true}
	f.kind.APIVersion, f.kind.Kind = samples.ReleaseKind.ToAPIVersionAndKind()
	f.objects = s.releases.fill(func(yield func([]byte) bool) {
		for i := range s.set.Pods {
			encoded, err := SampleCluster.Release(i, 0).MarshalJSON()
			must(err)
			if !yield(bytes.TrimSpace(encoded)) {
				return
			}
		}
	})
	return f
}

// list sends n objects of the set, from the first.
func (e sampleObjects) list(_ context.Context, w *counted, first, n int) error {
	f := e.sampleForm
	itemBytes := 0
	if f.protobuf {
		for i := first; i < first+n; i++ {
			itemBytes += protowire.SizeTag(2) + protowire.SizeBytes(len(f.objects.object(i)))
		}
	}
	b := f.listHead(e.set.listMeta(first, n), itemBytes)
	for i := first; i < first+n; i++ {
		if f.protobuf {
			b = appendBytesField(b, 2, f.objects.object(i))
		} else {
			if i > first {
				b = append(b, ',')
			}
			b = append(b, f.objects.object(i)...)
		}
		if len(b) >= tilesBytes {
			if _, err := w.Write(b); err != nil {
				return err
			}
			b = b[:0]
		}
	}
	_, err := w.Write(append(b, f.listEnd()...))
	return err
}

// sampleObjects are the sample objects of a set.
type sampleObjects struct {
	sampleForm
	set Options
}

func (e sampleObjects) initial(ctx context.Context, w *counted) error {
	var b []byte
	for n := range e.set.Pods {
		b = e.appendEvent(b, watch.Added, e.objects.object(n))
		if len(b) < tilesBytes && n+1 < e.set.Pods {
			continue
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if _, err := w.Write(b); err != nil {
			return err
		}
		b = b[:0]
	}
	w.flush()
	return nil
}

// changes sends none: samples do not change.
func (e sampleObjects) changes(context.Context, *counted, int, int) error { return nil }

// appendEvent appends a frame of a watch.
func (f sampleForm) appendEvent(b []byte, event watch.EventType, object []byte) []byte {
	if !f.protobuf {
		b = fmt.Appendf(b, `{"type":%q,"object":`, event)
		if !f.itemsSayKind {
			b = fmt.Appendf(b, `{"kind":%q,"apiVersion":%q,`, f.kind.Kind, f.kind.APIVersion)
			object = object[1:]
		}
		return append(append(b, object...), "}\n"...)
	}
	envelope, err := (&runtime.Unknown{TypeMeta: runtime.TypeMeta{APIVersion: f.kind.APIVersion, Kind: f.kind.Kind}, Raw: object}).Marshal()
	must(err)
	return append(b, protobufEvent(event, append([]byte("k8s\x00"), envelope...))...)
}

// releasesPath is that of the custom resource.
var releasesPath = "/apis/" + samples.ReleaseKind.GroupVersion().String() + "/" + samples.ReleaseResource.Resource

// templateResources are the names under which the pods of a template are served.
func (o Options) templateResources() []string {
	if o.Samples {
		return o.Resources
	}
	return append([]string{"pods"}, o.Resources...)
}
