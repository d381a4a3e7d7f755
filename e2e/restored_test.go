package e2e

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rvinformer/informer/e2e/cluster"
)

// Etcd is restored from a backup: objects are there again that were deleted, others
// are gone, and versions come a second time, for something else.
//
// So long as the versions have not come to where they were, it can be noticed. Once
// they have, nothing tells an informer that was away all the time: it has to be told
// with etcdutl's --bump-revision. So there is a lot to come to here.
func TestTrialOfARestoredEtcd(t *testing.T) {
	skipInShort(t)
	t.Parallel()
	const lost = 3000 // versions
	ctx := testContext(t)
	c := startCluster(ctx, t)
	pods := newPods(ctx, t, c, trialNames/2)
	tr := newTrial(ctx, t, c, pods, ways(), c.Config)
	require.NoError(t, tr.writer.Await(ctx, 100))
	require.NoError(t, c.KillEtcd())
	backup, err := c.BackUpEtcd()
	require.NoError(t, err)
	require.NoError(t, c.StartEtcd(ctx))
	require.NoError(t, tr.writer.Await(ctx, 200))
	for range lost {
		_, err := tr.truth.Reach(ctx) // each is a write
		require.NoError(t, err)
	}
	require.NoError(t, tr.writer.Await(ctx, 100))
	tr.restore(ctx, t, c, backup)
	require.NoError(t, tr.writer.Await(ctx, 200))
	tr.judge(ctx, t)
}

// restore takes the cluster down and brings it up with the data of the backup.
func (tr *trial) restore(ctx context.Context, t *testing.T, c *cluster.Cluster, backup *cluster.Backup) {
	t.Helper()
	require.NoError(t, c.KillAPIServer())
	// There are no more writes, and nothing is told that is not recorded.
	_, err := tr.truth.Reach(ctx)
	require.NoError(t, err)
	require.NoError(t, tr.truth.Restore(ctx, func() error {
		if err := c.KillEtcd(); err != nil {
			return err
		}
		if err := c.RestoreEtcd(backup); err != nil {
			return err
		}
		return c.StartEtcd(ctx)
	}))
	require.NoError(t, c.StartAPIServer(ctx))
}
