package e2e

import (
	"context"
	"fmt"
	"maps"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"

	"github.com/rvinformer/informer/e2e/cluster"
	"github.com/rvinformer/informer/e2e/truth"
)

const (
	// trialNames is under how many names objects come and go in a trial.
	trialNames = 100
	// trialPause is between two writes.
	trialPause = 5 * time.Millisecond
	// quietTimeout is how long followers may take to come to rest when all faults are
	// over: a backoff is 30 s, and twice that at most. The rest is for a slow machine.
	quietTimeout = 4 * time.Minute
	quietPoll    = 50 * time.Millisecond
)

// trial is some informers under oracles that know what is written to etcd, while a
// writer writes and the test does its worst.
type trial struct {
	objects   *cluster.Objects
	truth     *truth.Recorder
	writer    *cluster.Writer
	followers []*follower
}

// newTrial begins to write, record and follow. Config is called for each follower.
func newTrial(ctx context.Context, t *testing.T, c *cluster.Cluster, objects *cluster.Objects, ways []way, config func() *rest.Config) *trial {
	t.Helper()
	recorder, err := truth.Follow(ctx, c.EtcdURL(), objects.Resource, objects.Namespace)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, recorder.Close()) })
	tr := &trial{objects: objects, truth: recorder}
	for _, w := range ways {
		f := newFollower(t, w, config(), objects)
		recorder.Attach(f.oracle)
		f.start(ctx)
		t.Cleanup(func() {
			assert.NoError(t, f.stop(), f.name)
			if t.Failed() {
				f.show(t, 30)
			}
		})
		tr.followers = append(tr.followers, f)
	}
	tr.writer = objects.StartWriter(ctx, trialNames, trialPause)
	t.Cleanup(func() { _ = tr.writer.Stop() })
	return tr
}

// judge ends the writing, waits until all is quiet, and lets the oracles judge. All faults are over
// by then. On a slow machine, a follower may have been told few events: the writing goes on until
// they are enough to judge by.
func (tr *trial) judge(ctx context.Context, t *testing.T) {
	t.Helper()
	require.NoError(t, tr.writer.Await(ctx, 30), "the server is there again")
	for _, f := range tr.followers {
		for f.told.Load() < trialNames {
			require.NoError(t, tr.writer.Await(ctx, 1), "%s was told %d events", f.name, f.told.Load())
		}
		f.stay()
	}
	tr.writer.Stop()
	require.NoError(t, tr.objects.Create(ctx, cluster.Name(firstCreated)))
	tr.rest(ctx, t)
	for _, f := range tr.followers {
		_, storage := f.now()
		f.oracle.Settled(maps.Collect(storage.All()))
		f.requireJudged(t)
	}
}

// rest returns when all followers are quiet. Where one is not, what its oracle says
// tells more.
func (tr *trial) rest(ctx context.Context, t *testing.T) {
	t.Helper()
	var last error
	err := wait.PollUntilContextTimeout(ctx, quietPoll, quietTimeout, true, func(ctx context.Context) (bool, error) {
		if _, err := tr.truth.Reach(ctx); err != nil {
			return false, err
		}
		versions := tr.truth.Versions()
		last = nil
		for _, f := range tr.followers {
			if err := f.quiet(versions); err != nil {
				last = fmt.Errorf("%s: %w", f.name, err)
			}
		}
		return last == nil, nil
	})
	assert.NoError(t, err, "all are quiet (%v)", last)
}

// awaitErrors returns when each follower has seen a request fail since it was called.
func (tr *trial) awaitErrors(ctx context.Context, t *testing.T) {
	t.Helper()
	failed := func(e exchange) bool { return e.err != nil || e.status >= 400 }
	for _, f := range tr.followers {
		f.seen.Lock()
		before := f.seen.cuts + f.seen.countLocked(failed)
		f.seen.Unlock()
		err := f.seen.await(ctx, f.name+" has seen a fault", func() bool {
			return f.seen.cuts+f.seen.countLocked(failed) > before
		})
		require.NoError(t, err)
	}
}

// startCluster starts a cluster that the test has for itself.
func startCluster(ctx context.Context, t *testing.T, flags ...string) *cluster.Cluster {
	t.Helper()
	options := usual.Options
	options.APIServerFlags = flags
	c, err := cluster.Start(ctx, options)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, c.Close()) })
	c.ShowLogs(t) // before its logs go with it
	return c
}
