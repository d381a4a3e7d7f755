package typed_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"

	"github.com/rvinformer/informer/factory"
	"github.com/rvinformer/informer/informertest"
	"github.com/rvinformer/informer/internal/leaf/claims"
)

// The registry of package factory looks through the typed informers that client-go's factory has
// from 0.37 on.
func TestRegistryHasItsWatchErrorHandlerInTypedInformers(t *testing.T) {
	for name, set := range map[string]bool{"none was set": false, "one was set": true} {
		bubbleRun(t, name, informertest.Options{}, func(t *testing.T, s *informertest.Server) {
			s.Inject(informertest.Fault{Match: informertest.Match{Verbs: []string{"list", "watch", "watch-list"}}, Effect: informertest.Status(403)})
			registry := factory.New()
			defer registry.Shutdown()
			var calls atomic.Int32
			lease, err := registry.Acquire(pods, factory.InformerOptions{}, func() cache.SharedIndexInformer {
				pods := informers.NewSharedInformerFactory(client(t, s), 0).Core().V1().Pods()
				wrapper := pods.Informer()
				require.Equal(t, claims.IdentityOf(pods.Informer()), claims.IdentityOf(wrapper))
				if set {
					require.NoError(t, wrapper.SetWatchErrorHandlerWithContext(func(context.Context, *cache.Reflector, error) { calls.Add(1) }))
				}
				return wrapper
			})
			require.NoError(t, err)
			require.NoError(t, lease.Start())
			time.Sleep(time.Minute)
			require.Equal(t, set, calls.Load() > 0)
			if set {
				require.NoError(t, lease.Status().LastError)
			} else {
				require.Equal(t, factory.ErrorForbidden, lease.Status().ErrorClass())
			}
		})
	}
}
