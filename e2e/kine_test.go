package e2e

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rvinformer/informer/e2e/cluster"
)

// TestTrialOverKine kills kine, which keeps the objects in SQLite in the place of etcd, and the API
// server before it. With STORE=kine in the environment, all tests run over it.
func TestTrialOverKine(t *testing.T) {
	skipInShort(t)
	t.Parallel()
	ctx := testContext(t)
	options := usual.Options
	var err error
	options.Binaries, err = cluster.BuildKine(ctx, options.Binaries)
	require.NoError(t, err)
	options.Kine = true
	c, err := cluster.Start(ctx, options)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, c.Close()) })
	c.ShowLogs(t)

	tr := newTrial(ctx, t, c, newPods(ctx, t, c, 0), ways(), c.Config)
	for range kills() {
		require.NoError(t, tr.writer.Await(ctx, 100+rand.Int64N(200)))
		require.NoError(t, c.KillEtcd())
		time.Sleep(rand.N(3 * time.Second)) // for so long it is away
		require.NoError(t, c.StartEtcd(ctx))
		require.NoError(t, tr.writer.Await(ctx, 100))
		require.NoError(t, c.KillAPIServer())
		tr.awaitErrors(ctx, t)
		require.NoError(t, c.StartAPIServer(ctx))
	}
	require.NoError(t, c.Compact(ctx))
	tr.judge(ctx, t)
}
