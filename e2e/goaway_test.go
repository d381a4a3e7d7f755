package e2e

import (
	"context"
	"net"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/e2e/cluster"
)

// The API server answers one request in fifty with a GOAWAY, so that clients leave their connections
// again and again. An informer whose watch began on one of them loses nothing, and asks for nothing
// again: the watch goes on over the connection that others have left.
func TestGoAwayLeavesWatchesAlone(t *testing.T) {
	const writers, names, existing, goAways = 4, 60, 40, 5
	ctx := testContext(t)
	options := usual.Options
	options.APIServerFlags = []string{"--goaway-chance=0.02"}
	c, err := cluster.Start(ctx, options)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, c.Close()) })
	c.ShowLogs(t)
	pods := newPods(ctx, t, c, existing)

	var connections atomic.Int64
	seen := &tap{}
	config := seen.install(c.Config())
	config.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
		connections.Add(1)
		return (&net.Dialer{}).DialContext(ctx, network, address)
	}
	factory, err := informer.NewDynamicListerWatcherFactory(config)
	require.NoError(t, err)
	s := start(ctx, t, newMirror(nil), informer.InformerConfig{
		ListerWatcher: factory.ForResource(pods.Namespace, pods.Resource), ListMode: informer.ListModePaged, WatchListPageSize: existing,
	})
	s.waitSynced(ctx, t)
	churn := pods.StartChurn(ctx, writers, names, existing)

	// Others ask over the same connections, until some were given up.
	nodes := factory.ForResource("", schema.GroupVersionResource{Version: "v1", Resource: "nodes"})
	for first := connections.Load(); connections.Load() < first+goAways; {
		// A request that meets a GOAWAY on its way may fail.
		_, _ = cache.ToListerWatcherWithContext(nodes).ListWithContext(ctx, metav1.ListOptions{})
		require.NoError(t, ctx.Err())
	}
	require.NoError(t, churn.Await(ctx, 100))
	require.NoError(t, churn.Stop())
	s.requireEqual(ctx, t, pods)
	var lists, watches int
	for _, e := range seen.ofObjects() {
		switch {
		case !strings.HasSuffix(e.path, pods.Namespace+"/pods"):
		case e.isWatch():
			watches++
		case e.query.Get("limit") == strconv.Itoa(existing): // no question whether the server has a version
			lists++
		}
	}
	require.Equal(t, 1, lists, "lists")
	require.Less(t, watches, goAways, "watches")
}
