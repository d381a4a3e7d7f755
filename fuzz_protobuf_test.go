package informer

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
)

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
