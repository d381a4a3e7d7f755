package e2e

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/e2e/cluster"
)

// settings are the ways that an informer can be asked to list.
var settings = []struct {
	name   string
	config informer.InformerConfig
}{
	{"auto", informer.InformerConfig{}},
	{"watch-list, a small budget", informer.InformerConfig{ListMode: informer.ListModeWatchList, Budget: informer.NewBudget(20_000)}},
	{"raw", informer.InformerConfig{ExampleObject: &informer.RawObject{}}},
	{"raw, paged", informer.InformerConfig{ExampleObject: &informer.RawObject{}, ListMode: informer.ListModePaged}},
	{"metadata", informer.InformerConfig{ExampleObject: &metav1.PartialObjectMetadata{}}},
	{"metadata, paged", informer.InformerConfig{ExampleObject: &metav1.PartialObjectMetadata{}, ListMode: informer.ListModePaged}},
	{"paged", informer.InformerConfig{ListMode: informer.ListModePaged}},
	{"full", informer.InformerConfig{ListMode: informer.ListModeFull}},
	{"forced pages", informer.InformerConfig{ForcePaginatedList: true}},
	{"streamed pages, four workers", informer.InformerConfig{
		ForcePaginatedList: true, StreamHandleForPaginatedList: true, Workers: 4,
	}},
}

func TestColdStartOnPods(t *testing.T) {
	ctx := testContext(t)
	c := usual.Get(t)
	n := 5000
	if testing.Short() {
		n = 1000
	}
	testColdStart(ctx, t, c, newPods(ctx, t, c, n), n)
}

func TestColdStartOnCustomResources(t *testing.T) {
	ctx := testContext(t)
	c := usual.Get(t)
	testColdStart(ctx, t, c, newWidgets(ctx, t, c, 1000), 1000)
}

func TestColdStartOnNothing(t *testing.T) {
	ctx := testContext(t)
	c := usual.Get(t)
	testColdStart(ctx, t, c, newPods(ctx, t, c, 0), 0)
}

func testColdStart(ctx context.Context, t *testing.T, c *cluster.Cluster, objects *cluster.Objects, n int) {
	for _, setting := range sample(settings, 3) {
		t.Run(setting.name, func(t *testing.T) {
			config := setting.config
			config.ListerWatcher = source(t, c.Config(), objects)
			config.Storage = informer.NewResourceVersionStorage()
			s := start(ctx, t, newMirror(nil), config)
			s.waitSynced(ctx, t)
			// Synced means delivered, so that nothing is to be waited for.
			requireSame(t, versions(ctx, t, objects), s.mirror.known())
			require.Equal(t, n, s.mirror.counts()[added])
			require.Len(t, s.mirror.all(), n)
			for _, e := range s.mirror.all() {
				require.True(t, e.initial, "%v", e)
			}
			require.Equal(t, n, config.Storage.Len())
			requireStored(t, config.Storage, s.mirror.known())
			require.Empty(t, s.reported())
			require.NotEmpty(t, s.informer.LastSyncResourceVersion())
			if config.ListMode == informer.ListModeAuto && !config.ForcePaginatedList {
				require.NoError(t, s.informer.Status().Fallback)
				require.Equal(t, informer.ListModeWatchList, s.informer.Status().ListMode)
			}
			s.requireEqual(ctx, t, objects)
		})
	}
}

// requireStored checks that the storage has exactly what was acknowledged.
func requireStored(t *testing.T, storage *informer.ResourceVersionStorage, want map[string]cluster.Version) {
	t.Helper()
	rvs := make(map[string]string, len(want))
	for key, version := range want {
		rvs[key] = version.ResourceVersion
	}
	stored := make(map[string]string, storage.Len())
	for key, rv := range storage.All() {
		stored[key] = rv
	}
	require.Equal(t, rvs, stored)
}
