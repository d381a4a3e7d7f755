package server_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/rvinformer/informer/internal/engine/server"
)

// roundTripper is a server.
type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(request *http.Request) (*http.Response, error) { return f(request) }

// FuzzCluster reads the UID of the namespace kube-system out of any answer, as the decoder of
// namespaces does.
func FuzzCluster(f *testing.F) {
	for _, seed := range []string{`{"kind":"Namespace","apiVersion":"v1","metadata":{"name":"kube-system","uid":"u-1"}}`, `<html>`, ``, `{"metadata":null}`, `{"metadata":{"uid":7}}`, `{"metadata":{"UID":"upper"}}`, `[]`} {
		f.Add([]byte(seed))
	}
	var text []byte
	answer := roundTripper(func(request *http.Request) (*http.Response, error) {
		header := http.Header{"Content-Type": {"application/json"}}
		return &http.Response{StatusCode: http.StatusOK, Header: header, Body: io.NopCloser(bytes.NewReader(text)), Request: request}, nil
	})
	resource := serverAt(f, &rest.Config{Host: "http://server", Transport: answer, QPS: -1}).Resource("", podsResource)
	f.Fuzz(func(t *testing.T, given []byte) {
		text = given
		source, err := resource.Identify(t.Context())
		require.NoError(t, err)
		require.Equal(t, "v1/pods", source.Resource)
		var namespace metav1.PartialObjectMetadata
		if json.Unmarshal(text, &namespace) == nil {
			require.Equal(t, string(namespace.UID), source.Cluster)
		}
		if !json.Valid(text) {
			require.Empty(t, source.Cluster)
		}
	})
}

// FuzzSelectors normalizes selectors: they select the same objects then, and stay as they are.
func FuzzSelectors(f *testing.F) {
	f.Add("b=1,a=2", "metadata.name=x")
	f.Add("", "")
	f.Add("a in (x,y),!b", "a=\\,b")
	f.Fuzz(func(t *testing.T, labelSelector, fieldSelector string) {
		source := server.Filter(&cache.ListWatch{}, selecting(labelSelector, fieldSelector)).Selection()
		again := server.Filter(&cache.ListWatch{}, selecting(source.LabelSelector, source.FieldSelector)).Selection()
		require.Equal(t, source, again)
		requireSameLabels(t, labelSelector, source.LabelSelector)
		requireSameFields(t, fieldSelector, source.FieldSelector)
	})
}

func requireSameLabels(t *testing.T, given, normal string) {
	selector, err := labels.Parse(given)
	if err != nil {
		require.Equal(t, given, normal)
		return
	}
	same, err := labels.Parse(normal)
	require.NoError(t, err)
	for _, set := range []labels.Set{nil, {"a": "1"}, {"a": "2", "b": "1"}, {"b": ""}, {"x": "y"}} {
		require.Equal(t, selector.Matches(set), same.Matches(set), "%q and %q", given, normal)
	}
}

func requireSameFields(t *testing.T, given, normal string) {
	selector, err := fields.ParseSelector(given)
	if err != nil {
		require.Equal(t, given, normal)
		return
	}
	same, err := fields.ParseSelector(normal)
	require.NoError(t, err)
	for _, set := range []fields.Set{nil, {"a": "1"}, {"metadata.name": "x"}, {"a": ",b"}} {
		require.Equal(t, selector.Matches(set), same.Matches(set), "%q and %q", given, normal)
	}
}
