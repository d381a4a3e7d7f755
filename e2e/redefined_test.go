package e2e

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// The definition of a custom resource is deleted, and all objects with it, and
// created again. In between there is no such resource (404).
func TestTrialOfARedefinedResource(t *testing.T) {
	skipInShort(t)
	t.Parallel()
	ctx := testContext(t)
	c := usual.Get(t)
	widgets := newWidgets(ctx, t, c, trialNames/2)
	tr := newTrial(ctx, t, c, widgets, ways(), c.Config)
	for range 2 {
		require.NoError(t, tr.writer.Await(ctx, 200))
		require.NoError(t, c.DeleteWidgetDefinition(ctx))
		tr.awaitErrors(ctx, t)
		require.NoError(t, c.CreateWidgetDefinition(ctx))
	}
	tr.judge(ctx, t)
}
