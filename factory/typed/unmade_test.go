package typed_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	coreinformers "k8s.io/client-go/informers/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/cache"

	"github.com/rvinformer/informer/factory/typed"
)

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
