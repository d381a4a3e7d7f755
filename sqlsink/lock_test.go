package sqlsink_test

import (
	"testing"
	"time"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/sqlsink"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Two informers of two namespaces do not write to one place: the second one waits, and says why, also
// after the first one has ended. The rows of the first stay when it starts again.
func TestPlaceHasOneInformer(t *testing.T) {
	overBoth(t, func(t *testing.T, address string) {
		cluster := newCluster(t, 0)
		for _, namespace := range []string{"a", "b"} {
			for _, name := range []string{"1", "2", "3"} {
				_, err := cluster.Create(pods, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}})
				require.NoError(t, err)
			}
		}
		here := opened(t, sqlsink.Config{Address: address}).Place("here", pods)
		of := func(namespace string) informer.InformerConfig {
			return informer.InformerConfig{ListerWatcher: listing(t, cluster, namespace, pods)}
		}
		requireWaits := func(i informer.ResourceVersionInformer, reason error) {
			t.Helper()
			require.Eventually(t, func() bool { return i.HasSynced() || i.Status().CheckpointError != nil }, soon, 10*time.Millisecond)
			require.ErrorIs(t, i.Status().CheckpointError, reason)
		}
		first, stop := filling(t, here, of("a"))
		requireSynced(t, first)
		second, stopSecond := filling(t, here, of("b"))
		requireWaits(second, informer.ErrCheckpointInUse)
		require.ErrorContains(t, second.Status().CheckpointError, "a place has one, of one namespace and selector")
		stop()
		stopSecond()

		second, stopSecond = filling(t, here, of("b"))
		requireWaits(second, informer.ErrCheckpointSource)
		stopSecond()

		first, _ = filling(t, here, of("a"))
		requireSynced(t, first)
		require.NotEmpty(t, first.Status().ResumedFrom)
		require.Len(t, stored(t, here), 3)
	})
}
