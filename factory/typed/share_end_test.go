package typed_test

import (
	"context"
	"reflect"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	theirs "k8s.io/client-go/informers"
	coreinformers "k8s.io/client-go/informers/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/cache"

	"github.com/rvinformer/informer/factory"
	"github.com/rvinformer/informer/factory/typed"
	"github.com/rvinformer/informer/informertest"
)

// blocking is a handler whose first call waits.
func blocking() (h cache.ResourceEventHandlerFuncs, calls *atomic.Int32, goOn chan struct{}) {
	calls, goOn = &atomic.Int32{}, make(chan struct{})
	h.AddFunc = func(any) {
		if calls.Add(1) == 1 {
			<-goOn
		}
	}
	return h, calls, goOn
}

// runs reports whether the registry has an informer of pods that was started.
func runs(registry *factory.Factory) bool {
	for _, s := range registry.Statuses() {
		if !s.Started.IsZero() {
			return true
		}
	}
	return false
}

// A request between the end of an informer and its last handler's return gets an informer
// that does not run, and the old one ends.
func TestRequestWhileHandlersReturnDoesNotKeepTheInformer(t *testing.T) {
	bubble(t, informertest.Options{}, func(t *testing.T, s *informertest.Server) {
		create(t, s, "one")
		registry := factory.New()
		f := over(s, typed.WithFactory(registry))
		h, calls, goOn := blocking()
		i := f.Core().V1().Pods().Informer()
		_, err := i.AddEventHandler(h)
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		f.StartWithContext(ctx)
		synctest.Wait()
		require.EqualValues(t, 1, calls.Load())

		cancel()
		synctest.Wait()
		require.True(t, i.IsStopped())
		next := f.Core().V1().Pods().Informer()
		require.False(t, next.IsStopped())
		close(goOn)
		synctest.Wait()
		require.False(t, runs(registry))

		watched := watches(s)
		stop := started(t, f)
		require.Equal(t, watched+1, watches(s))
		stop()
	})
}

// Two factories that share an informer for as long as one context lasts do not keep it for each
// other, whichever is asked first after the end of the context.
func TestRequestsOfTwoFactoriesAtTheEndDoNotKeepTheInformer(t *testing.T) {
	bubble(t, informertest.Options{}, func(t *testing.T, s *informertest.Server) {
		for range 20 {
			registry := factory.New()
			one, other := over(s, typed.WithFactory(registry)), over(s, typed.WithFactory(registry))
			ctx, cancel := context.WithCancel(t.Context())
			former := one.Core().V1().Pods().Informer()
			require.Same(t, former.GetStore(), other.Core().V1().Pods().Informer().GetStore())
			one.StartWithContext(ctx)
			other.StartWithContext(ctx)
			synced(t, one)

			cancel()
			var asks sync.WaitGroup
			asks.Go(func() { one.Core().V1().Pods().Informer() })
			asks.Go(func() { other.Core().V1().Pods().Informer() })
			asks.Wait()
			synctest.Wait()
			require.False(t, runs(registry))
			one.Shutdown()
			other.Shutdown()
		}
	})
}

// A factory that is asked and started again right after the end of a context follows again.
func TestStartRightAfterTheEndOfAContext(t *testing.T) {
	bubble(t, informertest.Options{}, func(t *testing.T, s *informertest.Server) {
		create(t, s, "one")
		f := over(s)
		for range 20 {
			i := f.Core().V1().Pods().Informer()
			cancel := follows(t, f)
			require.False(t, i.IsStopped())
			require.Equal(t, []string{"default/one"}, keys(i))
			cancel()
		}
		f.Shutdown()
	})
}

// slow is an informer whose AddEventHandler returns late.
type slow struct {
	cache.SharedIndexInformer
	goOn chan struct{}
}

func (s slow) AddEventHandlerWithOptions(h cache.ResourceEventHandler, o cache.HandlerOptions) (cache.ResourceEventHandlerRegistration, error) {
	handle, err := s.SharedIndexInformer.AddEventHandlerWithOptions(h, o)
	<-s.goOn
	return handle, err
}

// Shutdown waits for a handler that is being added to an informer that others keep, and it is
// called no more after that. Client-go's informers tell when that is from 0.37 on.
func TestNoCallAfterShutdownOfAHandlerThatWasBeingAdded(t *testing.T) {
	needs037(t)
	bubble(t, informertest.Options{}, func(t *testing.T, s *informertest.Server) {
		create(t, s, "one")
		registry := factory.New()
		goOn := make(chan struct{})
		keeper, err := registry.Acquire(pods, factory.InformerOptions{}, func() cache.SharedIndexInformer {
			return slow{theirs.NewSharedInformerFactory(client(t, s), 0).Core().V1().Pods().Informer(), goOn}
		})
		require.NoError(t, err)
		require.NoError(t, keeper.Start())
		f := over(s, typed.WithFactory(registry))
		i := f.Core().V1().Pods().Informer()
		cancel := follows(t, f)

		h, calls, handled := blocking()
		added := make(chan error, 1)
		go func() {
			_, err := i.AddEventHandler(h)
			added <- err
		}()
		synctest.Wait()
		require.EqualValues(t, 1, calls.Load())
		cancel()
		down := make(chan struct{})
		go func() { f.Shutdown(); close(down) }()
		close(goOn)
		synctest.Wait()
		<-added
		require.False(t, isClosed(down))
		close(handled)
		<-down
		last := calls.Load()
		create(t, s, "two")
		time.Sleep(time.Second)
		require.Equal(t, last, calls.Load())
		<-keeper.Release()
	})
}

// Shutdown waits for the call of a handler that was removed in it.
func TestShutdownWaitsForTheCallOfARemovedHandler(t *testing.T) {
	bubble(t, informertest.Options{}, func(t *testing.T, s *informertest.Server) {
		create(t, s, "one")
		create(t, s, "two")
		registry := factory.New()
		f, other := over(s, typed.WithFactory(registry)), over(s, typed.WithFactory(registry))
		other.Core().V1().Pods().Informer()
		i := f.Core().V1().Pods().Informer()
		h, calls, goOn := blocking()
		handle, err := i.AddEventHandler(h)
		require.NoError(t, err)
		stop := make(chan struct{})
		f.Start(stop)
		defer started(t, other)()
		synctest.Wait()
		require.NoError(t, i.RemoveEventHandler(handle))
		close(stop)
		down := make(chan struct{})
		go func() { f.Shutdown(); close(down) }()
		synctest.Wait()
		require.False(t, isClosed(down))
		close(goOn)
		<-down
		last := calls.Load()
		create(t, s, "three")
		time.Sleep(time.Second)
		require.Equal(t, last, calls.Load())
	})
}

// Shutdown of the last factory returns after the end of the informer, whatever is asked meanwhile.
func TestShutdownOverASharedRegistryWaitsForTheInformer(t *testing.T) {
	for range 100 {
		registry := factory.New()
		f := typed.New(fake.NewClientset(), 0, typed.WithFactory(registry))
		lease, err := f.Acquire(pods)
		require.NoError(t, err)
		f.Core().V1().Pods().Informer()
		ctx, cancel := context.WithCancel(t.Context())
		f.StartWithContext(ctx)
		lease.Release()
		var asks sync.WaitGroup
		for range 4 {
			asks.Go(func() { f.Core().V1().Pods().Informer() })
		}
		cancel()
		f.Shutdown()
		require.True(t, isClosed(lease.Done()))
		asks.Wait()
	}
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// A request gets the informer of its own newFunc where the one before has failed. It is started as any
// other.
func TestRequestDoesNotFailWithTheNewFuncOfAnotherOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := typed.New(fake.NewClientset(), 0)
		goOn := make(chan struct{})
		var failed, made atomic.Int32
		go func() {
			defer func() { _ = recover() }()
			f.InformerFor(&corev1.Secret{}, func(kubernetes.Interface, time.Duration) cache.SharedIndexInformer {
				<-goOn
				failed.Add(1)
				panic("the first one's")
			})
		}()
		synctest.Wait()
		for range 5 {
			go func() {
				f.InformerFor(&corev1.Secret{}, func(c kubernetes.Interface, resync time.Duration) cache.SharedIndexInformer {
					return coreinformers.NewSecretInformer(c, "", resync, cache.Indexers{})
				})
				made.Add(1)
			}()
		}
		synctest.Wait()
		close(goOn)
		synctest.Wait()
		require.EqualValues(t, 1, failed.Load())
		require.EqualValues(t, 5, made.Load())
		stop := make(chan struct{})
		f.Start(stop)
		require.Equal(t, map[reflect.Type]bool{reflect.TypeFor[*corev1.Secret](): true}, f.WaitForCacheSync(stop))
		close(stop)
		f.Shutdown()
	})
}

// A handler may ask an informer of client-go something while the registry stops it, also when
// the context ends at that moment.
func TestHandlerMayAskWhileItsClusterIsStopped(t *testing.T) {
	bubble(t, informertest.Options{}, func(t *testing.T, s *informertest.Server) {
		create(t, s, "one")
		registry := factory.New()
		f := typed.New(client(t, s), 0, typed.WithFactory(registry))
		i := f.Core().V1().Pods().Informer()
		called, goOn := make(chan struct{}), make(chan struct{})
		_, err := i.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: func(any) {
			close(called)
			<-goOn
			_ = i.LastSyncResourceVersion()
			_ = i.IsStopped()
			_ = i.AddIndexers(nil)
		}})
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		f.StartWithContext(ctx)
		<-called
		registry.StopCluster("")
		synctest.Wait()
		cancel()
		synctest.Wait()
		close(goOn)
		f.Shutdown()
		require.Empty(t, registry.Statuses())
	})
}
