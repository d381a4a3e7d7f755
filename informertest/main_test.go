package informertest_test

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"

	"github.com/rvinformer/informer/informertest"

	_ "github.com/rvinformer/informer/internal/testkit/rapidseed"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var (
	pods       = schema.GroupVersionResource{Version: "v1", Resource: "pods"}
	configMaps = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	nodes      = schema.GroupVersionResource{Version: "v1", Resource: "nodes"}
	widgets    = schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"}
)

// tester is what the helpers need of a test; rapid's is one, though not a testing.TB.
type tester interface {
	require.TestingT
	Helper()
	Cleanup(func())
	Context() context.Context
}

func start(t tester, opts informertest.Options) *informertest.Server {
	t.Helper()
	s := informertest.NewServer(opts)
	t.Cleanup(s.Close)
	return s
}

func configMap(namespace, name, value string) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{"value": value}},
		Data:       map[string]string{"value": value},
	}
}

func widget(namespace, name string, size int64) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"metadata": map[string]any{"namespace": namespace, "name": name},
		"spec":     map[string]any{"size": size},
	}}
}

func create(t tester, s *informertest.Server, objects ...*corev1.ConfigMap) {
	t.Helper()
	for _, o := range objects {
		_, err := s.Create(configMaps, o)
		require.NoError(t, err)
	}
}

// values makes a query from pairs of names and values.
func values(pairs ...string) url.Values {
	out := url.Values{}
	for i := 0; i < len(pairs); i += 2 {
		out.Set(pairs[i], pairs[i+1])
	}
	return out
}

// ask sends a GET and returns what came back.
func ask(t tester, s *informertest.Server, path string, query url.Values, accept string) (int, string) {
	t.Helper()
	resp := open(t, s, path, query, accept)
	body, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return resp.StatusCode, string(body)
}

// open sends a GET and leaves the body to the caller; it is closed with the test.
func open(t tester, s *informertest.Server, path string, query url.Values, accept string) *http.Response {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL()+path+"?"+query.Encode(), nil)
	require.NoError(t, err)
	if accept != "" {
		req.Header.Set("Accept", accept)
	}
	resp, err := httpClient(t, s).Do(req)
	require.NoError(t, err)
	t.Cleanup(func() { resp.Body.Close() })
	return resp
}

// httpClient is how client-go connects to the server: with HTTP/2 if that has TLS.
func httpClient(t tester, s *informertest.Server) *http.Client {
	t.Helper()
	client, err := rest.HTTPClientFor(s.Config())
	require.NoError(t, err)
	if client.Transport != http.DefaultTransport {
		t.Cleanup(client.CloseIdleConnections)
	}
	return client
}

// list asks for a page of config maps; on failure it returns the Status instead.
func list(t tester, s *informertest.Server, pairs ...string) (*corev1.ConfigMapList, *metav1.Status) {
	t.Helper()
	code, body := ask(t, s, "/api/v1/configmaps", values(pairs...), "")
	if code != http.StatusOK {
		status := &metav1.Status{}
		require.NoError(t, json.Unmarshal([]byte(body), status), body)
		require.EqualValues(t, code, status.Code)
		require.Equal(t, metav1.StatusFailure, status.Status)
		return nil, status
	}
	out := &corev1.ConfigMapList{}
	require.NoError(t, json.Unmarshal([]byte(body), out))
	return out, nil
}

func names(l *corev1.ConfigMapList) []string {
	out := []string{}
	for _, o := range l.Items {
		out = append(out, o.Namespace+"/"+o.Name)
	}
	return out
}

// stream is a watch as it comes over the wire.
type stream struct {
	t    tester
	resp *http.Response
	in   *bufio.Reader
}

type frame struct {
	Type   watch.EventType
	Object unstructured.Unstructured
}

func follow(t tester, s *informertest.Server, path string, pairs ...string) *stream {
	t.Helper()
	resp := open(t, s, path, values(append(pairs, "watch", "true")...), "")
	require.Equal(t, http.StatusOK, resp.StatusCode)
	return &stream{t: t, resp: resp, in: bufio.NewReader(resp.Body)}
}

// next waits for the next event; ok is false at the clean end of the watch.
func (s *stream) next() (frame, bool) {
	s.t.Helper()
	line, err := s.in.ReadBytes('\n')
	if err == io.EOF && len(line) == 0 {
		return frame{}, false
	}
	require.NoError(s.t, err)
	var raw struct {
		Type   watch.EventType
		Object map[string]any
	}
	require.NoError(s.t, json.Unmarshal(line, &raw))
	return frame{Type: raw.Type, Object: unstructured.Unstructured{Object: raw.Object}}, true
}

// want reads one event and compares it in the short form "TYPE name resourceVersion".
func (s *stream) want(events ...string) {
	s.t.Helper()
	for _, e := range events {
		f, ok := s.next()
		require.True(s.t, ok, "the watch ended where %q was expected", e)
		require.Equal(s.t, e, f.String())
	}
}

func (s *stream) wantEnd() {
	s.t.Helper()
	f, ok := s.next()
	require.False(s.t, ok, "%s instead of the end", f)
}

func (f frame) String() string {
	if f.Type == watch.Error {
		reason, _, _ := unstructured.NestedString(f.Object.Object, "reason")
		return string(f.Type) + " " + reason
	}
	out := string(f.Type)
	if name := f.Object.GetName(); name != "" {
		out += " " + name
	}
	out += " " + f.Object.GetResourceVersion()
	if f.Object.GetAnnotations()[metav1.InitialEventsAnnotationKey] == "true" {
		out += " initial-end"
	}
	return out
}
