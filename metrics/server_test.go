package metrics_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/rvinformer/informer/informertest"
)

// newServer returns a simulated server with some pods.
func newServer(t testing.TB, pods schema.GroupVersionResource, n int) *informertest.Server {
	server := informertest.NewServer(informertest.Options{})
	for i := range n {
		_, err := server.Create(pods, &unstructured.Unstructured{Object: map[string]interface{}{
			"apiVersion": "v1", "kind": "Pod", "metadata": map[string]interface{}{"namespace": "default", "name": fmt.Sprint("pod-", i)},
		}})
		require.NoError(t, err)
	}
	return server
}
