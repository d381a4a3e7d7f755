package objectcache_test

import (
	"bytes"
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/textlogger"

	"github.com/rvinformer/informer/objectcache"
)

// The log says how many objects the store has, and does not count those that were skipped.
func TestLogOfSyncCountsStoredObjects(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		refused := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "refused"}}
		lw := &cache.ListWatch{
			ListWithContextFunc: func(context.Context, metav1.ListOptions) (runtime.Object, error) {
				return &corev1.PodList{ListMeta: metav1.ListMeta{ResourceVersion: "5"}, Items: []corev1.Pod{refused, *podNamed("a"), refused}}, nil
			},
			WatchFuncWithContext: func(context.Context, metav1.ListOptions) (watch.Interface, error) { return watch.NewFake(), nil },
		}
		var log bytes.Buffer
		logger := textlogger.NewLogger(textlogger.NewConfig(textlogger.Output(&log)))
		ctx, cancel := context.WithCancel(klog.NewContext(t.Context(), logger))
		i := newInformer(lw, &corev1.Pod{}, objectcache.Options{Transform: func(obj interface{}) (interface{}, error) {
			if obj.(*corev1.Pod).Name == "refused" {
				return nil, errors.New("refused")
			}
			return obj, nil
		}})
		var running sync.WaitGroup
		running.Go(func() { i.RunWithContext(ctx) })
		synctest.Wait()
		require.True(t, i.HasSynced())
		cancel()
		running.Wait()
		require.Equal(t, []string{"a"}, i.GetStore().ListKeys())
		require.Contains(t, log.String(), `"Informer is synced" informer="*v1.Pod" objects=1 `)
	})
}
