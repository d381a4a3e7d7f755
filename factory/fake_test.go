package factory_test

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/cache"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/factory"
)

// A client with no server behind it, as client-go's fakes are, will do, for informers of any kind.
func TestFakeClient(t *testing.T) {
	alone(t, func(t *testing.T, f *factory.Factory) {
		pod := func(name string) *corev1.Pod {
			return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
		}
		client := fake.NewClientset(pod("web"))
		shared, err := f.Acquire(pods, factory.InformerOptions{}, func() cache.SharedIndexInformer {
			return informers.NewSharedInformerFactory(client, 0).Core().V1().Pods().Informer()
		})
		require.NoError(t, err)
		told := &tally{}
		versions, err := f.AcquireResourceVersion(pods, factory.InformerOptions{}, func() informer.ResourceVersionInformer {
			return informer.NewResourceVersionInformer("pods", informer.InformerConfig{
				Handler:       told,
				ExampleObject: &corev1.Pod{},
				ListerWatcher: &cache.ListWatch{
					ListWithContextFunc: func(ctx context.Context, opts metav1.ListOptions) (runtime.Object, error) {
						return client.CoreV1().Pods("").List(ctx, opts)
					},
					WatchFuncWithContext: func(ctx context.Context, opts metav1.ListOptions) (watch.Interface, error) {
						return client.CoreV1().Pods("").Watch(ctx, opts)
					},
				},
			})
		})
		require.NoError(t, err)
		f.Start(nil)
		require.True(t, f.WaitForCacheSync(nil))
		synctest.Wait()
		_, err = client.CoreV1().Pods("default").Create(t.Context(), pod("db"), metav1.CreateOptions{})
		require.NoError(t, err)
		require.NoError(t, client.CoreV1().Pods("default").Delete(t.Context(), "web", metav1.DeleteOptions{}))
		synctest.Wait()
		require.Equal(t, []string{"default/db"}, shared.Informer.GetStore().ListKeys())
		require.Equal(t, []int32{2, 1}, []int32{told.added.Load(), told.deleted.Load()})
		for _, status := range []factory.Status{shared.Status(), versions.Status()} {
			require.Equal(t, informer.PhaseWatching, status.Phase, "%v", status)
		}
	})
}
