package factory_test

import (
	"fmt"
	"runtime"
	"runtime/metrics"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/tools/cache"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/factory"
	"github.com/rvinformer/informer/informertest"
)

// A thousand informers of servers that answer, hang or refuse are added and removed, in all ways.
// They leave no goroutine, and once the factory has let go of them they are collected.
func TestAddingAndRemovingLeavesNothing(t *testing.T) {
	goroutines := runtime.NumGoroutine()
	servers := []*informertest.Server{}
	// The last one is for our own informers: client-go's take seconds to end when their connections
	// are refused.
	for _, effect := range []*informertest.Fault{nil, {Effect: informertest.Hang()}, {Effect: informertest.Status(503)}, {Effect: informertest.Refuse()}} {
		s := informertest.NewServer(informertest.Options{})
		defer s.Close()
		create(t, s, pods, "web")
		if effect != nil {
			s.Inject(*effect)
		}
		servers = append(servers, s)
	}
	var made, collected atomic.Int64
	count := func() {
		made.Add(1)
	}
	f := factory.New()
	for round := range 25 {
		stop := make(chan struct{})
		var leases []func() <-chan struct{}
		for n := range 20 {
			opts := factory.InformerOptions{Cluster: fmt.Sprint(round, "/", n)}
			shared, err := f.Acquire(pods, opts, func() cache.SharedIndexInformer {
				i := &collectable{dynamicFunc(t, servers[n%3], pods)()}
				count()
				runtime.AddCleanup(i, func(*atomic.Int64) { collected.Add(1) }, nil)
				return i
			})
			require.NoError(t, err)
			_, err = shared.Informer.AddEventHandler(&tally{})
			require.NoError(t, err)
			versions, err := f.AcquireResourceVersion(pods, opts, func() informer.ResourceVersionInformer {
				i := &collectableVersions{versionsFunc(t, servers[n%4], pods, &tally{})()}
				count()
				runtime.AddCleanup(i, func(*atomic.Int64) { collected.Add(1) }, nil)
				return i
			})
			require.NoError(t, err)
			switch n % 3 {
			case 0:
				require.NoError(t, f.StartOne(shared.Key(), stop))
				require.NoError(t, f.StartOne(versions.Key(), make(chan struct{})))
			case 1:
				require.NoError(t, shared.Start())
			}
			leases = append(leases, shared.Release, versions.Release)
			if n%5 == 0 {
				f.StopCluster(opts.Cluster)
			}
		}
		if round%2 == 0 {
			time.Sleep(10 * time.Millisecond) // some get further
		}
		close(stop)
		for _, release := range leases {
			ends(t, release(), "a release")
		}
	}
	require.Empty(t, f.Statuses())
	require.EqualValues(t, 1000, made.Load())
	for _, s := range servers {
		s.Close()
	}
	require.Eventually(t, func() bool {
		runtime.GC()
		return collected.Load() == made.Load() && runtime.NumGoroutine() <= goroutines+1 // that of Eventually
	}, 2*time.Minute, 10*time.Millisecond, "informers that are not collected, or goroutines that have not ended")
	runtime.KeepAlive(f)
}

type collectable struct{ cache.SharedIndexInformer }

type collectableVersions struct {
	informer.ResourceVersionInformer
}

// What a factory keeps of informers that it has let go of is nothing: keys, channels and turns
// included.
func TestForgottenInformersTakeNoMemory(t *testing.T) {
	f := factory.New()
	stop := make(chan struct{})
	cycle := func(from, to int) {
		for n := from; n < to; n++ {
			opts := factory.InformerOptions{Cluster: fmt.Sprint("cluster ", n)}
			shared, err := f.Acquire(pods, opts, newStubFunc)
			require.NoError(t, err)
			f.Start(make(chan struct{}))
			versions, err := f.AcquireResourceVersion(pods, opts, alwaysVersions(newStub()))
			require.NoError(t, err)
			f.Start(stop)
			<-shared.Release()
			<-versions.Release()
		}
	}
	cycle(0, 2000)
	var heaps []int64
	for n := range 5 {
		cycle(2000*(n+1), 2000*(n+2))
		heaps = append(heaps, liveHeap())
	}
	t.Log(heaps)
	require.Less(t, heaps[4]-heaps[0], int64(8000*10), "bytes of 8,000 pairs of informers")
	close(stop)
	f.Shutdown()
}

func liveHeap() int64 {
	runtime.GC()
	runtime.GC()
	sample := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(sample)
	return int64(sample[0].Value.Uint64())
}

// The factory adds one goroutine to each informer, to run it, and one to each stop channel.
func TestGoroutines(t *testing.T) {
	alone(t, func(t *testing.T, f *factory.Factory) {
		before := runtime.NumGoroutine()
		for n := range 1000 {
			f.InformerFor(pods, factory.InformerOptions{Cluster: fmt.Sprint(n)}, newStubFunc)
		}
		stop := make(chan struct{})
		f.Start(stop)
		synctest.Wait()
		require.LessOrEqual(t, runtime.NumGoroutine(), before+1001)
		close(stop)
	})
}
