package typed

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/informertest"
)

// Stop of a watch that brings nothing does not wait for its context.
func TestStopOfAQuietWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := informertest.NewServer(informertest.Options{InMemory: true})
		defer s.Close()
		lists, err := informer.NewDynamicListerWatcherFactory(s.Config())
		require.NoError(t, err)
		pods := schema.GroupVersionResource{Version: "v1", Resource: "pods"}
		w, err := newListerWatcher(lists.ForResource("", pods), &corev1.Pod{}).Watch(metav1.ListOptions{ResourceVersion: "1"})
		require.NoError(t, err)
		begin := time.Now()
		synctest.Wait()
		w.Stop()
		require.Zero(t, time.Since(begin))
		_, open := <-w.ResultChan()
		require.False(t, open)
	})
}
