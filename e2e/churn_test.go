package e2e

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// Objects come, change and go under the same names while they are listed, from
// before the first request until well into the watch.
func TestChurnDuringTheInitialList(t *testing.T) {
	const (
		names    = 600
		existing = 400
		writers  = 6
		enough   = 200 // writes before and after what is tested
	)
	for _, setting := range sample(settings, 2) {
		t.Run(setting.name, func(t *testing.T) {
			ctx := testContext(t)
			c := usual.Get(t)
			pods := newPods(ctx, t, c, existing)
			churn := pods.StartChurn(ctx, writers, names, existing)
			defer func() { require.NoError(t, churn.Stop()) }()
			require.NoError(t, churn.Await(ctx, enough))

			// A handler that waits for writes between two objects stretches the
			// list: what it showed changes while the rest is yet to come.
			m := newMirror(nil)
			m.hook = func(n int, _ event) {
				if n <= existing && n%40 == 0 {
					_ = churn.Await(ctx, 20)
				}
			}
			config := setting.config
			config.ListerWatcher = source(t, c.Config(), pods)
			config.WatchListPageSize = 50
			s := start(ctx, t, m, config)
			s.waitSynced(ctx, t)
			require.NoError(t, churn.Await(ctx, enough))
			require.NoError(t, churn.Stop())
			s.requireEqual(ctx, t, pods)
		})
	}
}
