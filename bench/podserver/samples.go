package podserver

import (
	"bytes"
	"context"
	"fmt"
	"iter"
	"net/http"
	"strconv"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/rvinformer/informer/bench/podserver/extra"
	"github.com/rvinformer/informer/internal/samples"
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

// sampleVersion is how often object i was updated, and its resource version where the
// object itself would have one of before the list.
func (o Options) sampleVersion(i int) (revision int, version string) {
	if o.Changed == 0 {
		return 0, ""
	}
	if step := o.Pods / o.Changed; i%step == 0 && i/step < o.Changed {
		return 1, strconv.Itoa(listVersion + 1 + i/step)
	}
	return 0, ""
}

// sampleForm is how sample objects are sent.
type sampleForm struct {
	kind     metav1.TypeMeta
	protobuf bool
	// itemsSayKind tells that the items of a list say it, as those of custom resources do.
	itemsSayKind bool
	objects      *archive
}

func (s *sampled) pods(protobuf bool) sampleForm {
	f := sampleForm{kind: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}, protobuf: protobuf}
	if protobuf {
		f.objects = s.protobufPods.fill(s.encodedPods(func(pod *corev1.Pod) []byte {
			encoded, err := pod.Marshal()
			must(err)
			return encoded
		}))
	} else {
		f.objects = s.jsonPods.fill(s.encodedPods(func(pod *corev1.Pod) []byte { return (&form{}).encodeObject(pod) }))
	}
	return f
}

func (s *sampled) encodedPods(encode func(*corev1.Pod) []byte) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		for i, pod := range SampleCluster.Pods(0, s.set.Pods, 0) {
			if revision, version := s.set.sampleVersion(i); revision > 0 {
				pod = SampleCluster.Pod(i, revision)
				pod.ResourceVersion = version
			}
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
			revision, version := s.set.sampleVersion(i)
			release := SampleCluster.Release(i, revision)
			if revision > 0 {
				release.SetResourceVersion(version)
			}
			encoded, err := release.MarshalJSON()
			must(err)
			if !yield(bytes.TrimSpace(encoded)) {
				return
			}
		}
	})
	return f
}

// sendList sends n objects of the set, from the first.
func (f sampleForm) sendList(w *counted, set Options, first, n int) error {
	meta := metav1.ListMeta{ResourceVersion: set.ListVersion()}
	if left := int64(set.Pods - first - n); left > 0 {
		meta.Continue, meta.RemainingItemCount = strconv.Itoa(first+n), &left
	}
	opening := listHead{kind: metav1.TypeMeta{APIVersion: f.kind.APIVersion, Kind: f.kind.Kind + "List"}, protobuf: f.protobuf}
	itemBytes := 0
	if f.protobuf {
		for i := first; i < first+n; i++ {
			size := len(f.objects.object(i))
			itemBytes += 1 + varintSize(size) + size
		}
	}
	b := opening.append(nil, meta, itemBytes)
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
	_, err := w.Write(append(b, opening.closing()...))
	return err
}

// sampleEvents sends the events of a watch of sample objects.
type sampleEvents struct {
	form sampleForm
	set  Options
}

func (e sampleEvents) initial(ctx context.Context, w *counted) error {
	return e.send(ctx, w, watch.Added, 0, e.set.Pods, func(n int) int { return n })
}

// changes sends those that have been before the list; there are no others.
func (e sampleEvents) changes(ctx context.Context, w *counted, known, to int) error {
	if known >= to {
		return nil
	}
	return e.send(ctx, w, watch.Modified, known, to, func(n int) int { return n * (e.set.Pods / e.set.Changed) })
}

func (e sampleEvents) send(ctx context.Context, w *counted, event watch.EventType, from, to int, object func(n int) int) error {
	var b []byte
	for n := from; n < to; n++ {
		b = e.form.appendEvent(b, event, e.form.objects.object(object(n)))
		if len(b) < tilesBytes && n+1 < to {
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

func (e sampleEvents) bookmark(w *counted, version string, annotations map[string]string) error {
	object := fmt.Appendf(nil, `{"kind":%q,"apiVersion":%q,"metadata":{"resourceVersion":%q`, e.form.kind.Kind, e.form.kind.APIVersion, version)
	if len(annotations) > 0 {
		object = fmt.Appendf(object, `,"annotations":{%q:"true"}`, metav1.InitialEventsAnnotationKey)
	}
	object = append(object, "}}"...)
	form := e.form
	if form.itemsSayKind = true; form.protobuf {
		meta := metav1.ObjectMeta{ResourceVersion: version, Annotations: annotations}
		encoded, err := meta.Marshal()
		must(err)
		object = appendBytesField(nil, 1, encoded)
	}
	if _, err := w.Write(form.appendEvent(nil, watch.Bookmark, object)); err != nil {
		return err
	}
	w.flush()
	return nil
}

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
	var kind []byte
	kind = appendBytesField(kind, 1, []byte(f.kind.APIVersion))
	kind = appendBytesField(kind, 2, []byte(f.kind.Kind))
	envelope := appendBytesField([]byte("k8s\x00"), 1, kind)
	envelope = appendBytesField(envelope, 2, object)
	envelope = appendBytesField(appendBytesField(envelope, 3, nil), 4, nil)
	frame := appendBytesField(nil, 1, []byte(event))
	frame = appendBytesField(frame, 2, appendBytesField(nil, 1, envelope))
	size := len(frame)
	b = append(b, byte(size>>24), byte(size>>16), byte(size>>8), byte(size))
	return append(b, frame...)
}

func varintSize(v int) int { return len(appendVarint(nil, v)) }

// releasesPath is that of the custom resource.
var releasesPath = "/apis/" + samples.ReleaseKind.GroupVersion().String() + "/" + samples.ReleaseResource.Resource

// templateResources are the names under which the pods of a template are served.
func (o Options) templateResources() []string {
	if o.Samples {
		return o.Resources
	}
	return append([]string{"pods"}, o.Resources...)
}

// serveSamples answers a list or a watch of sample objects.
func (s *Server) serveSamples(w http.ResponseWriter, r *http.Request, f sampleForm) {
	s.requests.Add(1)
	query := r.URL.Query()
	watching, _ := strconv.ParseBool(query.Get("watch"))
	w.Header().Set("Content-Type", (&form{protobuf: f.protobuf}).contentType(watching))
	out := &counted{w: w, total: &s.bytes}
	// An error is that of a client that has gone.
	if watching {
		s.watches.Add(1)
		defer s.watches.Add(-1)
		_ = watchOf(query, s.options).serve(r.Context(), out, sampleEvents{f, s.options}, s.options)
		return
	}
	first, n, err := page(query, s.options.Pods)
	if err != nil {
		refuse(w, http.StatusBadRequest, metav1.StatusReasonBadRequest, err.Error())
		return
	}
	_ = f.sendList(out, s.options, first, n)
}
