package e2e

import (
	"context"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/e2e/cluster"
)

// isIdentity tells the question which cluster the server is of.
func (e exchange) isIdentity() bool { return e.isOfServer() && len(e.query) == 0 }

// isSet tells a request for a complete set, as a list or as a watch-list. A list of one object asks
// which cluster the server is of.
func (e exchange) isSet() bool {
	return !e.isOfServer() && !e.isProbe() && e.query.Get("limit") != "1" && (!e.isWatch() || e.query.Get("sendInitialEvents") != "")
}

// forEachResume runs an informer over n pods with a checkpoint until it is synced, and
// stops it. Then test gets, for each setting, a configuration for the next informer, a
// mirror that knows what the first informer told, and a tap on the next one's requests.
func forEachResume(t *testing.T, n int, test func(ctx context.Context, t *testing.T, c *cluster.Cluster, pods *cluster.Objects, m *mirror, next informer.InformerConfig, seen *tap)) {
	for _, setting := range sample(settings, 2) {
		t.Run(setting.name, func(t *testing.T) {
			ctx := testContext(t)
			c := usual.Get(t)
			pods := newPods(ctx, t, c, n)
			path := filepath.Join(t.TempDir(), "pods")
			config := setting.config
			config.WatchListPageSize = 40
			config.Checkpoint = informer.FileCheckpoint(path)
			config.ListerWatcher = source(t, c.Config(), pods)
			first := start(ctx, t, newMirror(nil), config)
			first.waitSynced(ctx, t)
			first.requireEqual(ctx, t, pods)

			seen := &tap{}
			next := setting.config
			next.WatchListPageSize = config.WatchListPageSize
			next.Checkpoint = informer.FileCheckpoint(path)
			next.ListerWatcher = source(t, seen.install(c.Config()), pods)
			test(ctx, t, c, pods, newMirror(first.mirror.known()), next, seen)
		})
	}
}

// A restart from a checkpoint asks for no list, and tells what has happened meanwhile.
func TestResumeWithoutAList(t *testing.T) {
	forEachResume(t, 150, func(ctx context.Context, t *testing.T, c *cluster.Cluster, pods *cluster.Objects, m *mirror, next informer.InformerConfig, seen *tap) {
		changeSome(ctx, t, pods)
		s := start(ctx, t, m, next)
		s.waitSynced(ctx, t)
		s.requireEqual(ctx, t, pods)
		counts := m.counts()
		require.Equal(t, someChanges, counts[added])
		require.Equal(t, someChanges, counts[deleted])
		// A pod that is to be deleted changes once more before it is.
		require.GreaterOrEqual(t, counts[updated], someChanges)
		require.LessOrEqual(t, counts[updated], 2*someChanges)
		require.Zero(t, counts[synced])
		require.Zero(t, seen.count(exchange.isSet))
		require.Equal(t, 1, seen.count(exchange.isWatch))
		require.Equal(t, 1, seen.count(exchange.isIdentity))
		require.Empty(t, s.reported())
	})
}

// Nothing has changed: nothing is told.
func TestResumeWithNothingChanged(t *testing.T) {
	forEachResume(t, 50, func(ctx context.Context, t *testing.T, c *cluster.Cluster, pods *cluster.Objects, m *mirror, next informer.InformerConfig, seen *tap) {
		s := start(ctx, t, m, next)
		s.waitSynced(ctx, t)
		s.requireEqual(ctx, t, pods)
		require.Empty(t, m.counts())
		require.Zero(t, seen.count(exchange.isSet))
	})
}

// An object that took the place of another one of its name meanwhile.
func TestResumeWhereAnObjectWasRecreated(t *testing.T) {
	forEachResume(t, 50, func(ctx context.Context, t *testing.T, c *cluster.Cluster, pods *cluster.Objects, m *mirror, next informer.InformerConfig, seen *tap) {
		name := cluster.Name(20)
		key := pods.Namespace + "/" + name
		old := m.known()[key]
		require.NoError(t, pods.Delete(ctx, name))
		require.NoError(t, pods.Create(ctx, name))
		now := versions(ctx, t, pods)[key]
		require.NotEqual(t, old.UID, now.UID)
		s := start(ctx, t, m, next)
		s.waitSynced(ctx, t)
		s.requireEqual(ctx, t, pods)
		told := m.of(key)
		if told[0].kind == updated { // that the pod was to be deleted
			told = told[1:]
		}
		require.Len(t, told, 2, "told %v", m.of(key))
		require.Equal(t, deleted, told[0].kind)
		require.Equal(t, old.UID, told[0].version.UID)
		require.Equal(t, event{kind: added, key: key, version: now}, told[1])
		require.Zero(t, seen.count(exchange.isSet))
	})
}

// The version of the checkpoint is forgotten (410): a list tells only what differs,
// deletions included.
func TestResumeAfterCompaction(t *testing.T) {
	const n = 150
	forEachResume(t, n, func(ctx context.Context, t *testing.T, c *cluster.Cluster, pods *cluster.Objects, m *mirror, next informer.InformerConfig, seen *tap) {
		changeSome(ctx, t, pods)
		// The server's cache forgets when it is restarted, and etcd when it is compacted.
		require.NoError(t, c.KillAPIServer())
		require.NoError(t, c.StartAPIServer(ctx))
		require.NoError(t, c.Compact(ctx))
		s := start(ctx, t, m, next)
		err := m.await(ctx, "the handler was told of all objects", func() bool { return len(m.events) >= n+someChanges })
		require.NoError(t, err)
		s.waitSynced(ctx, t)
		s.requireEqual(ctx, t, pods)
		require.Equal(t, map[kind]int{
			added: someChanges, updated: someChanges, deleted: someChanges, synced: n - 2*someChanges,
		}, m.counts())
		require.Positive(t, seen.count(exchange.isSet))
	})
}

// A checkpoint names its cluster by the UID of the namespace kube-system. One of another
// cluster, at the same address, is refused and stays as it is.
func TestACheckpointOfAnotherCluster(t *testing.T) {
	ctx := testContext(t)
	mine, other := usual.Get(t), snapshots.get(ctx, t)
	pods := newPods(ctx, t, mine, 20)
	newPods(ctx, t, other, 5)
	uid := func(c *cluster.Cluster) string {
		client, err := kubernetes.NewForConfig(c.Config())
		require.NoError(t, err)
		namespace, err := client.CoreV1().Namespaces().Get(ctx, metav1.NamespaceSystem, metav1.GetOptions{})
		require.NoError(t, err)
		return string(namespace.UID)
	}
	path := filepath.Join(t.TempDir(), "pods")
	everywhere := &cluster.Objects{Namespace: corev1.NamespaceAll, Resource: pods.Resource}
	first := start(ctx, t, newMirror(nil), informer.InformerConfig{
		ListerWatcher: source(t, mine.Config(), everywhere), Checkpoint: informer.FileCheckpoint(path),
	})
	first.waitSynced(ctx, t)
	first.stop(t)
	require.Empty(t, first.reported())
	before, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Contains(t, string(before), uid(mine))

	// Another cluster has taken the address of this one.
	config := other.Config()
	there, err := url.Parse(config.Host)
	require.NoError(t, err)
	config.Host = mine.Config().Host
	config.Dial = func(ctx context.Context, network, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, network, there.Host)
	}
	m := newMirror(nil)
	s := start(ctx, t, m, informer.InformerConfig{
		ListerWatcher: source(t, config, everywhere), Checkpoint: informer.FileCheckpoint(path),
		CheckpointInterval: time.Second, CheckpointChanges: 1,
	})
	require.Eventually(t, func() bool { return len(s.reported()) > 0 }, time.Minute, 10*time.Millisecond)
	s.stop(t)
	require.Zero(t, m.counts()[added])
	require.Zero(t, m.counts()[deleted])
	var refused *informer.CheckpointSourceError
	require.ErrorAs(t, s.reported()[0], &refused)
	require.Equal(t, []informer.CheckpointSourceDifference{{Field: "cluster", Saved: uid(mine), Wanted: uid(other)}}, refused.Differences)
	after, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, before, after)
}
