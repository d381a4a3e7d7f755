package e2e

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/e2e/cluster"
)

// A stream of HTTP/2 buffers 4 MiB on the client's side. An answer that must
// not have arrived when its server dies has to be larger by a good deal.
const (
	padding     = 20 << 10 // of each pod
	largePods   = 600      // 12 MiB
	halfOfThem  = 300      // 6 MiB
	manyChanges = 400      // 8 MiB
	someBytes   = 1 << 20  // of an answer, after which its server dies
)

// The API server dies while the first answer is read, and in pages while the
// second page is. That page is had again, with the same token or a new list.
func TestServerKilledInTheMiddleOfAList(t *testing.T) {
	ctx := testContext(t)
	c := usual.Get(t)
	pods := newLargePods(ctx, t, c, largePods)
	answers := []struct {
		name   string
		is     func(exchange) bool
		config informer.InformerConfig
	}{
		{"auto", exchange.isAny, informer.InformerConfig{}},
		{"full", exchange.isWhole, informer.InformerConfig{ListMode: informer.ListModeFull}},
		{"first page", exchange.isFirstPage, informer.InformerConfig{ListMode: informer.ListModePaged}},
		{"second page", exchange.isPage, informer.InformerConfig{ListMode: informer.ListModePaged}},
		{"second forced page", exchange.isPage, informer.InformerConfig{ForcePaginatedList: true}},
	}
	for _, answer := range sample(answers, 1) {
		t.Run(answer.name, func(t *testing.T) {
			testKilledInTheMiddleOfAList(t, c, pods, answer.config, answer.is)
		})
	}
}

func testKilledInTheMiddleOfAList(t *testing.T, c *cluster.Cluster, pods *cluster.Objects, config informer.InformerConfig, during func(exchange) bool) {
	ctx := testContext(t)
	middle := newPause()
	seen := &tap{reading: func(ctx context.Context, e exchange, n int64) {
		if n >= someBytes && during(e) {
			middle.here(ctx)
		}
	}}
	config.ListerWatcher = source(t, uncompressed(seen, c), pods)
	config.WatchListPageSize = halfOfThem
	s := start(ctx, t, newMirror(nil), config)

	middle.await(ctx, t)
	outage(ctx, t, c, seen, middle)
	changeSome(ctx, t, pods)
	s.waitSynced(ctx, t)
	s.requireEqual(ctx, t, pods)
}

// The API server dies while changes are on their way, more than any buffer
// holds, after those that the informer has read.
func TestServerKilledInTheMiddleOfAWatch(t *testing.T) {
	const names, existing = 30, 20
	// Further settings are about lists, and watch as the second does.
	for _, setting := range sample(settings[:2], 1) {
		t.Run(setting.name, func(t *testing.T) {
			ctx := testContext(t)
			c := usual.Get(t)
			pods := newLargePods(ctx, t, c, existing)
			middle := newPause()
			seen := &tap{reading: func(ctx context.Context, e exchange, n int64) {
				// A watch-list begins with all objects, which are fewer bytes.
				if e.isWatch() && n >= someBytes {
					middle.here(ctx)
				}
			}}
			config := setting.config
			config.ListerWatcher = source(t, uncompressed(seen, c), pods)
			s := start(ctx, t, newMirror(nil), config)
			s.waitSynced(ctx, t)

			churn := pods.StartChurn(ctx, 8, names, existing)
			defer func() { require.NoError(t, churn.Stop()) }()
			middle.await(ctx, t)
			require.NoError(t, churn.Await(ctx, manyChanges))
			require.NoError(t, churn.Stop())
			outage(ctx, t, c, seen, middle)
			churn.Resume(ctx)
			require.NoError(t, churn.Await(ctx, 200))
			require.NoError(t, churn.Stop())
			s.requireEqual(ctx, t, pods)
		})
	}
}

func newLargePods(ctx context.Context, t *testing.T, c *cluster.Cluster, n int) *cluster.Objects {
	t.Helper()
	pods := newPods(ctx, t, c, 0)
	pods.Padding = padding
	require.NoError(t, pods.Fill(ctx, n))
	return pods
}

// uncompressed keeps answers as large as they are.
func uncompressed(seen *tap, c *cluster.Cluster) *rest.Config {
	config := seen.install(c.Config())
	config.DisableCompression = true
	return config
}

// outage kills the server of an informer that paused in the middle of an
// answer, and starts it again when the informer has asked in vain.
func outage(ctx context.Context, t *testing.T, c *cluster.Cluster, seen *tap, middle *pause) {
	t.Helper()
	require.NoError(t, c.KillAPIServer())
	middle.goOn()
	failed := func(e exchange) bool { return e.err != nil }
	met := seen.await(ctx, "the informer asked while the server was down", func() bool {
		return seen.cuts > 0 && seen.countLocked(failed) > 0
	})
	// The next tests need a server, whatever became of this one.
	require.NoError(t, c.StartAPIServer(context.WithoutCancel(ctx)))
	require.NoError(t, met)
}
