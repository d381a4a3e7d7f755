package informertest_test

import (
	"encoding/json"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/rvinformer/informer/informertest"
)

const (
	widgetsPath = "/apis/example.com/v1/namespaces/a/widgets"
	asMetadata  = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
	asMetadatas = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
	asTable     = "application/json;as=Table;g=meta.k8s.io;v=v1"
)

var (
	uidPattern  = regexp.MustCompile(`"uid":"[0-9a-f-]{36}"`)
	timePattern = regexp.MustCompile(`"creationTimestamp":"[0-9TZ:-]{20}"`)
	nextPattern = regexp.MustCompile(`"continue":"[^"]+"`)
)

// plain replaces what differs from run to run.
func plain(body string) string {
	body = uidPattern.ReplaceAllString(body, `"uid":"U"`)
	body = timePattern.ReplaceAllString(body, `"creationTimestamp":"T"`)
	return nextPattern.ReplaceAllString(body, `"continue":"C"`)
}

func TestWireOrder(t *testing.T) {
	s := start(t, informertest.Options{})
	create(t, s, configMap("a", "1", "x<y"))
	_, err := s.Create(configMaps, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "data": map[string]any{"k": "v"},
		"metadata": map[string]any{"namespace": "a", "name": "2", "annotations": map[string]any{"resourceVersion": "no"}},
	}})
	require.NoError(t, err)
	for _, name := range []string{"1", "2"} {
		_, err := s.Create(widgets, widget("a", name, 7))
		require.NoError(t, err)
	}
	get := func(path, accept string) string {
		code, body := ask(t, s, path, values("limit", "1"), accept)
		require.Equal(t, http.StatusOK, code, body)
		return plain(body)
	}

	const (
		first  = `"metadata":{"name":"1","namespace":"a","uid":"U","resourceVersion":"2","creationTimestamp":"T","labels":{"value":"x\u003cy"}},"data":{"value":"x\u003cy"}}`
		second = `"metadata":{"name":"2","namespace":"a","uid":"U","resourceVersion":"3","creationTimestamp":"T","annotations":{"resourceVersion":"no"}},"data":{"k":"v"}}`
		widget = `{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"creationTimestamp":"T","name":"1","namespace":"a","resourceVersion":"4","uid":"U"},"spec":{"size":7}}`
	)
	require.Equal(t, `{"kind":"ConfigMap","apiVersion":"v1",`+first+"\n", get("/api/v1/namespaces/a/configmaps/1", ""))
	require.Equal(t, `{"kind":"ConfigMap","apiVersion":"v1",`+second+"\n", get("/api/v1/namespaces/a/configmaps/2", ""))
	require.Equal(t, `{"kind":"ConfigMapList","apiVersion":"v1","metadata":{"resourceVersion":"5","continue":"C","remainingItemCount":1},"items":[{`+first+"]}\n", get(configMapsPath, ""))
	require.Equal(t, widget+"\n", get(widgetsPath+"/1", ""))
	require.Equal(t, `{"apiVersion":"example.com/v1","items":[`+widget+`],"kind":"WidgetList","metadata":{"continue":"C","remainingItemCount":1,"resourceVersion":"5"}}`+"\n", get(widgetsPath, ""))
	require.Equal(t, `{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"5"},"items":[]}`+"\n", get("/api/v1/pods", ""))
	require.Equal(t, `{"kind":"PartialObjectMetadataList","apiVersion":"meta.k8s.io/v1","metadata":{"resourceVersion":"5","continue":"C","remainingItemCount":1},"items":[{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":{"creationTimestamp":"T","name":"1","namespace":"a","resourceVersion":"4","uid":"U"}}]}`+"\n",
		get(widgetsPath, asMetadatas))
	require.Equal(t, `{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":{"creationTimestamp":"T","name":"1","namespace":"a","resourceVersion":"4","uid":"U"}}`+"\n",
		get(widgetsPath+"/1", asMetadata))
}

func TestBuiltInTypesAreWrittenAsTheirEncoderDoes(t *testing.T) {
	s := start(t, informertest.Options{})
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "1", Annotations: map[string]string{"z": `"resourceVersion":"7"`}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}},
	}
	made, err := s.Create(pods, pod)
	require.NoError(t, err)
	require.Empty(t, pod.UID, "the object given is not changed")

	want := pod.DeepCopy()
	want.UID, want.ResourceVersion, want.CreationTimestamp = made.GetUID(), "2", made.GetCreationTimestamp()
	text, err := json.Marshal(want)
	require.NoError(t, err)
	_, body := ask(t, s, "/api/v1/pods", nil, "")
	require.Equal(t, `{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"2"},"items":[`+string(text)+"]}\n", body)
}

func TestAccept(t *testing.T) {
	s := five(t)
	for _, c := range []struct {
		path, accept string
		code         int
		kind         string
	}{
		{configMapsPath, "", 200, "ConfigMapList"},
		{configMapsPath, "*/*", 200, "ConfigMapList"},
		{configMapsPath, "application/vnd.kubernetes.protobuf, application/json", 200, "protobuf ConfigMapList"},
		{configMapsPath, "application/json, application/vnd.kubernetes.protobuf", 200, "ConfigMapList"},
		{configMapsPath, "application/vnd.kubernetes.protobuf", 200, "protobuf ConfigMapList"},
		{configMapsPath, asTable + ",application/json", 200, "ConfigMapList"},
		{configMapsPath, "application/vnd.kubernetes.protobuf;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1," + asMetadatas + ",application/json", 200, "protobuf PartialObjectMetadataList"},
		{configMapsPath, "application/vnd.kubernetes.protobuf;as=Table;g=meta.k8s.io;v=v1," + asMetadatas, 200, "PartialObjectMetadataList"},
		{configMapsPath, asTable, 406, "Status"},
		{configMapsPath, asMetadata, 406, "Status"},
		{configMapsPath, "application/yaml", 406, "Status"},
		{"/api/v1/namespaces/a/configmaps/1", asMetadata, 200, "PartialObjectMetadata"},
		{"/api/v1/namespaces/a/configmaps/1", asMetadatas, 406, "Status"},
		{"/api/v1/namespaces/a/configmaps/9", "", 404, "Status"},
		{"/api/v1/namespaces/a/configmaps/1", "application/vnd.kubernetes.protobuf", 200, "protobuf ConfigMap"},
		{"/api/v1/namespaces/a/configmaps/9", "application/vnd.kubernetes.protobuf, application/json", 404, "protobuf Status"},
		{"/api/v1/namespaces/a/configmaps/9", "application/vnd.kubernetes.protobuf;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json", 404, "Status"},
		{"/api/v1/namespaces/a/configmaps/9", "application/yaml", 406, "Status"},
		{widgetsPath, "application/vnd.kubernetes.protobuf, */*", 200, "WidgetList"},
		{widgetsPath, "application/vnd.kubernetes.protobuf", 406, "protobuf Status"},
		{widgetsPath, "application/vnd.kubernetes.protobuf;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1", 200, "protobuf PartialObjectMetadataList"},
		{"/api/v1/gadgets", "", 404, "Status"},
		{"/apis/example.com/v2/widgets", "", 404, "Status"},
		{"/apis/example.com", "", 404, "Status"},
		{"/api/v1/namespaces/a/nodes", "", 404, "Status"},
		{"/api/v1/namespaces/a/configmaps/1/status", "", 404, "Status"},
	} {
		t.Run(c.path+" "+c.accept, func(t *testing.T) {
			code, body := ask(t, s, c.path, nil, c.accept)
			require.Equal(t, c.code, code, body)
			require.Equal(t, c.kind, kindOf(t, body))
		})
	}
}

// kindOf is the kind of a document, and its language when that is not JSON.
func kindOf(t *testing.T, body string) string {
	if message, ok := strings.CutPrefix(body, "k8s\x00"); ok {
		var u runtime.Unknown
		require.NoError(t, u.Unmarshal([]byte(message)))
		return "protobuf " + u.Kind
	}
	var meta metav1.TypeMeta
	require.NoError(t, json.Unmarshal([]byte(body), &meta))
	return meta.Kind
}

func TestMetadataWatch(t *testing.T) {
	s := five(t)
	resp := open(t, s, configMapsPath, values("watch", "1", "resourceVersion", "5", "allowWatchBookmarks", "1", "timeoutSeconds", "1"), asMetadata)
	line := make([]byte, 1000)
	n, err := resp.Body.Read(line)
	require.NoError(t, err)
	require.Equal(t, `{"type":"ADDED","object":{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":{"name":"2","namespace":"a","uid":"U","resourceVersion":"6","creationTimestamp":"T","labels":{"value":"x"}}}}`+"\n", plain(string(line[:n])))
}
