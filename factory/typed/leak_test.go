package typed_test

import (
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/tools/cache"

	"github.com/rvinformer/informer/factory"
	"github.com/rvinformer/informer/factory/typed"
	"github.com/rvinformer/informer/informertest"
	"github.com/rvinformer/informer/objectcache"
)

// Factories come and go over one registry, some of a server that hangs: they leave nothing in it,
// and no goroutine.
func TestFactoriesComeAndGo(t *testing.T) {
	goroutines := runtime.NumGoroutine()
	dead, alive := informertest.NewServer(informertest.Options{}), informertest.NewServer(informertest.Options{})
	create(t, alive, "one")
	dead.Inject(informertest.Fault{Match: informertest.Match{Verbs: []string{"list", "watch", "watch-list"}}, Effect: informertest.Hang()})
	registry := factory.New()
	var collected atomic.Int64
	const rounds = 200
	for n := range rounds {
		server := alive
		if n%4 == 0 {
			server = dead
		}
		options := []typed.SharedInformerOption{typed.WithFactory(registry), typed.WithCluster(fmt.Sprint(n))}
		if n%2 == 0 {
			options = append(options, typed.WithObjectCache(objectcache.Options{}))
		}
		f := over(server, options...)
		i := f.Core().V1().Pods().Informer()
		_, err := i.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: func(any) {}})
		require.NoError(t, err)
		f.Core().V1().ConfigMaps().Informer()
		runtime.AddCleanup(f, func(*atomic.Int64) { collected.Add(1) }, nil)
		stop := make(chan struct{})
		if n%5 != 0 {
			f.Start(stop)
		}
		if n%10 == 1 {
			synced(t, f)
		}
		if n%7 == 0 {
			registry.StopCluster(fmt.Sprint(n))
		}
		close(stop)
		f.Shutdown()
	}
	require.Empty(t, registry.Statuses())
	dead.Close()
	alive.Close()
	require.Eventually(t, func() bool {
		runtime.GC()
		return collected.Load() == rounds && runtime.NumGoroutine() <= goroutines+1 // that of Eventually
	}, 2*time.Minute, 10*time.Millisecond, "factories that are not collected, or goroutines that have not ended")
}
