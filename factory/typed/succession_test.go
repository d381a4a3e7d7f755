package typed_test

import (
	"context"
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/rvinformer/informer/factory"
	"github.com/rvinformer/informer/factory/typed"
	"github.com/rvinformer/informer/informertest"
	"github.com/rvinformer/informer/objectcache"
)

// has is what each way of asking a factory for its pods answers.
func has(t require.TestingT, f typed.SharedInformerFactory) []int {
	listed, err := f.Core().V1().Pods().Lister().List(labels.Everything())
	require.NoError(t, err)
	inNamespace, err := f.Core().V1().Pods().Lister().Pods("default").List(labels.Everything())
	require.NoError(t, err)
	generic, err := f.ForResource(pods)
	require.NoError(t, err)
	objects, err := generic.Lister().List(labels.Everything())
	require.NoError(t, err)
	store := f.Core().V1().Pods().Informer().GetStore()
	return []int{len(listed), len(inNamespace), len(objects), len(store.List()), len(store.ListKeys())}
}

func each(n int) []int { return []int{n, n, n, n, n} }

// A reconciler that asks after the end is not to believe that everything is deleted.
func TestStoppedFactoryAnswersFromWhatItHad(t *testing.T) {
	for name, end := range map[string]func(context.CancelFunc, *typed.Factory, *factory.Factory){
		"its context ends": func(cancel context.CancelFunc, _ *typed.Factory, _ *factory.Factory) { cancel() },
		"it is shut down": func(cancel context.CancelFunc, f *typed.Factory, _ *factory.Factory) {
			cancel()
			f.Shutdown()
		},
		"its registry stops it": func(_ context.CancelFunc, _ *typed.Factory, r *factory.Factory) { <-r.StopCluster("") },
	} {
		for form, newFactory := range map[string]func(*informertest.Server, typed.SharedInformerOption) *typed.Factory{
			"client-go's": func(s *informertest.Server, registry typed.SharedInformerOption) *typed.Factory {
				return typed.New(client(t, s), 0, registry)
			},
			"decoded": func(s *informertest.Server, registry typed.SharedInformerOption) *typed.Factory {
				return over(s, registry)
			},
			"encoded": func(s *informertest.Server, registry typed.SharedInformerOption) *typed.Factory {
				return cached(s, objectcache.Options{}, registry)
			},
		} {
			bubbleRun(t, name+"/"+form, informertest.Options{}, func(t *testing.T, s *informertest.Server) {
				for n := range 10 {
					create(t, s, fmt.Sprint(n))
				}
				registry := factory.New()
				f := newFactory(s, typed.WithFactory(registry))
				before := f.Core().V1().Pods().Lister()
				cancel := follows(t, f)
				defer cancel()
				end(cancel, f, registry)
				for range 3 {
					time.Sleep(time.Millisecond)
					require.Equal(t, each(10), has(t, f))
					one, err := f.Core().V1().Pods().Lister().Pods("default").Get("3")
					require.NoError(t, err)
					require.Equal(t, "3", one.Name)
				}
				kept, err := before.List(labels.Everything())
				require.NoError(t, err)
				require.Len(t, kept, 10)
				cancel()
				f.Shutdown()
				require.Equal(t, each(10), has(t, f))
				registry.Shutdown()
			})
		}
	}
}

// A lister that was asked for between the end and the next start goes on with the new informer.
func TestStartedAgainFactoryAnswersFromTheServer(t *testing.T) {
	bubble(t, informertest.Options{}, func(t *testing.T, s *informertest.Server) {
		f := over(s)
		for n := range 3 {
			create(t, s, fmt.Sprint(n))
			lister := f.Core().V1().Pods().Lister()
			got, err := lister.List(labels.Everything())
			require.NoError(t, err)
			require.Len(t, got, n)
			cancel := follows(t, f)
			got, err = lister.List(labels.Everything())
			require.NoError(t, err)
			require.Len(t, got, n+1)
			require.Equal(t, each(n+1), has(t, f))
			cancel()
			synctest.Wait()
		}
		f.Shutdown()
	})
}

// One factory ends, and another one with the same informer goes on.
func TestStoppedFactoryAnswersFromTheInformerThatOthersHave(t *testing.T) {
	bubble(t, informertest.Options{}, func(t *testing.T, s *informertest.Server) {
		create(t, s, "1")
		registry := factory.New()
		one, other := over(s, typed.WithFactory(registry)), over(s, typed.WithFactory(registry))
		has(t, one)
		has(t, other)
		cancel := follows(t, one)
		stop := started(t, other)
		cancel()
		synctest.Wait()
		create(t, s, "2")
		synctest.Wait()
		require.Equal(t, each(2), has(t, one))
		stop()
		one.Shutdown()
		require.Empty(t, registry.Statuses())
		require.Equal(t, each(2), has(t, one))
	})
}

// After the end of a factory, another one starts an informer of the same objects.
func TestStoppedFactoryAnswersFromTheInformerThatOthersStart(t *testing.T) {
	bubble(t, informertest.Options{}, func(t *testing.T, s *informertest.Server) {
		create(t, s, "1")
		registry := factory.New()
		one := over(s, typed.WithFactory(registry))
		has(t, one)
		follows(t, one)()
		synctest.Wait()
		create(t, s, "2")
		require.Equal(t, each(1), has(t, one))
		other := over(s, typed.WithFactory(registry))
		require.Equal(t, each(0), has(t, other))
		stop := started(t, other)
		require.Equal(t, each(2), has(t, one))
		stop()
		one.Shutdown()
		require.Empty(t, registry.Statuses())
	})
}

// What a stopped informer had is collected when its successor is started.
func TestStartedAgainFactoryLetsTheOldObjectsGo(t *testing.T) {
	registry := factory.New()
	f := typed.New(fake.NewClientset(), 0, typed.WithFactory(registry))
	var collected atomic.Bool
	add := func() {
		kept := pod("kept")
		runtime.AddCleanup(kept, func(int) { collected.Store(true) }, 0)
		require.NoError(t, f.Core().V1().Pods().Informer().GetStore().Add(kept))
	}
	f.Core().V1().Pods().Informer()
	cancel := follows(t, f)
	add()
	cancel()
	require.Eventually(t, func() bool { return len(registry.Statuses()) == 0 }, time.Minute, time.Millisecond)
	require.False(t, f.Core().V1().Pods().Informer().HasSynced())
	_, exists, err := f.Core().V1().Pods().Informer().GetStore().GetByKey("default/kept")
	require.NoError(t, err)
	require.True(t, exists)
	f.Start(nil)
	synced(t, f)
	require.Eventually(t, func() bool {
		runtime.GC()
		return collected.Load()
	}, time.Minute, time.Millisecond)
	f.Shutdown()
}
