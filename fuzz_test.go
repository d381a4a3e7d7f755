package informer

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
)

// FuzzReflector lists and watches what a server sends, as objects of each kind: those that the
// store is told are those that an ordinary decoder finds, in their order, and of a list without a
// reported error it is told all.
func FuzzReflector(f *testing.F) {
	const podA = `{"metadata":{"name":"a","namespace":"n","uid":"u","resourceVersion":"5","labels":{"x":"y"}},"spec":{"nodeName":"\u00e9"},"status":{"phase":"Running"}}`
	const list = `{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"7"},"items":[` + podA + `,{"metadata":{"name":"b"}}]}`
	const events = `{"type":"ADDED","object":{"kind":"Pod","apiVersion":"v1","metadata":{"name":"c","resourceVersion":"8"}}}
{"type":"MODIFIED","object":{"kind":"Pod","apiVersion":"v1","metadata":{"name":"c","resourceVersion":"9","managedFields":[{"manager":"m"}]}}}
{"type":"DELETED","object":{"kind":"Pod","apiVersion":"v1","metadata":{"name":"c","resourceVersion":"10"}}}
{"type":"BOOKMARK","object":{"kind":"Pod","apiVersion":"v1","metadata":{"resourceVersion":"12"}}}
`
	for example := range byte(4) {
		f.Add([]byte(list), []byte(events), example)
		f.Add([]byte(`{"items":[{"kind":"X","metadata":{"name":"a"},"spec":1}],"metadata":{"continue":"more"}}`), []byte(`{"type":"ERROR","object":{"kind":"Status","code":410}}`), example)
		f.Add([]byte(`{"items":[7,{"metadata":{"name":"a","creationTimestamp":5}},{"metadata":{"name":"b","labels":[]}}]}`), []byte(`{"type":"ADDED","object":{"metadata":{"name":"a/b/c"},"spec":"x"}}<html>`), example)
		f.Add([]byte(`{"kind":"Status","code":429,"details":{"retryAfterSeconds":3600}}`), []byte(nil), example)
		f.Add([]byte(`{"items":[],"metadata":{"resourceVersion":"opaque"}}`), []byte(`{"type":"ERROR","object":{"kind":"Status","code":429,"reason":"TooManyRequests","details":{"retryAfterSeconds":3600}}}`), example)
	}
	server := &answers{}
	factory, err := NewDynamicListerWatcherFactory(&rest.Config{Host: "http://server", Transport: server, QPS: -1})
	require.NoError(f, err)
	lw := factory.ForResource("", podsResource)
	f.Fuzz(func(t *testing.T, list, events []byte, example byte) {
		if len(list) > 1<<12 || len(events) > 1<<12 {
			return
		}
		examples := []runtime.Object{&RawObject{}, &metav1.PartialObjectMetadata{}, &unstructured.Unstructured{}, &corev1.Pod{}}
		kind := int(example) % len(examples)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		*server = answers{list: list, watch: events, over: cancel}
		told := &toldObjects{server: server}
		r := NewNamedReflector("fuzz", lw, examples[kind], told, 0)
		r.Backoff = &wait.Backoff{Duration: time.Nanosecond}
		failed := false
		r.setup.Report.Handler = func(err error) {
			var it *ItemError
			failed = failed || err != nil && !server.watched
			if err != nil && !errors.As(err, &it) {
				cancel() // rather than wait for as long as the server says
			}
		}
		err := r.ListAndWatchWithContext(ctx)
		require.NotErrorIs(t, context.Cause(ctx), context.DeadlineExceeded)
		if repeatsKeys(list) || repeatsKeys(events) {
			return // decoders into structs and into maps make different objects of these
		}
		all, ok := plainList(list, kind)
		if ok {
			missed := requireSubsequence(t, all, told.listed, sameObject)
			if err == nil && !failed && server.watched {
				require.Zero(t, missed, "nothing is reported, and objects are missing")
			}
		}
		if all, ok := plainEvents(events, kind); ok {
			requireSubsequence(t, all, told.watched, sameObject)
		}
	})
}

// answers is a server that answers one list and one watch, and then it is over.
type answers struct {
	list, watch     []byte
	contentType     string // JSON, if empty
	listed, watched bool
	over            func()
}

func (a *answers) RoundTrip(request *http.Request) (*http.Response, error) {
	text, before := a.list, &a.listed
	if request.URL.Query().Get("watch") != "" {
		text, before = a.watch, &a.watched
	}
	if *before {
		a.over()
		return nil, errors.New("it is over")
	}
	*before = true
	header := http.Header{"Content-Type": {cmp.Or(a.contentType, runtime.ContentTypeJSON)}}
	return &http.Response{StatusCode: http.StatusOK, Header: header, Body: io.NopCloser(bytes.NewReader(text)), Request: request}, nil
}

// toldObjects is a store that writes down what it is told.
type toldObjects struct {
	server          *answers
	listed, watched []interface{}
}

func (s *toldObjects) note(obj interface{}) error {
	if s.server.watched {
		s.watched = append(s.watched, obj)
	} else {
		s.listed = append(s.listed, obj)
	}
	return nil
}

func (s *toldObjects) Add(obj interface{}) error    { return s.note(obj) }
func (s *toldObjects) Update(obj interface{}) error { return s.note(obj) }
func (s *toldObjects) Delete(obj interface{}) error { return s.note(obj) }
func (s *toldObjects) Resync() error                { return nil }
func (s *toldObjects) Replace(objects []interface{}, _ string) error {
	s.listed = append(s.listed, objects...)
	return nil
}

// plainObject decodes an object as client-go does, for the example of that number. It is nil if
// that is no object.
func plainObject(text []byte, listed metav1.TypeMeta, kind int) interface{} {
	var object map[string]interface{}
	if utiljson.Unmarshal(text, &object) != nil || object == nil {
		return nil
	}
	if object["kind"] == nil && object["apiVersion"] == nil {
		object["kind"], object["apiVersion"] = listed.Kind, listed.APIVersion
	}
	switch kind {
	case 1, 3:
		var into runtime.Object = &metav1.PartialObjectMetadata{}
		if kind == 3 {
			into = &corev1.Pod{}
		}
		if utiljson.Unmarshal(text, into) != nil {
			return nil
		}
		into.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{}) // typed clients leave it out
		return into
	default:
		return &unstructured.Unstructured{Object: object}
	}
}

func plainList(text []byte, kind int) (all []interface{}, ok bool) {
	var list struct {
		APIVersion string            `json:"apiVersion"`
		Kind       string            `json:"kind"`
		Items      []json.RawMessage `json:"items"`
	}
	if utiljson.Unmarshal(text, &list) != nil {
		return nil, false
	}
	listed := metav1.TypeMeta{APIVersion: list.APIVersion, Kind: strings.TrimSuffix(list.Kind, "List")}
	for _, item := range list.Items {
		all = append(all, plainObject(item, listed, kind))
	}
	return all, true
}

// plainEvents is false where there is more that is no JSON: a reader that goes on behind it cannot
// be followed.
func plainEvents(text []byte, kind int) (all []interface{}, ok bool) {
	for d := json.NewDecoder(bytes.NewReader(text)); ; {
		var frame json.RawMessage
		if err := d.Decode(&frame); err != nil {
			return all, err == io.EOF || errors.Is(err, io.ErrUnexpectedEOF)
		}
		var event struct {
			Object json.RawMessage `json:"object"`
		}
		if utiljson.Unmarshal(frame, &event) == nil {
			all = append(all, plainObject(event.Object, metav1.TypeMeta{}, kind))
		}
	}
}

// requireSubsequence checks that told are some of all, in their order, and returns how many are
// missing.
func requireSubsequence(t *testing.T, all, told []interface{}, same func(want, got interface{}) bool) (missing int) {
	t.Helper()
	rest := all
	for _, obj := range told {
		for len(rest) > 0 && !same(rest[0], obj) {
			rest, missing = rest[1:], missing+1
		}
		require.NotEmpty(t, rest, "%v is not among the %d, or not there", obj, len(all))
		rest = rest[1:]
	}
	return missing + len(rest)
}

// sameObject leaves the kind out, which FuzzAppendObject of package wire is about.
func sameObject(want, got interface{}) bool {
	switch got := got.(type) {
	case *RawObject:
		u, err := got.Unstructured()
		return err == nil && sameObject(want, u) && got.GetName() == u.GetName() && got.GetNamespace() == u.GetNamespace() &&
			got.GetUID() == u.GetUID() && got.GetResourceVersion() == u.GetResourceVersion()
	case *unstructured.Unstructured:
		w, ok := want.(*unstructured.Unstructured)
		return ok && bytes.Equal(kindless(w), kindless(got))
	case *metav1.PartialObjectMetadata:
		w, ok := want.(*metav1.PartialObjectMetadata)
		return ok && sameJSON(w.ObjectMeta, got.ObjectMeta)
	default:
		return sameJSON(want, got)
	}
}

func kindless(u *unstructured.Unstructured) []byte {
	object := map[string]interface{}{}
	for field, value := range u.Object {
		if field != "kind" && field != "apiVersion" {
			object[field] = value
		}
	}
	text, _ := json.Marshal(object)
	return text
}

func sameJSON(a, b interface{}) bool {
	wantText, errA := json.Marshal(a)
	gotText, errB := json.Marshal(b)
	return (errA == nil) == (errB == nil) && bytes.Equal(wantText, gotText)
}

// repeatsKeys reports whether an object in a text has a key twice, as decoders with and without
// regard to case see it.
func repeatsKeys(text []byte) bool {
	type level struct {
		keys map[string]bool // nil: an array
		key  bool            // a key is next
	}
	var levels []level
	for d := json.NewDecoder(bytes.NewReader(text)); ; {
		token, err := d.Token()
		if err != nil {
			return false
		}
		if delim, ok := token.(json.Delim); ok && (delim == '}' || delim == ']') {
			levels = levels[:len(levels)-1]
			continue
		}
		if n := len(levels) - 1; n >= 0 && levels[n].keys != nil {
			if key, ok := token.(string); ok && levels[n].key {
				key = strings.ToLower(key)
				if levels[n].keys[key] {
					return true
				}
				levels[n].keys[key], levels[n].key = true, false
				continue
			}
			levels[n].key = true
		}
		switch token {
		case json.Delim('{'):
			levels = append(levels, level{keys: map[string]bool{}, key: true})
		case json.Delim('['):
			levels = append(levels, level{})
		}
	}
}

var protobufCodec = protobuf.NewSerializer(scheme.Scheme, scheme.Scheme)

// FuzzReflectorProtobuf is FuzzReflector for pods in protobuf.
func FuzzReflectorProtobuf(f *testing.F) {
	encoded := func(obj runtime.Object, kind string) []byte {
		obj.GetObjectKind().SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind(kind))
		var b bytes.Buffer
		require.NoError(f, protobufCodec.Encode(obj, &b))
		return b.Bytes()
	}
	frame := func(eventType string, object []byte) []byte {
		text, err := (&metav1.WatchEvent{Type: eventType, Object: runtime.RawExtension{Raw: object}}).Marshal()
		require.NoError(f, err)
		return append(binary.BigEndian.AppendUint32(nil, uint32(len(text))), text...)
	}
	pod := func(name, version string) *corev1.Pod {
		p := &corev1.Pod{Spec: corev1.PodSpec{NodeName: "é", Containers: []corev1.Container{{Name: "c"}}}}
		p.Name, p.Namespace, p.UID, p.ResourceVersion, p.Labels = name, "n", "u", version, map[string]string{"x": "y"}
		return p
	}
	list := &corev1.PodList{ListMeta: metav1.ListMeta{ResourceVersion: "7"}, Items: []corev1.Pod{*pod("a", "5"), *pod("b", "6"), {}}}
	events := bytes.Join([][]byte{
		frame("ADDED", encoded(pod("c", "8"), "Pod")),
		frame("BOOKMARK", encoded(pod("", "9"), "Pod")),
		frame("DELETED", encoded(pod("c", "10"), "Pod")),
		frame("ERROR", encoded(&metav1.Status{Code: 410, Reason: metav1.StatusReasonExpired}, "Status")),
	}, nil)
	for example := range byte(3) {
		f.Add(encoded(list, "PodList"), events, example)
		f.Add(encoded(&corev1.PodList{}, "PodList"), frame("MODIFIED", []byte("k8s\x00")), example)
		f.Add([]byte("k8s\x00"), []byte{0, 0, 0, 0}, example)
	}
	server := &answers{}
	factory, err := NewDynamicListerWatcherFactory(&rest.Config{Host: "http://server", Transport: server, QPS: -1})
	require.NoError(f, err)
	lw := factory.ForResource("", podsResource)
	f.Fuzz(func(t *testing.T, list, events []byte, example byte) {
		if len(list) > 1<<12 || len(events) > 1<<12 {
			return
		}
		examples := []runtime.Object{&RawObject{}, &metav1.PartialObjectMetadata{}, &corev1.Pod{}}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		*server = answers{list: list, watch: events, contentType: runtime.ContentTypeProtobuf, over: cancel}
		told := &toldObjects{server: server}
		r := NewNamedReflector("fuzz", lw, examples[int(example)%len(examples)], told, 0)
		r.Backoff = &wait.Backoff{Duration: time.Nanosecond}
		failed := false
		r.setup.Report.Handler = func(err error) {
			var it *ItemError
			failed = failed || err != nil && !server.watched
			if err != nil && !errors.As(err, &it) {
				cancel()
			}
		}
		err := r.ListAndWatchWithContext(ctx)
		require.NotErrorIs(t, context.Cause(ctx), context.DeadlineExceeded)
		if all, ok := plainPods(list); ok {
			missed := requireSubsequence(t, all, told.listed, samePod)
			if err == nil && !failed && server.watched {
				require.Zero(t, missed, "nothing is reported, and objects are missing")
			}
		}
		if all, ok := plainPodEvents(events); ok {
			requireSubsequence(t, all, told.watched, samePod)
		}
	})
}

func plainPods(list []byte) (all []interface{}, ok bool) {
	obj, _, err := protobufCodec.Decode(list, nil, nil)
	pods, isList := obj.(*corev1.PodList)
	if err != nil || !isList {
		return nil, false
	}
	for i := range pods.Items {
		all = append(all, &pods.Items[i])
	}
	return all, true
}

// plainPodEvents is false where there is something else than pods.
func plainPodEvents(text []byte) (all []interface{}, ok bool) {
	for len(text) >= 4 {
		size := binary.BigEndian.Uint32(text)
		if text = text[4:]; uint64(size) > uint64(len(text)) {
			break
		}
		var event metav1.WatchEvent
		if event.Unmarshal(text[:size]) != nil {
			return nil, false
		}
		text = text[size:]
		obj, _, err := protobufCodec.Decode(event.Object.Raw, nil, nil)
		if err != nil {
			return nil, false
		}
		all = append(all, obj)
	}
	return all, true
}

// samePod reports whether got, of any example, is the pod wanted.
func samePod(wanted, got interface{}) bool {
	want, ok := wanted.(*corev1.Pod)
	if !ok {
		return false
	}
	switch got := got.(type) {
	case *RawObject:
		pod := &corev1.Pod{}
		return got.Decode(pod) == nil && samePod(want, pod) && got.GetName() == pod.Name && got.GetNamespace() == pod.Namespace &&
			got.GetUID() == pod.UID && got.GetResourceVersion() == pod.ResourceVersion
	case *metav1.PartialObjectMetadata:
		return sameJSON(want.ObjectMeta, got.ObjectMeta)
	case *corev1.Pod:
		a, b := want.DeepCopy(), got.DeepCopy()
		a.TypeMeta, b.TypeMeta = metav1.TypeMeta{}, metav1.TypeMeta{}
		return sameJSON(a, b)
	}
	return false
}
