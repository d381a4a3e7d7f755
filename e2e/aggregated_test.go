package e2e

import (
	"context"
	"math/rand/v2"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"github.com/rvinformer/informer/e2e/cluster"
)

// TestTrialOfAKilledAggregatedServer kills the API server that serves the objects, behind the one that
// informers ask, and the one that they ask.
func TestTrialOfAKilledAggregatedServer(t *testing.T) {
	skipInShort(t)
	t.Parallel()
	ctx := testContext(t)
	c := startAggregator(ctx, t, cluster.BuildSampleServer)
	require.NoError(t, c.StartSampleServer(ctx))
	namespace, err := c.CreateNamespace(ctx, "flunders")
	require.NoError(t, err)
	flunders, err := c.Flunders(namespace)
	require.NoError(t, err)

	tr := newTrial(ctx, t, c, flunders, ways(), c.Config)
	for range kills() {
		require.NoError(t, tr.writer.Await(ctx, 100+rand.Int64N(200)))
		require.NoError(t, c.KillSampleServer())
		tr.awaitErrors(ctx, t)
		require.NoError(t, c.StartSampleServer(ctx))
		require.NoError(t, tr.writer.Await(ctx, 100))
		require.NoError(t, c.KillAPIServer())
		tr.awaitErrors(ctx, t)
		require.NoError(t, c.StartAPIServer(ctx))
	}
	tr.judge(ctx, t)
}

// TestMetricsServerSpeaksItsDialect holds what metrics-server answers against informertest.MetricsServer:
// lists without a version, objects without version and UID, no watch.
func TestMetricsServerSpeaksItsDialect(t *testing.T) {
	skipInShort(t)
	t.Parallel()
	ctx := testContext(t)
	c := startAggregator(ctx, t, cluster.BuildMetricsServer)
	const n = 3
	pods := newPods(ctx, t, c, n)
	kubelet, err := c.StartKubelet(ctx, "node", pods)
	require.NoError(t, err)
	t.Cleanup(kubelet.Close)
	require.NoError(t, c.StartMetricsServer(ctx))
	client, err := dynamic.NewForConfig(c.Config())
	require.NoError(t, err)
	metrics := client.Resource(cluster.PodMetricsResource).Namespace(pods.Namespace)

	var list *unstructured.UnstructuredList
	require.EventuallyWithT(t, func(t *assert.CollectT) {
		list, err = metrics.List(ctx, metav1.ListOptions{Limit: 2, ResourceVersion: "5", ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan})
		require.NoError(t, err)
		require.Len(t, list.Items, n, "it heeds no limit")
	}, 2*time.Minute, time.Second, "it reads the kubelet every ten seconds")
	require.Empty(t, list.GetResourceVersion())
	require.Empty(t, list.GetContinue())
	for _, item := range list.Items {
		require.Empty(t, item.GetResourceVersion())
		require.Empty(t, item.GetUID())
		require.NotEmpty(t, item.GetName())
	}

	_, err = metrics.Watch(ctx, metav1.ListOptions{})
	require.Equal(t, int32(http.StatusMethodNotAllowed), apierrors.APIStatus(err.(*apierrors.StatusError)).Status().Code)
	typed, err := kubernetes.NewForConfig(c.Config())
	require.NoError(t, err)
	found, err := typed.Discovery().ServerResourcesForGroupVersion(cluster.PodMetricsResource.GroupVersion().String())
	require.NoError(t, err)
	require.NotEmpty(t, found.APIResources)
	for _, r := range found.APIResources {
		require.Contains(t, r.Verbs, "list")
		require.NotContains(t, r.Verbs, "watch")
	}
}

// startAggregator starts a cluster that passes requests on, with the binary of another server.
func startAggregator(ctx context.Context, t *testing.T, build func(context.Context, cluster.Binaries) (cluster.Binaries, error)) *cluster.Cluster {
	t.Helper()
	options := usual.Options
	var err error
	options.Binaries, err = build(ctx, options.Binaries)
	require.NoError(t, err)
	options.Aggregates = true
	c, err := cluster.Start(ctx, options)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, c.Close()) })
	c.ShowLogs(t)
	return c
}
