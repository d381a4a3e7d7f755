package e2e

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// kills is how often a trial kills a server.
func kills() int {
	if testing.Short() {
		return 1
	}
	return 3
}

// The API server is killed, and comes back, three times.
func TestTrialOfAKilledAPIServer(t *testing.T) {
	t.Parallel()
	ctx := testContext(t)
	c := startCluster(ctx, t)
	tr := newTrial(ctx, t, c, newPods(ctx, t, c, 0), ways(), c.Config)
	for range kills() {
		require.NoError(t, tr.writer.Await(ctx, 100+rand.Int64N(200)))
		require.NoError(t, c.KillAPIServer())
		tr.awaitErrors(ctx, t)
		require.NoError(t, c.StartAPIServer(ctx))
	}
	tr.judge(ctx, t)
}

// Etcd is killed, and comes back, three times, and takes what the API server knows
// with it for a moment.
func TestTrialOfAKilledEtcd(t *testing.T) {
	t.Parallel()
	ctx := testContext(t)
	c := startCluster(ctx, t)
	tr := newTrial(ctx, t, c, newPods(ctx, t, c, 0), ways(), c.Config)
	for range kills() {
		require.NoError(t, tr.writer.Await(ctx, 100+rand.Int64N(200)))
		require.NoError(t, c.KillEtcd())
		time.Sleep(rand.N(3 * time.Second)) // for so long it is away
		require.NoError(t, c.StartEtcd(ctx))
	}
	tr.judge(ctx, t)
}
