package informertest_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilnet "k8s.io/apimachinery/pkg/util/net"

	"github.com/rvinformer/informer/informertest"
)

func TestUpdate(t *testing.T) {
	s := start(t, informertest.Options{})
	made, err := s.Create(widgets, widget("a", "1", 1))
	require.NoError(t, err)

	newer := widget("a", "1", 2)
	newer.SetResourceVersion(made.GetResourceVersion())
	changed, err := s.Update(widgets, newer)
	require.NoError(t, err)
	require.Equal(t, "3", changed.GetResourceVersion())
	require.Equal(t, made.GetUID(), changed.GetUID())
	require.Equal(t, made.GetCreationTimestamp(), changed.GetCreationTimestamp())

	_, err = s.Update(widgets, newer)
	require.True(t, apierrors.IsConflict(err), err)
	newer.SetResourceVersion("")
	newer.SetUID("another")
	_, err = s.Update(widgets, newer)
	require.True(t, apierrors.IsConflict(err), err)
	same, err := s.Update(widgets, widget("a", "1", 2))
	require.NoError(t, err)
	require.Equal(t, changed, same)
	require.Equal(t, "3", s.ResourceVersion())

	_, err = s.Update(widgets, widget("a", "2", 2))
	require.True(t, apierrors.IsNotFound(err), err)

	require.NoError(t, s.Delete(widgets, "a", "1"))
	require.True(t, apierrors.IsNotFound(s.Delete(widgets, "a", "1")))
	again, err := s.Create(widgets, widget("a", "1", 2))
	require.NoError(t, err)
	require.NotEqual(t, made.GetUID(), again.GetUID())
}

func TestTypedCustomResource(t *testing.T) {
	s := start(t, informertest.Options{})
	_, err := s.Create(widgets, configMap("a", "1", "x"))
	require.NoError(t, err)
	got, err := s.Get(widgets, "a", "1")
	require.NoError(t, err)
	require.Equal(t, "Widget", got.GetKind())
	value, _, _ := unstructured.NestedString(got.Object, "data", "value")
	require.Equal(t, "x", value)
}

func TestNothingIsShared(t *testing.T) {
	s := start(t, informertest.Options{})
	given := widget("a", "1", 1)
	given.SetLabels(map[string]string{"l": "1"})
	untouched := given.DeepCopy()
	made, err := s.Create(widgets, given)
	require.NoError(t, err)
	require.Equal(t, untouched, given)
	stored := made.DeepCopy()

	require.NoError(t, unstructured.SetNestedField(given.Object, int64(9), "spec", "size"))
	require.NoError(t, unstructured.SetNestedField(made.Object, int64(9), "spec", "size"))
	for range 2 {
		all, err := s.List(widgets, "a")
		require.NoError(t, err)
		require.Equal(t, []*unstructured.Unstructured{stored}, all)
		require.NoError(t, unstructured.SetNestedField(all[0].Object, int64(9), "spec", "size"))
	}
}

func TestBadObjects(t *testing.T) {
	s := start(t, informertest.Options{})
	named := func(namespace, name string) runtime.Object { return configMap(namespace, name, "x") }
	unknown := schema.GroupVersionResource{Version: "v1", Resource: "gadgets"}
	for _, c := range []struct {
		gvr  schema.GroupVersionResource
		obj  runtime.Object
		says string
	}{
		{unknown, named("a", "1"), "gadgets of v1"},
		{configMaps, nil, "no object metadata"},
		{configMaps, &metav1.Status{}, "*v1.Status"},
		{configMaps, &unstructured.Unstructured{}, "must have a map as its metadata"},
		{configMaps, &unstructured.Unstructured{Object: map[string]any{"metadata": "m"}}, "must have a map as its metadata"},
		{configMaps, &corev1.Secret{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"}}, "is a Secret of v1"},
		{configMaps, named("a", ""), "must have a name"},
		{configMaps, named("", "1"), `"1" of configmaps must have a namespace`},
		{configMaps, named("a", "1/2"), `"1/2"`},
		{configMaps, named("..", "1"), `".."`},
		{nodes, named("a", "1"), "nodes are cluster scoped"},
		{configMaps, &unstructured.Unstructured{Object: map[string]any{
			"metadata": map[string]any{"namespace": "a", "name": "1"}, "data": func() {},
		}}, "unsupported type"},
	} {
		_, err := s.Create(c.gvr, c.obj)
		require.ErrorContains(t, err, c.says)
		require.True(t, apierrors.IsBadRequest(err) || apierrors.IsNotFound(err), err)
		require.Error(t, s.Load(c.gvr, func(yield func(runtime.Object) bool) { yield(c.obj) }))
	}
	require.Equal(t, "1", s.ResourceVersion())

	_, err := s.Update(unknown, named("a", "1"))
	require.True(t, apierrors.IsNotFound(err), err)
	require.True(t, apierrors.IsNotFound(s.Delete(unknown, "a", "1")))
	_, err = s.Get(unknown, "a", "1")
	require.True(t, apierrors.IsNotFound(err), err)
	_, err = s.List(unknown, "")
	require.True(t, apierrors.IsNotFound(err), err)
	_, err = s.ResourceVersions(unknown, "")
	require.True(t, apierrors.IsNotFound(err), err)
}

func TestBadBodies(t *testing.T) {
	s := five(t)
	const valid = `{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"1"}}`
	const widget = `{"kind":"Widget","apiVersion":"example.com/v1","metadata":{"name":"1"}}`
	for _, c := range []struct {
		method, path, contentType, body string
		code                            int
	}{
		{http.MethodPost, "/api/v1/namespaces/n/configmaps", "application/json", valid, 201},
		{http.MethodPost, "/api/v1/namespaces/n/configmaps", "application/json", valid, 409},
		{http.MethodPost, "/api/v1/namespaces/n/configmaps", "application/json", `{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"2","resourceVersion":"7"}}`, 500},
		{http.MethodPut, "/api/v1/namespaces/n/configmaps/1", "", valid, 200},
		{http.MethodPost, "/apis/example.com/v1/namespaces/n/widgets", "", widget, 201},
		{http.MethodPut, "/apis/example.com/v1/namespaces/n/widgets/1", "", widget, 422},
		{http.MethodPut, "/apis/example.com/v1/namespaces/n/widgets/1", "", strings.Replace(widget, `{"name"`, `{"resourceVersion":"8","name"`, 1), 200},
		{http.MethodPut, "/apis/example.com/v1/namespaces/n/widgets/2", "", strings.Replace(widget, `"1"`, `"2"`, 1), 404},
		{http.MethodPut, "/api/v1/namespaces/n/configmaps/2", "", valid, 400},
		{http.MethodPost, "/api/v1/namespaces/n/configmaps", "application/yaml", "kind: ConfigMap", 415},
		{http.MethodPost, "/api/v1/namespaces/n/configmaps", "application/vnd.kubernetes.protobuf", "k8s", 400},
		{http.MethodPost, "/apis/example.com/v1/namespaces/n/widgets", "application/vnd.kubernetes.protobuf", "k8s", 415},
		{http.MethodDelete, "/api/v1/namespaces/n/configmaps/1", "application/vnd.kubernetes.protobuf", "k8s\x00\x0a\x0f\x0a\x02v1\x12\x09ConfigMap", 400},
		{http.MethodPost, "/api/v1/namespaces/n/configmaps", "application/json", "", 400},
		{http.MethodPost, "/api/v1/namespaces/n/configmaps", "application/json", "{", 400},
		{http.MethodPost, "/api/v1/namespaces/n/configmaps", "application/json", "{}", 400},
		{http.MethodPost, "/api/v1/namespaces/n/configmaps", "application/json", strings.Replace(valid, `{"name"`, `{"namespace":"m","name"`, 1), 400},
		{http.MethodPut, "/api/v1/namespaces/n/configmaps/1", "application/json", "[]", 400},
		{http.MethodDelete, "/api/v1/namespaces/n/configmaps/1", "application/json", "?", 400},
		{http.MethodDelete, "/api/v1/namespaces/n/configmaps/1", "application/json", `{"preconditions":{"resourceVersion":"2"}}`, 409},
		{http.MethodDelete, "/api/v1/namespaces/n/configmaps/1", "", "", 200},
		{http.MethodDelete, "/api/v1/namespaces/n/configmaps", "", "", 405},
		{http.MethodPost, "/api", "", "", 404},
	} {
		req, err := http.NewRequestWithContext(t.Context(), c.method, s.URL()+c.path, strings.NewReader(c.body))
		require.NoError(t, err)
		if c.contentType != "" {
			req.Header.Set("Content-Type", c.contentType)
		}
		resp, err := http.DefaultClient.Do(req)
		require.NoError(t, err)
		body, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		require.Equal(t, c.code, resp.StatusCode, "%v: %s", c, body)
		require.Contains(t, string(body), `"kind":"`)
	}
}

func TestNoListenerAfterClose(t *testing.T) {
	for _, inMemory := range []bool{false, true} {
		s := informertest.NewServer(informertest.Options{InMemory: inMemory})
		config := s.Config()
		s.Close()
		transport := &http.Transport{DialContext: config.Dial}
		_, err := (&http.Client{Transport: transport}).Get(s.URL())
		require.True(t, utilnet.IsConnectionRefused(err), err)
		require.Empty(t, s.Requests())
	}
}
