package mirror

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/rvinformer/informer/e2e/cluster"
)

var (
	secrets    = schema.GroupVersionResource{Version: "v1", Resource: "secrets"}
	namespaces = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}
	leases     = schema.GroupVersionResource{Group: "coordination.k8s.io", Version: "v1", Resource: "leases"}
)

// The account that reads a cluster may list and watch what the Deployment mirrors. It may not read
// secrets, nor write.
func TestReaderOfDeployMayReadWhatIsMirrored(t *testing.T) {
	ctx := testContext(t)
	c := away.Get(t)
	reader := accountIn(ctx, t, c, "cluster")
	client := dynamicFor(t, reader)
	awaitRights(ctx, t, client.Resource(cluster.PodResource))

	for _, name := range resourcesOf(t) {
		resource, err := newApplier(t, c.Config()).mapper.ResourceFor(schema.ParseGroupResource(name).WithVersion(""))
		require.NoError(t, err, name)
		_, err = client.Resource(resource).List(ctx, metav1.ListOptions{Limit: 1})
		require.NoError(t, err, name)
		watch, err := client.Resource(resource).Watch(ctx, metav1.ListOptions{})
		require.NoError(t, err, name)
		watch.Stop()
	}
	_, err := client.Resource(namespaces).Get(ctx, "kube-system", metav1.GetOptions{})
	require.NoError(t, err)

	_, err = client.Resource(secrets).List(ctx, metav1.ListOptions{Limit: 1})
	requireForbidden(t, err)
	_, err = client.Resource(leases).Namespace("mirror-reader").List(ctx, metav1.ListOptions{Limit: 1})
	requireForbidden(t, err)
	err = client.Resource(cluster.PodResource).Namespace("mirror-reader").Delete(ctx, "any", metav1.DeleteOptions{})
	requireForbidden(t, err)
}

// The account of mirror itself may write Leases of its namespace, and read nothing of any cluster.
func TestAccountOfDeployMayOnlyShareOut(t *testing.T) {
	ctx := testContext(t)
	client := dynamicFor(t, accountIn(ctx, t, away.Get(t), "home"))
	own := client.Resource(leases).Namespace("mirror")
	awaitRights(ctx, t, own)

	lease := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": map[string]any{"name": "of-a-test"},
	}}
	_, err := own.Create(ctx, lease, metav1.CreateOptions{})
	require.NoError(t, err)
	require.NoError(t, own.Delete(ctx, "of-a-test", metav1.DeleteOptions{}))

	_, err = client.Resource(leases).Namespace("kube-system").List(ctx, metav1.ListOptions{Limit: 1})
	requireForbidden(t, err)
	_, err = client.Resource(cluster.PodResource).List(ctx, metav1.ListOptions{Limit: 1})
	requireForbidden(t, err)
	_, err = client.Resource(secrets).Namespace("mirror").List(ctx, metav1.ListOptions{Limit: 1})
	requireForbidden(t, err)
}

func dynamicFor(t *testing.T, config *rest.Config) dynamic.Interface {
	t.Helper()
	client, err := dynamic.NewForConfig(config)
	require.NoError(t, err)
	return client
}

// awaitRights returns when the server knows of a role that has just been written.
func awaitRights(ctx context.Context, t *testing.T, of dynamic.ResourceInterface) {
	t.Helper()
	var last error
	err := wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		_, last = of.List(ctx, metav1.ListOptions{Limit: 1})
		return last == nil, nil
	})
	require.NoError(t, err, "last answer: %v", last)
}

func requireForbidden(t *testing.T, err error) {
	t.Helper()
	require.True(t, apierrors.IsForbidden(err), "%v", err)
}
