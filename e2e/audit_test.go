package e2e

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/objectcache"
)

// Audits of informers that are right find nothing, while objects come, change and go under the same
// names.
func TestAuditWhileObjectsChange(t *testing.T) {
	const (
		names   = 600
		writers = 4
		audits  = 5
		enough  = 50 // writes between two audits
	)
	ctx := testContext(t)
	c := usual.Get(t)
	pods := newPods(ctx, t, c, names/2)
	s := start(ctx, t, newMirror(nil), informer.InformerConfig{ListerWatcher: source(t, c.Config(), pods)})
	cached := objectcache.NewSharedIndexInformerWithOptions(source(t, c.Config(), pods), &corev1.Pod{}, objectcache.Options{})
	running, stop := context.WithCancel(ctx)
	var cache sync.WaitGroup
	defer cache.Wait()
	defer stop()
	cache.Go(func() { cached.RunWithContext(running) })
	s.waitSynced(ctx, t)
	require.NoError(t, cached.WaitUntil(ctx, s.informer.Status().ResourceVersion))

	churn := pods.StartChurn(ctx, writers, names, names/2)
	for range audits {
		require.NoError(t, churn.Await(ctx, enough))
		for name, of := range map[string]interface {
			Audit(context.Context, informer.AuditOptions) (informer.AuditReport, error)
		}{"keys": s.informer, "objects": cached} {
			began := time.Now()
			report, err := of.Audit(ctx, informer.AuditOptions{})
			require.NoError(t, err, name)
			require.Zero(t, report.Differences(), "%s: %+v", name, report)
			require.Positive(t, report.Objects)
			require.NotEmpty(t, report.ResourceVersion)
			t.Logf("%s: %d objects in %v", name, report.Objects, time.Since(began))
		}
	}
	require.NoError(t, churn.Stop())
	s.requireEqual(ctx, t, pods)
}
