package objectcache_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"github.com/rvinformer/informer/internal/testkit/samples"
	"github.com/rvinformer/informer/objectcache"
)

// TestWaitingChangesKeepLittle bounds what a change of a pod of 3.4 KB keeps in memory while it
// waits for a handler: its own compressed bytes, and not those of objects that were stored beside
// it. QueuedBytes says how much it is.
func TestWaitingChangesKeepLittle(t *testing.T) {
	const objects, rounds, most = 2000, 3, 1300
	cluster := samples.Cluster{Seed: 1}
	events := watch.NewFake()
	lw := cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{
		ListFunc: func(metav1.ListOptions) (apiruntime.Object, error) {
			list := &corev1.PodList{}
			for _, pod := range cluster.Pods(0, objects, 0) {
				list.Items = append(list.Items, *pod)
			}
			return list, nil
		},
		WatchFunc: func(metav1.ListOptions) (watch.Interface, error) { return events, nil },
	}, noWatchLists{})
	i := newInformer(lw, &corev1.Pod{}, objectcache.Options{HotBytes: -1})
	waiting, done := make(chan struct{}), make(chan struct{})
	goOn := sync.OnceFunc(func() { close(waiting) })
	last, updates := map[string]string{}, 0
	_, err := i.AddChangeHandler(func(c objectcache.Change) {
		<-waiting
		obj, err := c.New.Decode()
		if !assert.NoError(t, err) {
			return
		}
		if !c.Old.IsZero() {
			updates++
			old, err := c.Old.Decode()
			assert.NoError(t, err)
			assert.Equal(t, last[c.Key], old.(*corev1.Pod).ResourceVersion)
		}
		last[c.Key] = obj.(*corev1.Pod).ResourceVersion
		if updates == objects*rounds {
			close(done)
		}
	}, cache.HandlerOptions{})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { i.RunWithContext(ctx) })
	defer running.Wait()
	defer cancel()
	defer goOn()
	<-i.HasSyncedChecker().Done()

	before := liveBytes() - i.Store().SizeBytes()
	queued, calls := i.Status().QueuedBytes, i.Status().Queued
	for round := 1; round <= rounds; round++ {
		for n := range objects {
			events.Modify(cluster.Pod(n*7919%objects, round))
		}
		// The encoder keeps memory in use until the last object is stored. That memory does not
		// wait.
		require.Eventually(t, func() bool { return i.Status().Queued == calls+round*objects }, time.Minute, time.Millisecond)
		each := float64(liveBytes()-i.Store().SizeBytes()-before) / float64(round*objects)
		t.Logf("%d updates of each object wait: %.0f bytes for each update", round, each)
		require.Less(t, each, float64(most))
		require.InEpsilon(t, each, float64(i.Status().QueuedBytes-queued)/float64(round*objects), 0.1)
	}
	goOn()
	<-done
	cancel()
	running.Wait()
	require.Zero(t, i.Status().QueuedBytes)
	require.Zero(t, i.Status().Queued)
}
