package informertest_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/rvinformer/informer/informertest"
)

const configMapsOfA = "/api/v1/namespaces/a/configmaps"

// fuzzed is a server with five config maps, whose handler is called without a connection between.
type fuzzed struct {
	*informertest.Server
	handler http.Handler
}

func newFuzzed(f *testing.F) *fuzzed {
	s := &fuzzed{}
	s.Server = informertest.NewServer(informertest.Options{InMemory: true, Wrap: func(handler http.Handler) http.Handler {
		s.handler = handler
		return handler
	}})
	f.Cleanup(s.Close)
	for i := range 5 {
		_, err := s.Create(configMaps, configMap("a", "m"+strconv.Itoa(i), strconv.Itoa(i%2)))
		require.NoError(f, err)
	}
	return s
}

// do sends a request whose client goes at once, so that nothing waits. It checks that the answer is
// what it says, and that a refusal is a Status of its code.
func (s *fuzzed) do(t *testing.T, method, path, query string, head map[string]string, body []byte) (code int, text []byte) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	request := (&http.Request{Method: method, URL: &url.URL{Path: path, RawQuery: query}, Header: http.Header{}, Host: "server"}).WithContext(ctx)
	request.Body = http.NoBody
	if body != nil {
		request.Body = struct {
			*bytes.Reader
			noClose
		}{bytes.NewReader(body), noClose{}}
	}
	for name, value := range head {
		request.Header.Set(name, value)
	}
	answer := httptest.NewRecorder()
	s.handler.ServeHTTP(answer, request)
	text = answer.Body.Bytes()
	if len(text) == 0 {
		return answer.Code, nil // the client was gone
	}
	var status metav1.Status
	if answer.Code >= http.StatusBadRequest {
		decodeAnswer(t, answer, &status)
		require.Equal(t, metav1.StatusFailure, status.Status)
		require.EqualValues(t, answer.Code, status.Code, "%s", text)
		require.NotEmpty(t, status.Message)
		ofVersion := answer.Code == http.StatusInternalServerError && strings.HasPrefix(status.Message, "resourceVersion") // as a kube-apiserver says
		require.True(t, answer.Code < http.StatusInternalServerError || answer.Code == http.StatusGatewayTimeout || ofVersion, "%s", text)
	}
	return answer.Code, text
}

type noClose struct{}

func (noClose) Close() error { return nil }

var protobufSerializer = protobuf.NewSerializer(scheme.Scheme, scheme.Scheme)

// decodeAnswer decodes an answer as its Content-Type says.
func decodeAnswer(t *testing.T, answer *httptest.ResponseRecorder, into runtime.Object) {
	t.Helper()
	if strings.HasPrefix(answer.Header().Get("Content-Type"), runtime.ContentTypeProtobuf) {
		_, _, err := protobufSerializer.Decode(answer.Body.Bytes(), nil, into)
		require.NoError(t, err)
		return
	}
	require.NoError(t, utiljson.Unmarshal(answer.Body.Bytes(), into), "%s", answer.Body)
}

func decodeList(t *testing.T, text []byte) (names []string, meta metav1.ListMeta) {
	var list corev1.ConfigMapList
	require.NoError(t, utiljson.Unmarshal(text, &list), "%s", text)
	for _, item := range list.Items {
		require.Equal(t, "a", item.Namespace)
		names = append(names, item.Name)
	}
	return names, list.ListMeta
}

// FuzzListQuery lists with any query: what comes are the objects that the selectors of the API
// machinery choose, or a refusal.
func FuzzListQuery(f *testing.F) {
	s := newFuzzed(f)
	for _, seed := range []string{"", "limit=2", "limit=2&resourceVersion=0", "limit=-1", "limit=x", "labelSelector=value%3D1&limit=1", "labelSelector=value+in+(0,1),!x", "fieldSelector=metadata.name%3Dm3", "fieldSelector=spec.x%3D1",
		"labelSelector=%3D%3D", "resourceVersion=3&resourceVersionMatch=Exact", "resourceVersion=99999&resourceVersionMatch=NotOlderThan", "resourceVersion=18446744073709551616", "resourceVersionMatch=Exact", "continue=x", "continue=x&resourceVersion=5",
		"sendInitialEvents=true", "watch=true&resourceVersion=x", "watch=1&sendInitialEvents=true", "timeoutSeconds=-1", "limit=9223372036854775807", "allowWatchBookmarks=maybe"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, query string) {
		values, err := url.ParseQuery(query)
		if err != nil || len(query) > 1<<12 {
			return
		}
		code, text := s.do(t, http.MethodGet, configMapsOfA, query, nil, nil)
		if watch := values["watch"]; code != http.StatusOK || text == nil || len(watch) > 0 && watch[0] != "false" && watch[0] != "0" {
			return
		}
		labelSelector, err := labels.Parse(values.Get("labelSelector"))
		require.NoError(t, err)
		fieldSelector, err := fields.ParseSelector(values.Get("fieldSelector"))
		require.NoError(t, err)
		var want []string
		for i := range 5 {
			name := "m" + strconv.Itoa(i)
			if labelSelector.Matches(labels.Set{"value": strconv.Itoa(i % 2)}) && fieldSelector.Matches(fields.Set{"metadata.name": name, "metadata.namespace": "a"}) {
				want = append(want, name)
			}
		}
		names, meta := decodeList(t, text)
		version := values.Get("resourceVersion")
		limit, _ := strconv.Atoi(values.Get("limit"))
		switch {
		case values.Get("continue") != "" || version != "" && version != "0": // of a part, or of an earlier state
			require.Subset(t, append(want, ""), names)
		case version == "" && 0 < limit && limit < len(want):
			require.Equal(t, want[:limit], names)
			require.NotEmpty(t, meta.Continue)
		default:
			require.Equal(t, want, names)
			require.Empty(t, meta.Continue)
		}
	})
}

// FuzzContinue goes on from any token: to a rest of the list, every object once, or it is refused.
func FuzzContinue(f *testing.F) {
	s := newFuzzed(f)
	token := ""
	for range 2 {
		answer := httptest.NewRecorder()
		s.handler.ServeHTTP(answer, httptest.NewRequest(http.MethodGet, configMapsOfA+"?limit=2&continue="+token, nil))
		var list corev1.ConfigMapList
		require.NoError(f, json.Unmarshal(answer.Body.Bytes(), &list))
		token = list.Continue
		text, err := base64.RawURLEncoding.DecodeString(token)
		require.NoError(f, err)
		f.Add(text, true, uint8(2))
		f.Add([]byte(token), false, uint8(1))
	}
	for _, text := range []string{`{"v":"meta.k8s.io/v1","rv":-1,"start":"a/m3"}`, `{"v":"meta.k8s.io/v1","rv":-1,"start":"b"}`, `{"v":"meta.k8s.io/v1","rv":3,"start":"a/","left":9223372036854775807}`, `{"v":"meta.k8s.io/v1","rv":9223372036854775807,"start":"a/m1"}`,
		`{"v":"v0","rv":1,"start":"a/m1"}`, `{"v":"meta.k8s.io/v1","rv":6,"start":"a/\u0000"}`, `{"v":"meta.k8s.io/v1","rv":6,"start":"a/zzz"}`, `{"v":"meta.k8s.io/v1","rv":1e2,"start":"a/"}`, `null`, `[]`, ``} {
		f.Add([]byte(text), true, uint8(2))
	}
	f.Fuzz(func(t *testing.T, text []byte, encode bool, limit uint8) {
		token := string(text)
		if encode {
			token = base64.RawURLEncoding.EncodeToString(text)
		}
		if token == "" || len(token) > 1<<12 {
			return
		}
		var seen []string
		for page := 0; token != ""; page++ {
			require.Less(t, page, 7, "pages without an end")
			code, text := s.do(t, http.MethodGet, configMapsOfA, url.Values{"limit": {strconv.Itoa(int(limit))}, "continue": {token}}.Encode(), nil, nil)
			if code != http.StatusOK {
				require.Zero(t, page, "a token of the server's: %s", text)
				require.Contains(t, []int{http.StatusBadRequest, http.StatusGone}, code)
				return
			}
			names, meta := decodeList(t, text)
			require.LessOrEqual(t, len(names), max(int(limit), map[bool]int{true: 5}[limit == 0]))
			seen, token = append(seen, names...), meta.Continue
		}
		require.Subset(t, []string{"m0", "m1", "m2", "m3", "m4", ""}, seen)
		require.IsIncreasing(t, append([]string{"", "a"}, seen...))
	})
}

// FuzzCreate stores any body: as an ordinary decoder reads it, or not at all.
func FuzzCreate(f *testing.F) {
	s := newFuzzed(f)
	for _, seed := range []string{`{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"n"},"data":{"a":"b\u00e9"},"more":[1,2.5,12345678901234567890,null,{"x":true}]}`, `{"kind":"ConfigMap","metadata":{"name":"n","namespace":"b"}}`, `{"kind":"Pod","apiVersion":"v1","metadata":{"name":"n"}}`,
		`{"kind":"ConfigMap","apiVersion":"v1","metadata":{"generateName":"n-"}}`, `{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"a/b"}}`, `{"kind":"ConfigMap","apiVersion":"v1","metadata":[]}`, `{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"n","labels":{"a":1}}}`,
		`{"kind":"ConfigMapList","apiVersion":"v1","items":[]}`, `[]`, `null`, ``, `{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"n","uid":"x","resourceVersion":"7","creationTimestamp":5}}`} {
		f.Add([]byte(seed), false)
	}
	var b bytes.Buffer
	message := configMap("a", "n", "v")
	message.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMap"))
	require.NoError(f, protobufSerializer.Encode(message, &b))
	f.Add(b.Bytes(), true)
	f.Add(b.Bytes()[:b.Len()-7], true)
	f.Add([]byte("k8s\x00"), true)
	f.Fuzz(func(t *testing.T, body []byte, inProtobuf bool) {
		if len(body) > 1<<13 {
			return
		}
		contentType := runtime.ContentTypeJSON
		if inProtobuf {
			contentType = runtime.ContentTypeProtobuf
		}
		code, text := s.do(t, http.MethodPost, configMapsOfA, "", map[string]string{"Content-Type": contentType}, body)
		if code >= http.StatusBadRequest {
			return
		}
		require.Equal(t, http.StatusCreated, code)
		var answer struct { // no more: metadata that is no metadata is stored as it is
			Metadata struct{ Name, UID, ResourceVersion string }
		}
		require.NoError(t, json.Unmarshal(text, &answer))
		created := answer.Metadata
		defer func() { require.NoError(t, s.Delete(configMaps, "a", created.Name)) }()
		u, err := s.Get(configMaps, "a", created.Name)
		require.NoError(t, err)
		got := content(u.Object)
		var want map[string]any
		if inProtobuf {
			obj, _, err := protobufSerializer.Decode(body, nil, nil)
			require.NoError(t, err)
			want, err = runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
			require.NoError(t, err)
		} else {
			require.NoError(t, utiljson.Unmarshal(body, &want))
		}
		require.JSONEq(t, asJSON(t, content(want)), asJSON(t, got))
		require.NotEmpty(t, created.UID)
		require.NotEmpty(t, created.ResourceVersion)
	})
}

// content is an object without what the server has a say in.
func content(object map[string]any) map[string]any {
	rest := map[string]any{}
	for field, value := range object {
		if field != "kind" && field != "apiVersion" && field != "metadata" {
			rest[field] = value
		}
	}
	return rest
}

func asJSON(t *testing.T, v any) string {
	text, err := json.Marshal(v)
	require.NoError(t, err)
	return string(text)
}

// FuzzAccept answers in a form that the header names, or not at all.
func FuzzAccept(f *testing.F) {
	s := newFuzzed(f)
	for _, seed := range []string{"", "*/*", "application/json", "application/vnd.kubernetes.protobuf,application/json;q=0.5", "text/html", asMetadatas, asTable + ",application/json", "application/json;as=X", ",,;", "application/json;as=\"", "application/*;a=b", "APPLICATION/JSON"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, accept string) {
		answer := httptest.NewRecorder()
		request := httptest.NewRequest(http.MethodGet, configMapsOfA, nil)
		request.Header.Set("Accept", accept)
		s.handler.ServeHTTP(answer, request)
		if answer.Code != http.StatusOK {
			require.Equal(t, http.StatusNotAcceptable, answer.Code)
			return
		}
		media := answer.Header().Get("Content-Type")
		asked := strings.ToLower(accept)
		require.True(t, strings.TrimSpace(accept) == "" || strings.Contains(asked, media) || strings.Contains(asked, "*/*") || strings.Contains(asked, "application/*"), "%q for %q", media, accept)
		if strings.Contains(accept, "PartialObjectMetadata") {
			return
		}
		var list corev1.ConfigMapList
		decodeAnswer(t, answer, &list)
		require.Len(t, list.Items, 5)
	})
}

// FuzzPath answers any path with JSON: what is there, or that nothing is.
func FuzzPath(f *testing.F) {
	s := newFuzzed(f)
	for _, seed := range []string{configMapsOfA, configMapsOfA + "/m1", configMapsOfA + "/m1/status", "/api/v1/configmaps", "/api/v1/namespaces", "/api/v1/namespaces/a", "/apis/example.com/v1/widgets", "/api", "/apis", "/api/v1", "/version", "/", "", "//", "/api/v1/nodes", "/api/v1/namespaces/a/nodes", "/api/v1/namespaces//configmaps/m1", "/api/v1/namespaces/a/configmaps/", "/healthz"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, path string) {
		code, text := s.do(t, http.MethodGet, path, "", nil, nil)
		if code != http.StatusOK || text == nil {
			return
		}
		var answer metav1.PartialObjectMetadata
		if !json.Valid(text) || json.Unmarshal(text, &answer) != nil {
			require.Contains(t, path, "z", "only of its health does the server speak in words: %q", text)
			return
		}
		if answer.Kind == "ConfigMap" {
			require.Equal(t, configMapsOfA[1:]+"/"+answer.Name, strings.Trim(path, "/"))
		}
	})
}
