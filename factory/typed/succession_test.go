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
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/cache"

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

// After a stop, an object that is added to the store is found, and a stopped informer takes no
// indexer, as in client-go.
func TestStoppedFactoryTakesObjectsAndIndexersAsClientGo(t *testing.T) {
	byApp := func(name string) cache.Indexers {
		return cache.Indexers{name: func(obj any) ([]string, error) { return []string{obj.(*corev1.Pod).Labels["app"]}, nil }}
	}
	for name, newFactory := range map[string]func(*informertest.Server) typed.SharedInformerFactory{
		"client-go": func(s *informertest.Server) typed.SharedInformerFactory {
			return informers.NewSharedInformerFactory(client(t, s), 0)
		},
		"over clients": func(s *informertest.Server) typed.SharedInformerFactory { return typed.New(client(t, s), 0) },
		"decoded":      func(s *informertest.Server) typed.SharedInformerFactory { return over(s) },
		"encoded":      func(s *informertest.Server) typed.SharedInformerFactory { return cached(s, objectcache.Options{}) },
	} {
		bubbleRun(t, name, informertest.Options{}, func(t *testing.T, s *informertest.Server) {
			create(t, s, "listed", "app", "web")
			f := newFactory(s)
			pods := func() cache.SharedIndexInformer { return f.Core().V1().Pods().Informer() }
			before := pods()
			require.NoError(t, before.AddIndexers(byApp("app")))
			cancel := follows(t, f)
			cancel()
			synctest.Wait()
			require.True(t, before.IsStopped())
			require.ErrorContains(t, before.AddIndexers(byApp("late")), "indexer was not added because it has stopped already")

			added := pod("added", "app", "web")
			require.NoError(t, pods().GetStore().Add(added))
			got, err := f.Core().V1().Pods().Lister().Pods("default").Get("added")
			require.NoError(t, err)
			require.Equal(t, added, got)
			require.Len(t, pods().GetStore().List(), 2)
			changed := pod("added", "app", "db")
			require.NoError(t, pods().GetStore().Update(changed))
			got, err = f.Core().V1().Pods().Lister().Pods("default").Get("added")
			require.NoError(t, err)
			require.Equal(t, changed, got)
			require.NoError(t, pods().GetIndexer().AddIndexers(byApp("indexer")))
			found, err := pods().GetIndexer().ByIndex("indexer", "db")
			require.NoError(t, err)
			require.Equal(t, []any{changed}, found)
			require.NoError(t, pods().GetStore().Delete(changed))
			require.Equal(t, []string{"default/listed"}, keys(pods()))
			require.NoError(t, pods().GetStore().Replace([]any{changed}, "7"))
			require.Equal(t, []string{"default/added"}, keys(pods()))

			if next := pods(); !next.IsStopped() { // client-go gives out the stopped one for ever
				require.NoError(t, next.AddIndexers(byApp("informer")))
				found, err = next.GetIndexer().ByIndex("informer", "db")
				require.NoError(t, err)
				require.Equal(t, []any{changed}, found)
				cancel = follows(t, f)
				require.Equal(t, []string{"default/listed"}, keys(next))
				found, err = next.GetIndexer().ByIndex("informer", "web")
				require.NoError(t, err)
				require.Len(t, found, 1)
				cancel()
			}
			f.Shutdown()
		})
	}
}

func TestStoppedFactoryAddsNoIndexersForOthers(t *testing.T) {
	bubble(t, informertest.Options{}, func(t *testing.T, s *informertest.Server) {
		registry := factory.New()
		one, other := over(s, typed.WithFactory(registry)), over(s, typed.WithFactory(registry))
		before := one.Core().V1().Pods().Informer()
		other.Core().V1().Pods().Informer()
		stopOne, stopOther := started(t, one), started(t, other)
		stopOne()
		require.ErrorContains(t, before.AddIndexers(cache.Indexers{"none": nil}), "indexer was not added because it has stopped already")
		require.NotContains(t, other.Core().V1().Pods().Informer().GetIndexer().GetIndexers(), "none")
		stopOther()
	})
}
