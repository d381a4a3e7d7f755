package factory_test

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/tools/cache"

	"github.com/rvinformer/informer/factory"
)

func TestNewFuncRunsOnceForAllWhoAskAtOnce(t *testing.T) {
	alone(t, func(t *testing.T, f *factory.Factory) {
		var calls atomic.Int32
		slow := make(chan struct{})
		newFunc := func() cache.SharedIndexInformer {
			calls.Add(1)
			<-slow
			return newStub()
		}
		var asking sync.WaitGroup
		var informers sync.Map
		for range 20 {
			asking.Go(func() {
				lease, err := f.Acquire(pods, factory.InformerOptions{}, newFunc)
				require.NoError(t, err)
				informers.Store(lease.Informer, true)
			})
		}
		synctest.Wait()
		require.Empty(t, f.Statuses(), "an informer that is not made is none yet")
		f.Start(nil)
		other, err := f.Acquire(configMaps, factory.InformerOptions{}, newStubFunc)
		require.NoError(t, err, "others are not held up")
		other.Release()
		close(slow)
		asking.Wait()
		require.EqualValues(t, 1, calls.Load())
		require.Len(t, f.Statuses(), 1)
		require.Equal(t, 20, f.Statuses()[0].Leases)
		n := 0
		informers.Range(func(any, any) bool { n++; return true })
		require.Equal(t, 1, n)
	})
}

// The caller whose newFunc fails sees its failure; the next one tries another.
func TestFailedNewFuncIsTriedByTheNext(t *testing.T) {
	for name, fail := range map[string]func() cache.SharedIndexInformer{
		"panic":  func() cache.SharedIndexInformer { panic("no client") },
		"nil":    func() cache.SharedIndexInformer { return nil },
		"goexit": func() cache.SharedIndexInformer { runtime.Goexit(); return nil },
	} {
		t.Run(name, func(t *testing.T) {
			alone(t, func(t *testing.T, f *factory.Factory) {
				fails := make(chan struct{})
				var first, others sync.WaitGroup
				var panicked atomic.Value
				first.Go(func() {
					defer func() {
						if r := recover(); r != nil {
							panicked.Store(r)
						}
					}()
					f.InformerFor(pods, factory.InformerOptions{}, func() cache.SharedIndexInformer {
						<-fails
						return fail()
					})
				})
				synctest.Wait()
				s := newStub()
				var calls atomic.Int32
				for range 3 {
					others.Go(func() {
						lease, err := f.Acquire(pods, factory.InformerOptions{}, func() cache.SharedIndexInformer {
							calls.Add(1)
							return s
						})
						require.NoError(t, err)
						require.Same(t, s, lease.Informer)
					})
				}
				synctest.Wait()
				close(fails)
				first.Wait()
				others.Wait()
				require.EqualValues(t, 1, calls.Load())
				switch name {
				case "panic":
					require.Equal(t, "no client", panicked.Load(), "as it was")
				case "nil":
					require.ErrorContains(t, panicked.Load().(error), "v1/pods, standard: newFunc returned nil")
				}
			})
		})
	}
}
