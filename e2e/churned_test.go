package e2e

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rvinformer/informer/e2e/cluster"
)

// Etcd forgets all history every second, the tokens of lists included, and the API
// server, which is killed once, forgets the rest: an informer that goes on from an old version
// then has to list.
func TestTrialOfCompaction(t *testing.T) {
	skipInShort(t)
	t.Parallel()
	ctx := testContext(t)
	c := startCluster(ctx, t, cluster.WithoutListSnapshots)
	tr := newTrial(ctx, t, c, newPods(ctx, t, c, trialNames/2), ways(), c.Config)
	tr.compact(ctx, t, c, 8)
	require.NoError(t, c.KillAPIServer())
	tr.awaitErrors(ctx, t)
	require.NoError(t, c.StartAPIServer(ctx))
	tr.compact(ctx, t, c, 8)
	tr.judge(ctx, t)
}

// compact compacts so many times, once a second.
func (tr *trial) compact(ctx context.Context, t *testing.T, c *cluster.Cluster, times int) {
	t.Helper()
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	for range times {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			require.NoError(t, context.Cause(ctx))
		}
		// What is not recorded yet has to stay.
		revision, err := tr.truth.Reach(ctx)
		require.NoError(t, err)
		require.NoError(t, c.CompactAt(ctx, revision))
	}
}
