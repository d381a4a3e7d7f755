package e2e

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The API server hangs for a minute, which is longer than a client believes in a
// connection that says nothing, and goes on where it was.
func TestTrialOfAPausedAPIServer(t *testing.T) {
	skipInShort(t)
	t.Parallel()
	ctx := testContext(t)
	c := startCluster(ctx, t)
	tr := newTrial(ctx, t, c, newPods(ctx, t, c, 0), ways(), c.Config)
	require.NoError(t, tr.writer.Await(ctx, 300))
	require.NoError(t, c.PauseAPIServer())
	select {
	case <-time.After(time.Minute):
	case <-ctx.Done():
		assert.NoError(t, context.Cause(ctx))
	}
	require.NoError(t, c.ResumeAPIServer())
	require.NoError(t, tr.writer.Await(ctx, 300))
	tr.judge(ctx, t)
}
