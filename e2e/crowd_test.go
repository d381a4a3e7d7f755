package e2e

import (
	"context"
	"fmt"
	"net/url"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/e2e/cluster"
)

// crowdSize is the number of informers of a crowd, each with a watch of its own.
const crowdSize = 1000

// crowd is many informers of one DynamicListerWatcherFactory that follow the same few pods.
type crowd struct {
	c         *cluster.Cluster
	pods      *cluster.Objects
	informers []informer.ResourceVersionInformer
	told      []atomic.Int64 // what each has added, updated or deleted
	synced    time.Time
}

// startCrowd returns when all informers are synced and watch. They end with the test.
func startCrowd(ctx context.Context, t *testing.T, c *cluster.Cluster, config *rest.Config) *crowd {
	t.Helper()
	cr := &crowd{c: c, pods: newPods(ctx, t, c, 1), told: make([]atomic.Int64, crowdSize)}
	factory, err := informer.NewDynamicListerWatcherFactory(config)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	t.Cleanup(func() {
		cancel()
		running.Wait()
	})
	began := time.Now()
	for i := range crowdSize {
		one := informer.NewResourceVersionInformer(fmt.Sprintf("crowd %d", i), informer.InformerConfig{
			ListerWatcher: factory.ForResource(cr.pods.Namespace, cr.pods.Resource),
			Handler:       counting(&cr.told[i]),
			ErrorHandler:  func(*informer.Reflector, error) {},
		})
		cr.informers = append(cr.informers, one)
		running.Go(func() { one.RunWithContext(ctx) })
	}
	for _, i := range cr.informers {
		select {
		case <-i.HasSyncedChecker().Done():
		case <-ctx.Done():
			require.NoError(t, context.Cause(ctx))
		}
	}
	cr.synced = time.Now()
	t.Logf("%d informers were synced within %v", crowdSize, cr.synced.Sub(began))
	cr.requireTold(ctx, t) // an informer that had to list in pages is synced before it watches
	return cr
}

// requireTold creates a pod, and returns when all informers were told of it, and of nothing else.
func (cr *crowd) requireTold(ctx context.Context, t *testing.T) {
	t.Helper()
	var failed error
	before := make([]int64, crowdSize)
	for i := range cr.told {
		before[i] = cr.told[i].Load()
	}
	began := time.Now()
	name := cluster.Name(int(began.UnixMilli()))
	pods, err := cr.c.Pods(cr.pods.Namespace) // with the authority of now
	require.NoError(t, err)
	err = wait.PollUntilContextTimeout(ctx, time.Second, quietTimeout, true, func(ctx context.Context) (bool, error) {
		// A server with so much to do may answer too late.
		failed = pods.Create(ctx, name)
		return failed == nil || apierrors.IsAlreadyExists(failed), nil
	})
	require.NoError(t, err, "%v", failed)
	missing := 0
	err = wait.PollUntilContextTimeout(ctx, quietPoll, quietTimeout, true, func(context.Context) (bool, error) {
		missing = 0
		for i := range cr.told {
			if cr.told[i].Load() == before[i] {
				missing++
			}
		}
		return missing == 0, nil
	})
	require.NoError(t, err, "%d informers were not told", missing)
	for i := range cr.told {
		require.Equal(t, before[i]+1, cr.told[i].Load(), "what informer %d was told", i)
	}
	t.Logf("an event reached %d informers within %v", crowdSize, time.Since(began))
}

// awaitWatches returns when all informers watch that have asked since a moment, with a credential
// unless it is empty.
func (cr *crowd) awaitWatches(ctx context.Context, t *testing.T, since time.Time, credential string) {
	t.Helper()
	watches := 0
	err := wait.PollUntilContextTimeout(ctx, time.Second, quietTimeout, true, func(context.Context) (bool, error) {
		watches = 0
		for _, a := range cr.audited(t, since) {
			if a.Verb == "watch" && (credential == "" || a.Credential == credential) {
				watches++
			}
		}
		return watches >= crowdSize, nil
	})
	require.NoError(t, err, "%d watches", watches)
	t.Logf("%d watches %v after", watches, time.Since(since))
}

// requireOnly requires that the server has received nothing since a moment but with a credential.
func (cr *crowd) requireOnly(t *testing.T, since time.Time, credential string) {
	t.Helper()
	for _, a := range cr.audited(t, since) {
		require.Equal(t, credential, a.Credential, "%s %v after", a.URI, a.Received.Sub(since))
	}
}

// requireNotListed requires that no set was listed since all were synced.
func (cr *crowd) requireNotListed(t *testing.T) {
	t.Helper()
	for _, a := range cr.audited(t, cr.synced) {
		asked, err := url.Parse(a.URI)
		require.NoError(t, err)
		e := exchange{path: asked.Path, query: asked.Query()}
		require.False(t, e.isSet(), a.URI)
	}
}

// audited are the lists and watches that the server has received since a moment.
func (cr *crowd) audited(t *testing.T, since time.Time) (all []cluster.Audited) {
	t.Helper()
	logged, err := cr.c.Audited(cr.pods.Namespace)
	require.NoError(t, err)
	for _, a := range logged {
		if a.Received.After(since) {
			all = append(all, a)
		}
	}
	return all
}
