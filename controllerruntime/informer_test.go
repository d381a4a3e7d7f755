package controllerruntime_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/rvinformer/informer/controllerruntime"
)

// seen records what a handler is called with.
type seen struct {
	mu     sync.Mutex
	events []string
}

func (s *seen) handler() toolscache.ResourceEventHandler {
	note := func(what string) func(any) {
		return func(obj any) {
			if unknown, ok := obj.(toolscache.DeletedFinalStateUnknown); ok {
				obj = unknown.Obj
			}
			o := obj.(client.Object)
			s.mu.Lock()
			defer s.mu.Unlock()
			s.events = append(s.events, what+" "+o.GetNamespace()+"/"+o.GetName())
		}
	}
	return toolscache.ResourceEventHandlerFuncs{
		AddFunc: note("add"), DeleteFunc: note("delete"),
		UpdateFunc: func(_, obj any) { note("update")(obj) },
	}
}

func (s *seen) take() []string {
	synctest.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	taken := s.events
	s.events = nil
	slices.Sort(taken)
	return taken
}

var inTwo = cache.Options{DefaultNamespaces: map[string]cache.Config{"one": {}, "two": {}}}

func TestHandlersFollowAllNamespaces(t *testing.T) {
	bubble(t, func(t *testing.T, b *bench) {
		b.pods("one", 1)
		b.pods("two", 1)
		b.pods("three", 1)
		b.start(inTwo, controllerruntime.Options{})
		i, err := b.cache.GetInformer(t.Context(), &corev1.Pod{})
		require.NoError(t, err)
		require.True(t, i.HasSynced())
		<-i.HasSyncedChecker().Done()

		var plain, withPeriod, withOptions seen
		one, err := i.AddEventHandler(plain.handler())
		require.NoError(t, err)
		two, err := i.AddEventHandlerWithResyncPeriod(withPeriod.handler(), time.Hour)
		require.NoError(t, err)
		three, err := i.AddEventHandlerWithOptions(withOptions.handler(), toolscache.HandlerOptions{})
		require.NoError(t, err)
		for r, s := range map[toolscache.ResourceEventHandlerRegistration]*seen{one: &plain, two: &withPeriod, three: &withOptions} {
			<-r.HasSyncedChecker().Done()
			require.True(t, r.HasSynced())
			require.NotEmpty(t, r.HasSyncedChecker().Name())
			require.Equal(t, []string{"add one/pod-0", "add two/pod-0"}, s.take())
		}

		again, err := b.cache.GetInformer(t.Context(), &corev1.Pod{})
		require.NoError(t, err)
		require.NoError(t, again.RemoveEventHandler(two), "registered through another value of the same informer")
		require.NoError(t, b.server.Delete(podResource, "two", "pod-0"))
		b.create(podResource, pod("one", "new"))
		b.create(podResource, pod("three", "new"))
		require.Equal(t, []string{"add one/new", "delete two/pod-0"}, plain.take())
		require.Empty(t, withPeriod.take())
		require.Equal(t, []string{"add one/new", "delete two/pod-0"}, withOptions.take())

		require.Error(t, i.RemoveEventHandler(nil), "not of this informer")
		require.False(t, i.IsStopped())
		b.stop()
		require.True(t, i.IsStopped())
		_, err = i.AddEventHandler(plain.handler())
		require.Error(t, err)
	})
}

func TestInformerIsTheSameUntilItIsRemoved(t *testing.T) {
	bubble(t, func(t *testing.T, b *bench) {
		b.pods("one", 1)
		b.start(cache.Options{}, controllerruntime.Options{})
		get := func() cache.Informer {
			i, err := b.cache.GetInformer(t.Context(), &corev1.Pod{})
			require.NoError(t, err)
			require.True(t, i.HasSynced())
			return i
		}
		first := get()
		require.Same(t, first, get())
		byKind, err := b.cache.GetInformerForKind(t.Context(), podKind)
		require.NoError(t, err)
		require.Same(t, first, byKind)

		require.NoError(t, b.cache.RemoveInformer(t.Context(), &corev1.Pod{}))
		require.NoError(t, b.cache.RemoveInformer(t.Context(), &corev1.Pod{}))
		synctest.Wait()
		require.True(t, first.IsStopped())
		require.NotSame(t, first, get())
		require.NoError(t, b.cache.List(t.Context(), &corev1.PodList{}))
		require.False(t, get().IsStopped())

		_, err = b.cache.GetInformerForKind(t.Context(), schema.GroupVersionKind{Group: "none", Version: "v1", Kind: "None"})
		require.Error(t, err)
		_, err = b.cache.GetInformer(t.Context(), &corev1.Endpoints{})
		require.Error(t, err, "the server has none")
	})
}

// inMany are more namespaces than a select that picks at random gets right.
func inMany() cache.Options {
	many := map[string]cache.Config{}
	for n := range 20 {
		many[fmt.Sprint("namespace-", n)] = cache.Config{}
	}
	return cache.Options{DefaultNamespaces: many}
}

// The informers of several namespaces that have synced are done, also if that is asked for only
// after they have ended.
func TestSyncedInformersAreDoneOnceRemoved(t *testing.T) {
	bubble(t, func(t *testing.T, b *bench) {
		b.start(inMany(), controllerruntime.Options{})
		i, err := b.cache.GetInformer(t.Context(), &corev1.Pod{})
		require.NoError(t, err)
		require.NoError(t, b.cache.RemoveInformer(t.Context(), &corev1.Pod{}))
		synctest.Wait()
		require.True(t, i.IsStopped())
		require.True(t, i.HasSynced())
		done := i.HasSyncedChecker().Done()
		synctest.Wait()
		select {
		case <-done:
		default:
			t.Fatal("they have synced")
		}
	})
}

func TestWaitsEndWhenTheInformerDoes(t *testing.T) {
	for name, c := range map[string]struct {
		opts cache.Options
		end  func(b *bench)
		says string
	}{
		"removed": {
			end:  func(b *bench) { require.NoError(b, b.cache.RemoveInformer(b.Context(), &corev1.Pod{})) },
			says: "the informer of /v1, Kind=Pod was removed before it had synced",
		},
		"stopped": {
			end:  func(b *bench) { b.stop() },
			says: "the informer of /v1, Kind=Pod ended before it had synced",
		},
	} {
		bubbleRun(t, name, func(t *testing.T, b *bench) {
			b.inject("list,watch,watch-list 403")
			b.start(inTwo, controllerruntime.Options{})
			i, err := b.cache.GetInformer(t.Context(), &corev1.Pod{}, cache.BlockUntilSynced(false))
			require.NoError(t, err)
			never := i.HasSyncedChecker().Done()
			answers := make(chan error, 2)
			go func() { answers <- b.cache.List(t.Context(), &corev1.PodList{}) }()
			go func() {
				_, err := b.cache.GetInformer(t.Context(), &corev1.Pod{})
				answers <- err
			}()
			synctest.Wait()
			require.Empty(t, answers)
			c.end(b)
			require.EqualError(t, <-answers, c.says)
			require.EqualError(t, <-answers, c.says)
			select {
			case <-never:
				t.Fatal("it has not synced")
			default:
			}
		})
	}
}

func TestCacheIsStartedOnce(t *testing.T) {
	bubble(t, func(t *testing.T, b *bench) {
		b.pods("one", 1)
		b.make(cache.Options{}, controllerruntime.Options{})
		before, err := b.cache.GetInformer(t.Context(), &corev1.Pod{})
		require.NoError(t, err, "before the start, no call waits")
		require.False(t, before.HasSynced())
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		require.False(t, b.cache.WaitForCacheSync(ctx))

		b.run()
		require.True(t, before.HasSynced())
		require.EqualError(t, b.cache.Start(t.Context()), "informer already started")
		b.stop()
		require.True(t, before.IsStopped())
		require.Error(t, b.cache.List(t.Context(), &corev1.NodeList{}), "it has stopped")
		require.False(t, b.cache.WaitForCacheSync(t.Context()))
		require.NoError(t, b.cache.List(t.Context(), &corev1.PodList{}), "what was read stays readable")
	})
}

func TestWaitForCacheSyncFailsWithItsContext(t *testing.T) {
	bubble(t, func(t *testing.T, b *bench) {
		b.inject("list,watch,watch-list 403")
		b.make(cache.Options{}, controllerruntime.Options{})
		_, err := b.cache.GetInformer(t.Context(), &corev1.Pod{})
		require.NoError(t, err)
		b.begin()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		require.False(t, b.cache.WaitForCacheSync(ctx))
		require.NoError(t, b.cache.RemoveInformer(t.Context(), &corev1.Pod{}))
		require.True(t, b.cache.WaitForCacheSync(t.Context()), "there is nothing to wait for")
	})
}

func TestIndexerConflictIsAnError(t *testing.T) {
	bubble(t, func(t *testing.T, b *bench) {
		b.start(cache.Options{}, controllerruntime.Options{})
		require.NoError(t, b.cache.IndexField(t.Context(), &corev1.Pod{}, "n", nodeName))
		require.Error(t, b.cache.IndexField(t.Context(), &corev1.Pod{}, "n", nodeName))
	})
}
