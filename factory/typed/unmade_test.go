package typed_test

import (
	"reflect"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	coreinformers "k8s.io/client-go/informers/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/cache"

	"github.com/rvinformer/informer/factory/typed"
)

// A request while another one's newFunc is about to panic has an informer that is started as any
// other.
func TestInformerAfterOneThatWasNotMade(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := typed.New(fake.NewClientset(), 0)
		calls, goOn := 0, make(chan struct{})
		newFunc := func(c kubernetes.Interface, resync time.Duration) cache.SharedIndexInformer {
			if calls++; calls == 1 {
				<-goOn
				panic("the first")
			}
			return coreinformers.NewSecretInformer(c, "", resync, cache.Indexers{})
		}
		go func() {
			defer func() { _ = recover() }()
			f.InformerFor(&corev1.Secret{}, newFunc)
		}()
		synctest.Wait()
		go f.InformerFor(&corev1.Secret{}, newFunc)
		synctest.Wait()
		close(goOn)
		synctest.Wait()
		require.Equal(t, 2, calls)

		stop := make(chan struct{})
		f.Start(stop)
		require.Equal(t, map[reflect.Type]bool{reflect.TypeFor[*corev1.Secret](): true}, f.WaitForCacheSync(stop))
		close(stop)
		f.Shutdown()
	})
}

// Of an object, InformerFor needs the type: a pointer to nothing has one.
func TestInformerOfAPointerToNothing(t *testing.T) {
	f := typed.New(fake.NewClientset(), 0)
	defer f.Shutdown()
	pods := f.Core().V1().Pods().Informer()
	require.Same(t, pods.GetStore(), f.InformerFor((*corev1.Pod)(nil), nil).GetStore())
	newFunc := func(c kubernetes.Interface, resync time.Duration) cache.SharedIndexInformer {
		return coreinformers.NewSecretInformer(c, "", resync, nil)
	}
	require.Same(t, f.InformerFor((*corev1.Secret)(nil), newFunc), f.InformerFor(&corev1.Secret{}, nil))
}
