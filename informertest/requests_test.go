package informertest_test

import (
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/rvinformer/informer/informertest"
)

func TestRequests(t *testing.T) { synctest.Test(t, logRequests) }

func logRequests(t *testing.T) {
	s := start(t, informertest.Options{InMemory: true, Wrap: func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
			if req.URL.Query().Get("labelSelector") == "refuse" {
				w.WriteHeader(http.StatusTooManyRequests)
				return
			}
			next.ServeHTTP(w, req)
		})
	}})
	require.Empty(t, s.Requests())
	list(t, s, "limit", "5", "resourceVersion", "0")
	begin := time.Now()
	list(t, s, "resourceVersion", "99") // takes 3 seconds
	ask(t, s, configMapsPath, values("labelSelector", "refuse"), "")
	ask(t, s, "/api/v1/namespaces/a/configmaps/1", nil, asMetadata)
	ask(t, s, "/apis", nil, "")
	w := follow(t, s, widgetsPath, "timeoutSeconds", "1", "allowWatchBookmarks", "true")
	w.want("BOOKMARK 1 initial-end")
	w.wantEnd()

	got := s.Requests()
	seconds := int64(1)
	at := time.Now().Add(-time.Second)
	require.Equal(t, []informertest.Request{
		{Verb: "list", GroupVersionResource: configMaps, Path: configMapsPath, Options: metav1.ListOptions{Limit: 5, ResourceVersion: "0"}, AcceptEncoding: "gzip", Time: begin, Code: 200},
		{Verb: "list", GroupVersionResource: configMaps, Path: configMapsPath, Options: metav1.ListOptions{ResourceVersion: "99"}, AcceptEncoding: "gzip", Time: begin, Code: 504},
		{Verb: "list", GroupVersionResource: configMaps, Path: configMapsPath, Options: metav1.ListOptions{LabelSelector: "refuse"}, AcceptEncoding: "gzip", Time: at, Code: 429},
		{Verb: "get", GroupVersionResource: configMaps, Namespace: "a", Name: "1", Path: "/api/v1/namespaces/a/configmaps/1", Accept: asMetadata, AcceptEncoding: "gzip", Time: at, Code: 404},
		{Verb: "get", Path: "/apis", AcceptEncoding: "gzip", Time: at, Code: 200},
		{Verb: "watch", GroupVersionResource: widgets, Namespace: "a", Path: widgetsPath, Options: metav1.ListOptions{Watch: true, TimeoutSeconds: &seconds, AllowWatchBookmarks: true}, AcceptEncoding: "gzip", Time: at, Code: 200},
	}, got)

	s.ResetRequests()
	require.Empty(t, s.Requests())
}

func TestIncompleteResourcesPanic(t *testing.T) {
	s := start(t, informertest.Options{Resources: []informertest.Resource{}})
	require.PanicsWithValue(t, `informertest: resource "/, Resource=" lacks a version and a resource name and a kind`, func() {
		s.AddResource(informertest.Resource{})
	})
	require.Panics(t, func() {
		s.AddResource(informertest.Resource{GroupVersionResource: schema.GroupVersionResource{Version: "v1", Resource: "pods/log"}, Kind: "Log"})
	})
	require.Panics(t, func() {
		informertest.NewServer(informertest.Options{Resources: []informertest.Resource{{Kind: "Pod"}}})
	})
}
