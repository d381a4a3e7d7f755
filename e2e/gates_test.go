package e2e

import (
	"context"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/kubernetes"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/e2e/cluster"
)

// gate is a feature gate of kube-apiserver that changes how sets are read.
type gate struct {
	name string
	// flags switch it: they say the contrary of the default.
	flags []string
	// switched is a cluster with these flags.
	switched cluster.Lazy
}

// gates are all that matter. Each is known by some of the versions that are tried.
var (
	watchLists = &gate{name: "WatchList", flags: []string{"--feature-gates=WatchList=false"}}

	// compressing compresses watch-lists, from 1.37 on.
	compressing = &gate{name: "WatchListCompression", flags: []string{"--feature-gates=WatchListCompression=false"}}

	// snapshots lets pages of lists come from the server's cache. Where it is switched, they come
	// from etcd, so that compaction expires tokens.
	snapshots = &gate{name: "ListFromCacheSnapshot", flags: []string{cluster.WithoutListSnapshots}}

	// sharding selects by the shardSelector of a request, from 1.36 on.
	sharding = &gate{name: "ShardedListAndWatch", flags: []string{"--feature-gates=ShardedListAndWatch=true"}}

	// consistent lets lists of the newest state come from the server's cache. From 1.34 on, only
	// a server that emulates 1.33 can be without it, and from 1.37 on none can.
	consistent = &gate{name: "ConsistentListFromCache", flags: []string{"--emulated-version=1.33", "--feature-gates=ConsistentListFromCache=false"}}

	gates = []*gate{watchLists, compressing, snapshots, sharding, consistent}
)

// get returns the cluster where the gate is switched, or skips the test if the server does not know
// the gate.
func (g *gate) get(ctx context.Context, t *testing.T) *cluster.Cluster {
	t.Helper()
	c := usual.Get(t)
	on, known := features(ctx, t, c)[g.name]
	if !known {
		t.Skipf("%s does not know the feature gate %s", version(t, c), g.name)
	}
	switched := g.switched.Get(t)
	require.Equal(t, !on, features(ctx, t, switched)[g.name])
	return switched
}

// features are the feature gates that the server knows, and whether they are on.
func features(ctx context.Context, t *testing.T, c *cluster.Cluster) map[string]bool {
	t.Helper()
	all, err := c.Features(ctx)
	require.NoError(t, err)
	return all
}

// version is the version of the server.
func version(t *testing.T, c *cluster.Cluster) string {
	t.Helper()
	client, err := kubernetes.NewForConfig(c.Config())
	require.NoError(t, err)
	info, err := client.Discovery().ServerVersion()
	require.NoError(t, err)
	return "kube-apiserver " + info.GitVersion
}

// Informers follow a set through a server as it is by default, and through servers on which a
// feature gate is switched. They read it in the ways, and in the encodings, that the server has.
func TestFeatureGatesBothWays(t *testing.T) {
	skipInShort(t)
	t.Run("by default", func(t *testing.T) {
		t.Parallel()
		ctx := testContext(t)
		testFollows(ctx, t, usual.Get(t))
	})
	for _, g := range gates {
		t.Run(g.name+" switched", func(t *testing.T) {
			t.Parallel()
			ctx := testContext(t)
			testFollows(ctx, t, g.get(ctx, t))
		})
	}
}

// testFollows lists pods in all ways, changes some, and looks how the server has sent them.
func testFollows(ctx context.Context, t *testing.T, c *cluster.Cluster) {
	const n, pageSize = 300, 70
	has := features(ctx, t, c)
	pods := newPods(ctx, t, c, n)
	for _, setting := range settings {
		t.Run(setting.name, func(t *testing.T) {
			seen, config := &tap{}, setting.config
			config.ListerWatcher = source(t, seen.install(c.Config()), pods)
			config.WatchListPageSize = pageSize
			s := start(ctx, t, newMirror(nil), config)
			s.waitSynced(ctx, t)
			status := s.informer.Status()
			changeSome(ctx, t, pods)
			s.requireEqual(ctx, t, pods)
			require.Empty(t, s.reported())

			streams := config.ListMode == informer.ListModeWatchList || config.ListMode == informer.ListModeAuto && !config.ForcePaginatedList
			if streams && has[watchLists.name] {
				require.NoError(t, status.Fallback)
				require.Equal(t, informer.ListModeWatchList, status.ListMode)
			} else {
				require.Equal(t, streams, status.Fallback != nil, "%v", status.Fallback)
				require.NotEqual(t, informer.ListModeWatchList, status.ListMode)
			}
			for _, e := range seen.ofObjects() {
				if e.isSet() && e.isWatch() && e.status == http.StatusOK {
					require.Equal(t, has[compressing.name], e.encoding == "gzip", "%v", e)
				}
			}
		})
	}
}
