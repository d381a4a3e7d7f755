package typed_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	coreinformers "k8s.io/client-go/informers/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/cache"

	"github.com/rvinformer/informer/factory"
	"github.com/rvinformer/informer/factory/typed"
	"github.com/rvinformer/informer/informertest"
)

// The limits of client-go's factory, by the letters of our list of them.

// (h) Two Runs at the same time pass client-go's check. Here the informer runs once, however it was
// started.
func TestConcurrentRunsAreOne(t *testing.T) {
	bubble(t, informertest.Options{}, func(t *testing.T, s *informertest.Server) {
		create(t, s, "one")
		f := over(s)
		i := f.Core().V1().Pods().Informer()
		told := handles(t, i)
		stop := make(chan struct{})
		var running sync.WaitGroup
		for range 10 {
			running.Go(func() { i.Run(stop) })
			running.Go(func() { f.Start(stop) })
		}
		time.Sleep(time.Second)
		require.EqualValues(t, 1, told.added.Load())
		require.Equal(t, 1, watches(s))
		require.True(t, f.WaitForCacheSync(stop)[reflect.TypeFor[*corev1.Pod]()])
		close(stop)
		running.Wait()
		f.Shutdown()
		require.True(t, i.IsStopped())
		i.Run(make(chan struct{})) // returns
	})
}

// (k) Client-go has one namespace and selector to a factory. Here a factory is a view, and several
// share a registry.
func TestSelectorsAreInTheKey(t *testing.T) {
	bubble(t, informertest.Options{}, func(t *testing.T, s *informertest.Server) {
		create(t, s, "web", "app", "web")
		create(t, s, "db", "app", "db")
		registry := factory.New()
		for selector, want := range map[string][]string{"app=web": {"default/web"}, "app=db": {"default/db"}, "": {"default/web", "default/db"}} {
			f := over(s, typed.WithFactory(registry), typed.WithTweakListOptions(func(o *metav1.ListOptions) { o.LabelSelector = selector }))
			i := f.Core().V1().Pods().Informer()
			defer started(t, f)()
			require.ElementsMatch(t, want, keys(i))
		}
		time.Sleep(time.Second)
		require.Equal(t, 3, watches(s))
	})
}

// (k) Client-go's factory takes unstructured objects of any kind for one.
func TestUnstructuredKindsDoNotCollide(t *testing.T) {
	bubble(t, informertest.Options{}, func(t *testing.T, s *informertest.Server) {
		create(t, s, "one")
		c, err := dynamic.NewForConfig(s.Config())
		require.NoError(t, err)
		f := typed.New(nil, 0)
		informer := func(kind, resource string) cache.SharedIndexInformer {
			u := &unstructured.Unstructured{}
			u.SetAPIVersion("v1")
			u.SetKind(kind)
			return f.InformerFor(u, func(_ kubernetes.Interface, resync time.Duration) cache.SharedIndexInformer {
				return dynamicinformer.NewFilteredDynamicInformer(c, schema.GroupVersionResource{Version: "v1", Resource: resource}, "", resync, nil, nil).Informer()
			})
		}
		podInformer, configMaps := informer("Pod", "pods"), informer("ConfigMap", "configmaps")
		require.NotSame(t, podInformer, configMaps)
		require.Same(t, podInformer, informer("Pod", "never"))
		stop := make(chan struct{})
		f.Start(stop)
		require.Equal(t, map[reflect.Type]bool{reflect.TypeFor[*unstructured.Unstructured](): true}, f.WaitForCacheSync(nil))
		require.Equal(t, []string{"default/one"}, keys(podInformer))
		require.Empty(t, keys(configMaps))
		close(stop)
		f.Shutdown()
	})
}

// (l) One informer is stopped and started again, while the factory goes on.
func TestOneInformerIsStoppedAndRestarted(t *testing.T) {
	bubble(t, informertest.Options{}, func(t *testing.T, s *informertest.Server) {
		create(t, s, "one")
		registry := factory.New()
		f := over(s, typed.WithFactory(registry))
		stop := make(chan struct{})
		first, others := f.Core().V1().Pods().Informer(), f.Core().V1().ConfigMaps().Informer()
		told := handles(t, first)
		f.Start(stop)
		synced(t, f)
		key, err := f.KeyFor(pods)
		require.NoError(t, err)
		synctest.Wait() // what a handler was not called for yet when its informer ends, it is not called for any more
		<-registry.Stop(key)
		create(t, s, "two")
		time.Sleep(time.Second)
		require.True(t, first.IsStopped())
		require.False(t, others.IsStopped())
		require.EqualValues(t, 1, told.added.Load())

		again := f.Core().V1().Pods().Informer()
		require.NotSame(t, first.GetStore(), again.GetStore())
		f.Start(stop)
		synced(t, f)
		require.Len(t, keys(again), 2)
		require.Len(t, keys(first), 1)

		// The same by leases: what is no longer leased ends, and the next request gets another one.
		lease, err := f.Acquire(nodes)
		require.NoError(t, err)
		require.NoError(t, lease.Start())
		<-lease.Release()
		lease, err = f.Acquire(nodes)
		require.NoError(t, err)
		require.NoError(t, lease.Start())
		require.True(t, registry.WaitForCacheSync(nil))
		<-lease.Release()
		close(stop)
		f.Shutdown()
		require.Empty(t, registry.Statuses())
	})
}

// (l) After the context of a Start has ended, everything can be started again.
func TestFactoryStartsAgain(t *testing.T) {
	bubble(t, informertest.Options{}, func(t *testing.T, s *informertest.Server) {
		create(t, s, "one")
		f := typed.New(client(t, s), 0)
		for range 3 {
			i := f.Core().V1().Pods().Informer()
			told := handles(t, i)
			cancel := follows(t, f)
			synctest.Wait()
			require.EqualValues(t, 1, told.added.Load())
			cancel()
			synctest.Wait()
			require.True(t, i.IsStopped())
		}
		f.Shutdown()
	})
}

// (m) Client-go calls newFunc with its lock held.
func TestNewFuncMayAskTheFactory(t *testing.T) {
	f := typed.New(fake.NewClientset(), time.Hour)
	defer f.Shutdown()
	var asked cache.SharedIndexInformer
	got := f.InformerFor(&corev1.Pod{}, func(c kubernetes.Interface, resync time.Duration) cache.SharedIndexInformer {
		require.Equal(t, time.Hour, resync)
		asked = f.Core().V1().Nodes().Informer()
		return coreinformers.NewPodInformer(c, "default", resync, nil)
	})
	require.NotNil(t, asked)
	// The first newFunc counts, as in client-go: that of a user for the accessors too.
	require.Same(t, got, f.InformerFor(&corev1.Pod{}, nil))
	require.Same(t, got.GetStore(), f.Core().V1().Pods().Informer().GetStore())
	generic, err := f.ForResource(pods)
	require.NoError(t, err)
	require.Same(t, got, generic.Informer())
}

// (n) What WaitForCacheSyncWithContext returns can be used.
func TestSyncResult(t *testing.T) {
	bubble(t, informertest.Options{}, func(t *testing.T, s *informertest.Server) {
		s.Inject(informertest.Fault{Match: informertest.Match{Resource: pods}, Effect: informertest.Hang()})
		f := over(s)
		f.Core().V1().Pods().Informer()
		f.Core().V1().ConfigMaps().Informer()
		require.Empty(t, f.WaitForCacheSyncWithContext(t.Context()).Synced) // nothing is started
		stop := make(chan struct{})
		f.Start(stop)
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Minute, errors.New("too late"))
		defer cancel()
		result := f.WaitForCacheSyncWithContext(ctx)
		require.EqualError(t, result.Err, "too late")
		require.Equal(t, map[reflect.Type]bool{reflect.TypeFor[*corev1.Pod](): false, reflect.TypeFor[*corev1.ConfigMap](): true}, result.Synced)
		require.ErrorContains(t, result.AsError(), "v1.Pod")
		s.Heal()
		result = f.WaitForCacheSyncWithContext(t.Context())
		require.NoError(t, result.AsError())
		closed := make(chan struct{})
		close(closed)
		require.True(t, f.WaitForCacheSync(closed)[reflect.TypeFor[*corev1.Pod]()])
		close(stop)
		f.Shutdown()
	})
}

// An informer that was stopped before it has synced is not waited for.
func TestStoppedInformerIsNotWaitedFor(t *testing.T) {
	bubble(t, informertest.Options{}, func(t *testing.T, s *informertest.Server) {
		s.Inject(informertest.Fault{Match: informertest.Match{Resource: pods}, Effect: informertest.Hang()})
		registry := factory.New()
		f := over(s, typed.WithFactory(registry))
		f.Core().V1().Pods().Informer()
		stop := make(chan struct{})
		f.Start(stop)
		time.AfterFunc(time.Minute, func() { registry.StopCluster("") })
		result := f.WaitForCacheSyncWithContext(t.Context())
		require.ErrorIs(t, result.Err, factory.ErrStopped)
		require.Equal(t, map[reflect.Type]bool{reflect.TypeFor[*corev1.Pod](): false}, result.Synced)
		close(stop)
		f.Shutdown()
	})
}

// One that was stopped before the Start cannot be started: a wait for its sync ends.
func TestInformerThatWasStoppedBeforeTheStart(t *testing.T) {
	bubble(t, informertest.Options{}, func(t *testing.T, s *informertest.Server) {
		registry := factory.New()
		f := over(s, typed.WithFactory(registry))
		first := f.Core().V1().Pods().Informer()
		registry.StopCluster("")
		stop := make(chan struct{})
		f.Start(stop)
		result := f.WaitForCacheSyncWithContext(t.Context())
		require.ErrorIs(t, result.Err, factory.ErrStopped)
		require.Equal(t, map[reflect.Type]bool{reflect.TypeFor[*corev1.Pod](): false}, result.Synced)
		require.True(t, first.IsStopped())

		second := f.Core().V1().Pods().Informer()
		f.Start(stop)
		synced(t, f)
		require.True(t, second.HasSynced())
		close(stop)
		f.Shutdown()
	})
}

// (o) A fake clientset has no watch-lists, which client-go's reflectors would wait for.
func TestFakeClientset(t *testing.T) {
	c := fake.NewClientset(pod("one"))
	f := typed.NewFilteredSharedInformerFactory(c, 0, "default", nil)
	i := f.Core().V1().Pods().Informer()
	told := handles(t, i)
	stop := started(t, f)
	require.Equal(t, []string{"default/one"}, keys(i))
	_, err := c.CoreV1().Pods("default").Create(t.Context(), pod("two"), metav1.CreateOptions{})
	require.NoError(t, err)
	require.Eventually(t, func() bool { return told.added.Load() == 2 }, time.Minute, time.Millisecond)
	two, err := f.Core().V1().Pods().Lister().Pods("default").Get("two")
	require.NoError(t, err)
	require.Equal(t, "two", two.Name)
	stop()
}

// Informers of objects that no scheme knows are told apart by their Go types.
func TestInformerOfAForeignType(t *testing.T) {
	f := typed.New(fake.NewClientset(), 0)
	defer f.Shutdown()
	newFunc := func(kubernetes.Interface, time.Duration) cache.SharedIndexInformer {
		return cache.NewSharedIndexInformer(&cache.ListWatch{}, &widget{}, 0, nil)
	}
	require.Same(t, f.InformerFor(&widget{}, newFunc), f.InformerFor(&widget{}, newFunc))
	require.NotSame(t, f.InformerFor(&widget{}, newFunc), f.InformerFor(&gadget{}, newFunc))
	require.PanicsWithError(t, fmt.Sprintf("informer of github.com/rvinformer/informer/factory/typed_test/type/thing, standard/%s: newFunc is nil", variantOf(t, f)),
		func() { f.InformerFor(&thing{}, nil) })
}

type (
	widget struct{ corev1.Pod }
	gadget struct{ corev1.Pod }
	thing  struct{ corev1.Pod }
)

// variantOf is the variant of informers that are the factory's alone.
func variantOf(t *testing.T, f *typed.Factory) string {
	f.InformerFor(&corev1.Secret{}, func(c kubernetes.Interface, resync time.Duration) cache.SharedIndexInformer {
		return coreinformers.NewSecretInformer(c, "", resync, nil)
	})
	key, err := f.KeyFor(schema.GroupVersionResource{Version: "v1", Resource: "secrets"})
	require.NoError(t, err)
	return key.Variant
}

// After Shutdown nothing starts, and what was started with no end, ends.
func TestShutdown(t *testing.T) {
	bubble(t, informertest.Options{}, func(t *testing.T, s *informertest.Server) {
		create(t, s, "one")
		name, err := cache.NewInformerName("typed-test")
		require.NoError(t, err)
		registry := factory.New()
		f := typed.New(client(t, s), 0, typed.WithFactory(registry), typed.WithInformerName(name))
		require.Same(t, name, f.InformerName())
		f.Core().V1().Pods().Informer()
		f.Start(nil)
		synced(t, f)
		f.Core().V1().Nodes().Informer() // never started
		stop := make(chan struct{})
		f.Core().V1().ConfigMaps().Informer()
		_, err = f.Core().V1().ConfigMaps().Informer().AddEventHandler(&tally{})
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		f.StartWithContext(ctx)
		var down sync.WaitGroup
		for range 3 {
			down.Go(f.Shutdown)
		}
		time.Sleep(time.Minute)
		require.NotEmpty(t, registry.Statuses()) // one of them has to cancel
		cancel()
		down.Wait()
		require.Empty(t, registry.Statuses())
		name, err = cache.NewInformerName("typed-test")
		require.NoError(t, err) // it was released
		name.Release()

		late := f.Core().V1().Pods().Informer()
		f.Start(stop)
		late.Run(stop) // returns
		time.Sleep(time.Minute)
		require.False(t, late.HasSynced())
		require.Empty(t, registry.Statuses())
		close(stop)
	})
}

// Start does not wait for a server that does not answer, and neither does the end.
func TestDeadServerBlocksNoOther(t *testing.T) {
	for name, options := range map[string]func(s *informertest.Server) []typed.SharedInformerOption{
		"streamed": func(s *informertest.Server) []typed.SharedInformerOption {
			return []typed.SharedInformerOption{typed.WithRESTConfig(s.Config())}
		},
		"client-go's": func(*informertest.Server) []typed.SharedInformerOption { return nil },
	} {
		bubbleRun(t, name, informertest.Options{}, func(t *testing.T, s *informertest.Server) {
			s.Inject(informertest.Fault{Match: informertest.Match{Verbs: []string{"list", "watch", "watch-list"}}, Effect: informertest.Hang()})
			f := typed.New(client(t, s), 0, options(s)...)
			f.Core().V1().Pods().Informer()
			stop := make(chan struct{})
			begin := time.Now()
			f.Start(stop)
			require.Zero(t, time.Since(begin))
			synctest.Wait()
			close(stop)
			f.Shutdown()
			require.Less(t, time.Since(begin), time.Second)
		})
	}
}

// A request for the successor of an informer that is slow to end does not wait for that end.
func TestSlowEndBlocksNoRequest(t *testing.T) {
	bubble(t, informertest.Options{}, func(t *testing.T, s *informertest.Server) {
		create(t, s, "one")
		registry := factory.New()
		linger := make(chan struct{})
		f := over(s, typed.WithFactory(registry), typed.WithTransformName("slow"), typed.WithTransform(func(obj any) (any, error) {
			<-linger
			return obj, nil
		}))
		first := f.Core().V1().Pods().Informer()
		stop := make(chan struct{})
		registry.Start(stop) // not by f, which has the only lease
		synctest.Wait()
		close(stop)
		begin := time.Now()
		second := f.Core().V1().Pods().Informer()
		require.NotSame(t, first.GetStore(), second.GetStore())
		require.Zero(t, time.Since(begin))
		time.AfterFunc(time.Minute, func() { close(linger) })
		f.Shutdown()
		require.Equal(t, time.Minute, time.Since(begin))
		registry.Shutdown()
	})
}
