package factory_test

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/tools/cache"

	"github.com/rvinformer/informer/factory"
	"github.com/rvinformer/informer/informertest"
)

// These are the behaviours of istio's informerfactory that code may rely on, and its bugs (a) to
// (g), that are ours to be without.

func TestS2NamesCompile(t *testing.T) {
	strip := func(obj any) (any, error) { return obj, nil }
	var f factory.InformerFactory = factory.NewSharedInformerFactory()
	var newFunc factory.NewInformerFunc = newStubFunc
	var s factory.StartableInformer = f.InformerFor(pods, factory.InformerOptions{
		LabelSelector:   "app=web",
		FieldSelector:   "metadata.name=x",
		Namespace:       "shop",
		Cluster:         "east",
		ObjectTransform: strip,
		InformerType:    factory.DynamicInformer,
	}, newFunc)
	var i cache.SharedIndexInformer = s.Informer
	require.NotNil(t, i)
	stop := make(chan struct{})
	s.Start(stop)
	close(stop)
	f.Shutdown()
	require.Equal(t, []factory.InformerType{0, 1, 2}, []factory.InformerType{factory.StandardInformer, factory.DynamicInformer, factory.MetadataInformer})
}

func TestSameKeyIsSameInformer(t *testing.T) { // S2-02
	f := factory.New()
	first := f.InformerFor(pods, factory.InformerOptions{}, newStubFunc)
	again := f.InformerFor(pods, factory.InformerOptions{}, never(t))
	require.Same(t, first.Informer, again.Informer)
	for _, other := range []factory.InformerOptions{
		{LabelSelector: "a=1"},
		{FieldSelector: "metadata.name=x"},
		{Namespace: "x"},
		{InformerType: factory.DynamicInformer},
		{InformerType: factory.MetadataInformer},
		{Cluster: "east"}, // bug (d)
	} {
		require.NotSame(t, first.Informer, f.InformerFor(pods, other, newStubFunc).Informer, "%+v", other)
		f.InformerFor(pods, other, never(t))
	}
	require.NotSame(t, first.Informer, f.InformerFor(configMaps, factory.InformerOptions{}, newStubFunc).Informer)
}

func TestFirstTransformWins(t *testing.T) { // S2-03
	f := factory.New()
	strip := func(obj any) (any, error) { return obj, nil }
	first := f.InformerFor(pods, factory.InformerOptions{ObjectTransform: strip, TransformName: "strip"}, newStubFunc)
	require.Same(t, first.Informer, f.InformerFor(pods, factory.InformerOptions{}, never(t)).Informer)
	require.Same(t, first.Informer, f.InformerFor(pods, factory.InformerOptions{ObjectTransform: strip}, never(t)).Informer)
}

func TestStartStartsEachOnce(t *testing.T) { // S2-04
	alone(t, func(t *testing.T, f *factory.Factory) {
		a, b, late := newStub(), newStub(), newStub()
		one := f.InformerFor(pods, factory.InformerOptions{}, always(a))
		f.InformerFor(configMaps, factory.InformerOptions{}, always(b))
		first, second := make(chan struct{}), make(chan struct{})

		one.Start(first)
		one.Start(second)
		synctest.Wait()
		require.Equal(t, []int32{1, 0}, []int32{a.began.Load(), b.began.Load()}, "Start of one starts that one, once")

		f.Start(second)
		f.Start(second)
		f.InformerFor(widgets, factory.InformerOptions{}, always(late))
		synctest.Wait()
		require.Equal(t, []int32{1, 1, 0}, []int32{a.began.Load(), b.began.Load(), late.began.Load()})
		f.Start(second)
		synctest.Wait()
		require.EqualValues(t, 1, late.began.Load(), "what was asked for after a Start needs another one")

		close(second)
		synctest.Wait()
		require.Equal(t, []int32{1, 0, 0}, []int32{a.under.Load(), b.under.Load(), late.under.Load()}, "the first stop channel counts")
		close(first)
		f.Shutdown()
		require.Zero(t, a.under.Load())
	})
}

func TestWaitForCacheSync(t *testing.T) { // S2-05
	alone(t, func(t *testing.T, f *factory.Factory) {
		require.True(t, f.WaitForCacheSync(nil), "no informer at all")
		a, b := newStub(), newStub()
		one := f.InformerFor(pods, factory.InformerOptions{}, always(a))
		f.InformerFor(configMaps, factory.InformerOptions{}, always(b))
		require.True(t, f.WaitForCacheSync(nil), "none is started")

		stop := make(chan struct{})
		one.Start(stop)
		require.False(t, f.WaitForCacheSync(closedChannel()))
		go func() {
			time.Sleep(37 * time.Millisecond)
			close(a.synced)
		}()
		begin := time.Now()
		require.True(t, f.WaitForCacheSync(stop), "only the one that is started counts")
		require.Equal(t, 37*time.Millisecond, time.Since(begin), "it does not poll")
		require.True(t, f.WaitForCacheSync(closedChannel()), "all have synced")

		f.Start(stop)
		require.False(t, f.WaitForCacheSync(closedChannel()))
		close(stop)
		require.False(t, f.WaitForCacheSync(stop), "an informer ended before it had synced")
		f.Shutdown()
		require.False(t, f.WaitForCacheSync(stop), "an informer ended before it had synced")
	})
}

func TestWaitForCacheSyncAfterStopOfAllThatSynced(t *testing.T) { // S2-05
	f := factory.New()
	a := newStub()
	close(a.synced)
	f.InformerFor(pods, factory.InformerOptions{}, always(a))
	stop := make(chan struct{})
	f.Start(stop)
	close(stop)
	require.True(t, f.WaitForCacheSync(stop))
	f.Shutdown()
	require.True(t, f.WaitForCacheSync(stop))
}

func TestNothingRunsAfterStartWithClosedChannel(t *testing.T) { // S2-05
	f := factory.New()
	a := newStub()
	f.InformerFor(pods, factory.InformerOptions{}, always(a))
	stop := closedChannel()
	f.Start(stop)
	require.False(t, f.WaitForCacheSync(stop), "it was started, and will not sync")
	f.Shutdown()
	require.Zero(t, a.began.Load())
}

func TestShutdown(t *testing.T) { // S2-06
	alone(t, func(t *testing.T, f *factory.Factory) {
		a, late := newStub(), newStub()
		a.linger = make(chan struct{})
		f.InformerFor(pods, factory.InformerOptions{}, always(a))
		stop := make(chan struct{})
		f.Start(stop)

		var calls sync.WaitGroup
		var returned sync.Map
		for n := range 3 {
			calls.Go(func() {
				f.Shutdown()
				returned.Store(n, true)
			})
		}
		synctest.Wait()
		_, any := returned.Load(0)
		require.False(t, any, "the stop channel is not closed")
		require.EqualValues(t, 1, a.under.Load())

		one := f.InformerFor(configMaps, factory.InformerOptions{}, always(late))
		require.Same(t, late, one.Informer, "informers can be asked for")
		f.Start(stop)
		one.Start(stop)
		synctest.Wait()
		require.Zero(t, late.began.Load(), "and do not start")

		close(stop)
		synctest.Wait()
		_, any = returned.Load(0)
		require.False(t, any, "a goroutine has not ended")
		close(a.linger)
		calls.Wait()
		f.Shutdown()
	})
}

func TestBugA_StoppedInformerIsNotGivenOutAgain(t *testing.T) {
	alone(t, func(t *testing.T, f *factory.Factory) {
		first, second := newStub(), newStub()
		stop := make(chan struct{})
		dead := f.InformerFor(pods, factory.InformerOptions{}, always(first))
		dead.Start(stop)
		close(stop)
		again := f.InformerFor(pods, factory.InformerOptions{}, always(second)) // at once
		require.Same(t, second, again.Informer)
		dead.Start(nil) // which must not start the second
		synctest.Wait()
		require.Zero(t, first.under.Load())
		require.Zero(t, second.began.Load())

		stop = make(chan struct{})
		again.Start(stop)
		close(second.synced)
		require.True(t, f.WaitForCacheSync(stop))
		synctest.Wait()
		require.EqualValues(t, 1, second.under.Load())
		close(stop)
	})
}

// So it is with one that others ran, and the factory has not started.
func TestInformerThatOthersRanIsNotGivenOutAgain(t *testing.T) {
	bubble(t, informertest.Options{}, func(t *testing.T, s *informertest.Server, f *factory.Factory) {
		first := f.InformerFor(pods, factory.InformerOptions{}, dynamicFunc(t, s, pods))
		lease, err := f.Acquire(pods, factory.InformerOptions{}, never(t))
		require.NoError(t, err)
		first.Informer.RunWithContext(endedContext())
		require.ErrorIs(t, lease.Start(), factory.ErrStopped)
		require.ErrorIs(t, f.StartOne(lease.Key(), nil), factory.ErrStopped)
		second := f.InformerFor(pods, factory.InformerOptions{}, dynamicFunc(t, s, pods))
		require.NotSame(t, first.Informer, second.Informer)
		ends(t, lease.Done(), "the end of the first")
		ends(t, lease.Release(), "the release of the first")
		second.Start(nil)
		require.True(t, f.WaitForCacheSync(nil))
		require.Len(t, f.Statuses(), 1)
	})
}

func TestBugC_NewFuncMayUseTheFactory(t *testing.T) {
	f := factory.New()
	stop := make(chan struct{})
	inner := newStub()
	outer := f.InformerFor(pods, factory.InformerOptions{}, func() cache.SharedIndexInformer {
		f.InformerFor(configMaps, factory.InformerOptions{}, always(inner)).Start(stop)
		f.Start(stop)
		f.Statuses()
		close(inner.synced)
		require.True(t, f.WaitForCacheSync(stop))
		return newStub()
	})
	require.NotSame(t, inner, outer.Informer)
	f.InformerFor(pods, factory.InformerOptions{}, never(t))
	close(stop)
	f.Shutdown()

	require.NotPanics(t, func() { factory.StartableInformer{}.Start(stop) })
}
