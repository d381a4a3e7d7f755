package wire

import (
	"bytes"
	"encoding/binary"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

var jsonListSeeds = []string{
	`{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"7","continue":"abc","remainingItemCount":3},"items":[{"metadata":{"name":"a","namespace":"b","uid":"u","resourceVersion":"5"},"spec":{"x":[1,2.5e-3,{"y":[[],{}]}]}},{"metadata":{"name":"c"}}]}` + "\n",
	`{"apiVersion":"x.io/v1","items":[{"apiVersion":"x.io/v1","kind":"X","metadata":{"name":"a"}}],"kind":"XList","metadata":{"continue":"","resourceVersion":"9"}}`,
	` { "items" : [ { "metadata" : { "name" : "a" , "labels" : { "name" : "no" } } , "spec" : null } , { "metadata" : null , "metadata" : { "name" : "b" } } ] , "kind" : "L" } `,
	`{"items":[{"metad\u0061ta":{"n\u0061me":"\ud83d\ude00\n\"\\\/é\ud800x","namespace":"b\\"}},{"spec":{"a":"\\\\\"]}{["},"metadata":{"name":"last","name":"really"}}]}`,
	"{\"items\":[{\"metadata\":{\"name\":\"bad utf8 \xff\xc3(\"}}]}",
	`{"items":[{"metadata":{"name":"x"},"a":[1}]},{"metadata":{"name":"y"}}]}`,
	`{"items":[{"metadata":{"name":"x"} "a"},{"metadata":{"name":5}},null,7,"s",[],{},nonsense,{"metadata":{"name":"y"}}]}`,
	`{"items":[{"metadata":{"name":"bad \x"}},{"metadata":{"name":"ok","uid":null,"uid":"v"}}]}`,
	`{"items":null,"kind":"L"}`, `{"items":[],"kind":"L"}`, `{"items":{}}`, `{"items":[{"metadata":{"name":"a"}}],"items":[]}`, `{"items":[],"items":[{"metadata":{"name":"a"}}]}`,
	`{"kind":"Status","status":"Failure","code":500}`, `{}`, `null`, `[]`, `<html>`, ``, ` `, `{"items":[]} x`, `{"items":[]}{}`, `{"items":[,]}`, `{"items":[{"metadata":{"name":"a"}},]}`,
	`{"items":[-0.1e+5,01,1.,-,1e,tru,{"a":01}]}`, `{"items":[],"metadata":{"remainingItemCount":null}}`, `{"items":[],"metadata":{"remainingItemCount":1.5}}`,
	`{"Items":[1],"items":[{"Metadata":{"name":"no"},"metadata":{"Name":"no","name":"yes"}}]}`,
}

func FuzzJSONList(f *testing.F) {
	for _, seed := range jsonListSeeds {
		f.Add([]byte(seed))
	}
	f.Add(encoded(f, jsonCodec, generatedList(2)))
	f.Fuzz(func(t *testing.T, body []byte) {
		if len(body) < 1<<14 {
			checkJSONList(t, body)
		}
	})
}

func smallPods() *corev1.PodList {
	left := int64(2)
	return &corev1.PodList{
		ListMeta: metav1.ListMeta{ResourceVersion: "7", Continue: "abc", RemainingItemCount: &left, ShardInfo: &metav1.ShardInfo{Selector: "shardRange(a, b, c)"}},
		Items: []corev1.Pod{
			{ObjectMeta: metav1.ObjectMeta{Name: "a", Namespace: "b", UID: "u", ResourceVersion: "5", Annotations: map[string]string{"k": "v"}}},
			{ObjectMeta: metav1.ObjectMeta{Name: "", Namespace: "nameless"}},
			{ObjectMeta: metav1.ObjectMeta{Name: "c"}, Spec: corev1.PodSpec{NodeName: "n"}},
		},
	}
}

func envelope(t testing.TB, kind string, raw []byte) []byte {
	unknown := runtime.Unknown{TypeMeta: runtime.TypeMeta{APIVersion: "v1", Kind: kind}, Raw: raw}
	b, err := unknown.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	return append([]byte("k8s\x00"), b...)
}

func protoListSeeds(t testing.TB) [][]byte {
	whole := encoded(t, protoCodec, smallPods())
	return [][]byte{
		whole,
		encoded(t, protoCodec, &corev1.PodList{}),
		encoded(t, protoCodec, &corev1.ConfigMapList{Items: []corev1.ConfigMap{{ObjectMeta: metav1.ObjectMeta{Name: "m"}, Data: map[string]string{"a": "b"}}}}),
		encoded(t, protoCodec, &corev1.List{Items: []runtime.RawExtension{{Raw: []byte("x")}}}),
		encoded(t, protoCodec, &corev1.Pod{}),
		encoded(t, protoCodec, &metav1.Status{Message: "no"}),
		envelope(t, "PodList", nil),
		envelope(t, "PodList", []byte("\x12\x03\x0a\x05a")),                                 // metadata longer than its item
		envelope(t, "PodList", []byte("\x12\x05\x0a\x03\x0a\x01a\x12\x7f")),                 // item longer than the list
		envelope(t, "PodList", []byte("\x12\x05\x0a\x03\x0a\x01a\x1b\x20\x05\x1c\x08\x01")), // a group; field 1 as a varint
		envelope(t, "PodList", []byte("\x12\x07\x0a\x05\x0a\x01a\x08\x01")),
		append(bytes.Clone(whole), envelope(t, "PodList", []byte("\x12\x00"))[4:]...), // two lists
		[]byte("k8s\x00"), []byte("k8s"), nil, []byte("<html>"), []byte(`{"kind":"Status"}`), []byte("k8s\x00\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"),
	}
}

func FuzzProtoList(f *testing.F) {
	for _, seed := range protoListSeeds(f) {
		f.Add(seed)
	}
	f.Add(encoded(f, protoCodec, generatedList(2)))
	f.Fuzz(func(t *testing.T, body []byte) {
		if len(body) < 1<<14 {
			checkProtoList(t, body)
		}
	})
}

var jsonWatchSeeds = []string{
	`{"type":"ADDED","object":{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a","namespace":"b","uid":"u","resourceVersion":"5"}}}` + "\n" +
		`{"type":"MODIFIED","object":{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a","annotations":{"x":"\"}{"}}}}` + "\n" +
		`{"type":"BOOKMARK","object":{"kind":"Pod","apiVersion":"v1","metadata":{"resourceVersion":"9","annotations":{"k8s.io/initial-events-end":"true"}}}}` + "\n" +
		`{"type":"ERROR","object":{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"too old","reason":"Expired","code":410}}` + "\n",
	`{"object":{"metadata":{"name":"a"}},"type":"DELETED"}{"type":"ADDED","object":null}{"type":"X","object":{}}{"type":"ADDED"}{}`,
	`{"type":"ADDED","object":{"metadata":{"name":"x"},"object":null,"a":[}}{"type":"ADDED","object":{"metadata":{"name":"y"}}}`,
	`{"type":"ADDED","object":{"metadata":{"name":"a"}},"object":null,"object":{"metadata":{"name":"b"}},"type":null}`,
	`{"type":"BOOKMARK","object":{}}{"type":"BOOKMARK","object":{"metadata":{"annotations":[]}}}{"type":"ERROR","object":"text"}`,
	`{"kind":"Status","code":500}`, ``, "\n\n", `null`, `<html>`, `{"type":"ADDED","object":{"metadata":{"name":"a"}}} 7`,
}

func FuzzJSONWatch(f *testing.F) {
	for _, seed := range jsonWatchSeeds {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		if len(body) < 1<<14 {
			checkJSONWatch(t, body)
		}
	})
}

func protoWatchSeeds(t testing.TB) [][]byte {
	pods := smallPods().Items
	frame := func(eventType string, object runtime.Object) []byte {
		return protoFrame(t, eventType, encoded(t, protoCodec, object))
	}
	end := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{ResourceVersion: "9", Annotations: map[string]string{metav1.InitialEventsAnnotationKey: "true"}}}
	return [][]byte{
		bytes.Join([][]byte{frame("ADDED", &pods[0]), frame("DELETED", &pods[2]), frame("BOOKMARK", end), frame("MODIFIED", &pods[1]),
			frame("ERROR", &metav1.Status{Status: "Failure", Code: 410, Reason: "Expired"}), frame("ADDED", &pods[0])}, nil),
		bytes.Join([][]byte{frame("X", &pods[0]), protoFrame(t, "ADDED", nil), protoFrame(t, "ADDED", []byte("k8s\x00")), {0, 0, 0, 0}, frame("ADDED", &pods[0])}, nil),
		nil, {0}, {0, 0, 0, 9, 1}, []byte("<html>"), []byte(`{"type":"ADDED"}`),
		append(binary.BigEndian.AppendUint32(nil, 1<<25), strings.Repeat("x", 100)...),
	}
}

func FuzzProtoWatch(f *testing.F) {
	for _, seed := range protoWatchSeeds(f) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		if len(body) < 1<<14 {
			checkProtoWatch(t, body)
		}
	})
}
