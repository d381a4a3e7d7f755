package e2e

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/e2e/cluster"
)

// storages are the ways that the knowledge of one informer comes to the next.
var storages = []struct {
	name     string
	knowsUID bool
	next     func(*informer.ResourceVersionStorage) *informer.ResourceVersionStorage
}{
	{"same storage", true, func(s *informer.ResourceVersionStorage) *informer.ResourceVersionStorage { return s }},
	{"storage filled through Replace", false, replaced},
}

// replaced is what a program does that keeps resource versions in a database.
func replaced(old *informer.ResourceVersionStorage) *informer.ResourceVersionStorage {
	rvs := map[string]any{}
	for key, rv := range old.All() {
		rvs[key] = rv
	}
	s := informer.NewResourceVersionStorage()
	s.Replace(rvs)
	return s
}

// forEachRestart runs an informer over n pods until it is synced, and stops it.
// Then test gets, for each setting and each way to hand over the storage, a
// configuration for the next informer and a mirror that knows what the first
// informer told.
func forEachRestart(t *testing.T, n int, test func(ctx context.Context, t *testing.T, pods *cluster.Objects, m *mirror, next informer.InformerConfig, knowsUID bool)) {
	for _, setting := range sample(settings, 2) {
		for _, storage := range storages {
			t.Run(setting.name+"/"+storage.name, func(t *testing.T) {
				ctx := testContext(t)
				c := usual.Get(t)
				pods := newPods(ctx, t, c, n)
				config := setting.config
				config.WatchListPageSize = 40
				config.Storage = informer.NewResourceVersionStorage()
				config.ListerWatcher = source(t, c.Config(), pods)
				first := start(ctx, t, newMirror(nil), config)
				first.waitSynced(ctx, t)
				first.requireEqual(ctx, t, pods)

				next := setting.config
				next.WatchListPageSize = config.WatchListPageSize
				next.Storage = storage.next(config.Storage)
				next.ListerWatcher = source(t, c.Config(), pods)
				test(ctx, t, pods, newMirror(first.mirror.known()), next, storage.knowsUID)
			})
		}
	}
}

func TestWarmStartWithNothingChanged(t *testing.T) {
	const n = 150
	forEachRestart(t, n, func(ctx context.Context, t *testing.T, pods *cluster.Objects, m *mirror, next informer.InformerConfig, _ bool) {
		s := start(ctx, t, m, next)
		s.waitSynced(ctx, t)
		require.Equal(t, map[kind]int{synced: n}, m.counts())
		s.requireEqual(ctx, t, pods)
	})
}

func TestWarmStartWithSomethingChanged(t *testing.T) {
	const n = 150
	forEachRestart(t, n, func(ctx context.Context, t *testing.T, pods *cluster.Objects, m *mirror, next informer.InformerConfig, _ bool) {
		changeSome(ctx, t, pods)
		s := start(ctx, t, m, next)
		s.waitSynced(ctx, t)
		require.Equal(t, map[kind]int{
			added: someChanges, updated: someChanges, deleted: someChanges, synced: n - 2*someChanges,
		}, m.counts())
		s.requireEqual(ctx, t, pods)
	})
}

// A handler that does not listen to OnSync gets only changed objects, and the
// rest is not taken for gone.
func TestWarmStartWithoutOnSync(t *testing.T) {
	forEachRestart(t, 150, func(ctx context.Context, t *testing.T, pods *cluster.Objects, m *mirror, next informer.InformerConfig, _ bool) {
		changeSome(ctx, t, pods)
		next.Handler = informer.ResourceEventHandlerDetailedFuncs{
			AddFunc: m.OnAdd, UpdateFunc: m.OnUpdate, DeleteFunc: m.OnDelete,
		}
		s := start(ctx, t, m, next)
		s.waitSynced(ctx, t)
		require.Equal(t, map[kind]int{
			added: someChanges, updated: someChanges, deleted: someChanges,
		}, m.counts())
		s.requireEqual(ctx, t, pods)
	})
}

// Run may be called again on the same informer.
func TestWarmStartOfTheSameInformer(t *testing.T) {
	const n = 150
	for _, setting := range sample(settings, 2) {
		t.Run(setting.name, func(t *testing.T) {
			ctx := testContext(t)
			c := usual.Get(t)
			pods := newPods(ctx, t, c, n)
			config := setting.config
			config.WatchListPageSize = 40
			config.ListerWatcher = source(t, c.Config(), pods)
			s := start(ctx, t, newMirror(nil), config)
			s.waitSynced(ctx, t)
			s.stop(t)
			changeSome(ctx, t, pods)
			s.run(ctx, t)
			s.requireEqual(ctx, t, pods)
		})
	}
}

func TestDeletedWhileDown(t *testing.T) {
	forEachRestart(t, 100, func(ctx context.Context, t *testing.T, pods *cluster.Objects, m *mirror, next informer.InformerConfig, knowsUID bool) {
		name := cluster.Name(50)
		key := pods.Namespace + "/" + name
		old := m.known()[key]
		require.NoError(t, pods.Delete(ctx, name))
		settle(ctx, t, pods)
		s := start(ctx, t, m, next)
		s.waitSynced(ctx, t)
		want := old
		if !knowsUID {
			want.UID = ""
		}
		assert.Equal(t, []event{{kind: deleted, key: key, version: want, tombstone: true}}, m.of(key))
		s.requireEqual(ctx, t, pods)
	})
}

func TestRecreatedWhileDown(t *testing.T) {
	forEachRestart(t, 100, func(ctx context.Context, t *testing.T, pods *cluster.Objects, m *mirror, next informer.InformerConfig, knowsUID bool) {
		name := cluster.Name(50)
		key := pods.Namespace + "/" + name
		old := m.known()[key]
		require.NoError(t, pods.Delete(ctx, name))
		require.NoError(t, pods.Create(ctx, name))
		now := versions(ctx, t, pods)[key]
		require.NotEqual(t, old.UID, now.UID)
		if !knowsUID {
			m.forgetUIDs()
		}
		s := start(ctx, t, m, next)
		s.waitSynced(ctx, t)
		want := []event{{kind: updated, key: key, version: now}}
		if knowsUID {
			want = []event{
				{kind: deleted, key: key, version: old, tombstone: true},
				{kind: added, key: key, version: now, initial: true},
			}
		}
		assert.Equal(t, want, m.of(key))
		s.requireEqual(ctx, t, pods)
	})
}
