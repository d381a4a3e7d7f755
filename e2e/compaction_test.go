package e2e

import (
	"context"
	"net/http"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/e2e/cluster"
)

// pagedSettings are those of settings that ask for pages.
var pagedSettings = []struct {
	name   string
	config informer.InformerConfig
}{
	{"paged", informer.InformerConfig{ListMode: informer.ListModePaged}},
	{"forced pages", informer.InformerConfig{ForcePaginatedList: true}},
	{"streamed pages", informer.InformerConfig{ForcePaginatedList: true, StreamHandleForPaginatedList: true}},
}

// The token of the second page expires once: the informer lists again. What
// the first page showed and is gone by then must be deleted, and nothing else.
func TestCompactionBetweenPages(t *testing.T) {
	testCompaction(t, 1, func(t *testing.T, seen *tap) {
		require.Equal(t, 1, seen.count(exchange.isExpiredToken))
	})
}

// The token expires however often the informer begins again, until it asks for
// everything in one answer.
func TestCompactionBetweenPagesEveryTime(t *testing.T) {
	testCompaction(t, 1000, func(t *testing.T, seen *tap) {
		require.GreaterOrEqual(t, seen.count(exchange.isExpiredToken), 2)
		require.Positive(t, seen.count(exchange.isWhole))
	})
}

// testCompaction changes and compacts after the first page, until a token has expired so many
// times.
func testCompaction(t *testing.T, times int, check func(*testing.T, *tap)) {
	for _, setting := range sample(pagedSettings, 1) {
		t.Run(setting.name, func(t *testing.T) {
			const n, pageSize = 400, 50
			ctx := testContext(t)
			c := snapshots.get(ctx, t)
			pods := newPods(ctx, t, c, n)
			var round atomic.Int64
			seen := &tap{}
			seen.after = func(e exchange) {
				// A first page that the informer leaves unread for seconds, as on a busy machine,
				// is asked for again.
				if !e.isFirstPage() || seen.count(exchange.isExpiredToken) >= times {
					return
				}
				assert.NoError(t, changeAndCompact(ctx, c, pods, int(round.Add(1)), pageSize))
			}
			config := setting.config
			config.ListerWatcher = source(t, seen.install(c.Config()), pods)
			config.WatchListPageSize = pageSize
			s := start(ctx, t, newMirror(nil), config)
			s.waitSynced(ctx, t)
			check(t, seen)
			// The sweep comes before synced, so that this needs no watch.
			requireSame(t, versions(ctx, t, pods), s.mirror.known())
			s.requireEqual(ctx, t, pods)
		})
	}
}

// changeAndCompact makes what the first page shows untrue, and then makes the
// server forget how it was.
func changeAndCompact(ctx context.Context, c *cluster.Cluster, pods *cluster.Objects, round, pageSize int) error {
	const each = 10
	onFirst, onLater := round*each, pageSize+round*each
	for i := range each / 2 {
		if err := pods.Delete(ctx, cluster.Name(onFirst+i)); err != nil {
			return err
		}
		if err := pods.Update(ctx, cluster.Name(onFirst+each/2+i), "compacted"); err != nil {
			return err
		}
		if err := pods.Delete(ctx, cluster.Name(onLater+i)); err != nil {
			return err
		}
		if err := pods.Create(ctx, cluster.Name((round+1)*1000+i)); err != nil {
			return err
		}
	}
	return c.Compact(ctx)
}

// A watch that begins at a revision which is forgotten by then gets 410, and
// the informer lists again.
func TestCompactionBeforeTheWatch(t *testing.T) {
	const n = 200
	ctx := testContext(t)
	c := snapshots.get(ctx, t)
	pods := newPods(ctx, t, c, n)
	var once atomic.Bool
	seen := &tap{}
	seen.after = func(e exchange) {
		// The list has been answered. Restarting the server makes it forget
		// the changes that come now, and compaction makes etcd forget them.
		if e.isWatch() || e.status != http.StatusOK || !once.CompareAndSwap(false, true) {
			return
		}
		assert.NoError(t, changeAndCompact(ctx, c, pods, 1, n/2))
		assert.NoError(t, c.KillAPIServer())
		assert.NoError(t, c.StartAPIServer(ctx))
		assert.NoError(t, c.Compact(ctx))
	}
	s := start(ctx, t, newMirror(nil), informer.InformerConfig{
		ListerWatcher: source(t, seen.install(c.Config()), pods),
		ListMode:      informer.ListModeFull,
	})
	s.waitSynced(ctx, t)
	s.requireEqual(ctx, t, pods)
	require.GreaterOrEqual(t, seen.count(exchange.isWhole), 2, "the old list was not enough")
}
