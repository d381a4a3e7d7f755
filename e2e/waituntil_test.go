package e2e

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/objectcache"
)

// A write is acknowledged, and readable, when WaitUntil has returned for its version, and so is its
// deletion.
func TestWriteThenWaitThenRead(t *testing.T) {
	ctx := testContext(t)
	c := usual.Get(t)
	pods := newPods(ctx, t, c, 50)
	client, err := kubernetes.NewForConfig(c.Config())
	require.NoError(t, err)
	storage := informer.NewResourceVersionStorage()
	s := start(ctx, t, newMirror(nil), informer.InformerConfig{ListerWatcher: source(t, c.Config(), pods), Storage: storage})
	cached := objectcache.NewSharedIndexInformerWithOptions(source(t, c.Config(), pods), &corev1.Pod{}, objectcache.Options{})
	running, stop := context.WithCancel(ctx)
	var cache sync.WaitGroup
	defer cache.Wait()
	defer stop()
	cache.Go(func() { cached.RunWithContext(running) })

	for n := range 100 {
		name := fmt.Sprintf("own-%d", n%10)
		key := pods.Namespace + "/" + name
		config := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"n": fmt.Sprint(n)}}}
		config.Spec.Containers = []corev1.Container{{Name: "c", Image: "i"}}
		began := time.Now()
		written, err := client.CoreV1().Pods(pods.Namespace).Create(ctx, config, metav1.CreateOptions{})
		require.NoError(t, err)
		require.NoError(t, s.informer.WaitUntil(ctx, written.ResourceVersion))
		require.NoError(t, cached.WaitUntil(ctx, written.ResourceVersion))
		require.Equal(t, written.ResourceVersion, maps.Collect(storage.All())[key])
		obj, exists, err := cached.GetStore().GetByKey(key)
		require.NoError(t, err)
		require.True(t, exists)
		require.Equal(t, written.ResourceVersion, obj.(*corev1.Pod).ResourceVersion)
		require.Less(t, time.Since(began), 30*time.Second, "it comes with its event, not with a bookmark")

		now := metav1.DeleteOptions{GracePeriodSeconds: new(int64)}
		require.NoError(t, client.CoreV1().Pods(pods.Namespace).Delete(ctx, name, now))
		list, err := client.CoreV1().Pods(pods.Namespace).List(ctx, metav1.ListOptions{Limit: 1})
		require.NoError(t, err)
		if n%50 == 0 { // another resource may have moved the version on, so that it takes a bookmark
			require.NoError(t, s.informer.WaitUntil(ctx, list.ResourceVersion))
			require.NoError(t, cached.WaitUntil(ctx, list.ResourceVersion))
			require.NotContains(t, maps.Collect(storage.All()), key)
			_, exists, err = cached.GetStore().GetByKey(key)
			require.NoError(t, err)
			require.False(t, exists)
		}
	}
	require.WithinDuration(t, time.Now(), s.informer.Status().CurrentAsOf, 90*time.Second)
	require.WithinDuration(t, time.Now(), cached.Status().CurrentAsOf, 90*time.Second)
}
