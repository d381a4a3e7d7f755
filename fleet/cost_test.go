package fleet_test

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/factory"
	"github.com/rvinformer/informer/fleet"
	"github.com/rvinformer/informer/informertest"
)

// A cluster has few goroutines of the fleet, however many resources it has.
func TestGoroutinesOfCluster(t *testing.T) {
	bubble(t, func(t *testing.T) {
		m := newMirror()
		f := newFleet(t, m, fleet.Config{Groups: []fleet.Group{{Name: "pods", Resources: []string{"pods"}}, {Name: "rest", Except: []string{"pods"}}}})
		const clusters = 5
		for i := range clusters {
			s := serve(t, informertest.Options{Resources: append(withDefinitions(), served(apiServices), served(gadgets), served(nodes))})
			require.NoError(t, f.Add(fmt.Sprint("cluster-", i), s.Config()))
		}
		require.Zero(t, goroutinesOf("/fleet.("), "none before Run")
		start(t, f.Run)
		require.NoError(t, f.WaitForSync(t.Context()))
		synctest.Wait()
		require.Equal(t, clusters, goroutinesOf("fleet.(*session).run("))
		require.Equal(t, 2*clusters, goroutinesOf("fleet.(*run).follow("))
		require.Equal(t, 2*clusters, goroutinesOf("fleet.(*triggers).watch("))
		require.Equal(t, 7*clusters, goroutinesOf("factory.(*run).run("))
		require.Equal(t, 5*clusters+1, goroutinesOf("informer/fleet.("), "and Run")
	})
}

// goroutinesOf counts the goroutines with a function on their stacks.
func goroutinesOf(function string) (n int) {
	stacks := make([]byte, 4<<20)
	stacks = stacks[:runtime.Stack(stacks, true)]
	for stack := range strings.SplitSeq(string(stacks), "\n\n") {
		if calls, _, _ := strings.Cut(stack, "\ncreated by"); strings.Contains(calls, function) {
			n++
		}
	}
	return n
}

// BenchmarkIdleCluster reports what a cluster costs that is idle: added, and followed beyond what
// its four informers cost without a fleet. The informers have no objects. The server is in the same
// process, and so the difference has its part of the watch of definitions, too.
func BenchmarkIdleCluster(b *testing.B) {
	const clusters = 200
	server := informertest.NewServer(informertest.Options{Resources: withDefinitions(), TLS: true})
	defer server.Close()
	configure := func(context.Context, fleet.Target) (informer.InformerConfig, error) {
		return informer.InformerConfig{Handler: informer.ResourceEventHandlerFuncs{}}, nil
	}
	for b.Loop() {
		before, goroutines := inUse(), runtime.NumGoroutine()
		stop := followWithoutFleet(b, clusters, server)
		alone, goroutinesAlone := inUse()-before, runtime.NumGoroutine()-goroutines
		stop()

		f := newFleet(b, nil, fleet.Config{Configure: configure})
		before = inUse()
		for i := range clusters {
			require.NoError(b, f.Add(fmt.Sprint("cluster-", i), server.Config()))
		}
		b.ReportMetric(float64(inUse()-before)/clusters, "B/added")
		goroutines = runtime.NumGoroutine()
		ctx, cancel := context.WithCancel(context.Background())
		var running sync.WaitGroup
		running.Go(func() { f.Run(ctx) })
		require.NoError(b, f.WaitForSync(ctx))
		b.ReportMetric(float64(inUse()-before-alone)/clusters, "B/followed")
		b.ReportMetric(float64(runtime.NumGoroutine()-goroutines-goroutinesAlone)/clusters, "goroutines/followed")
		cancel()
		running.Wait()
	}
}

// followWithoutFleet follows the resources of a server, so many times.
func followWithoutFleet(b *testing.B, clusters int, server *informertest.Server) (stop func()) {
	f := factory.New()
	for i := range clusters {
		listers, err := informer.NewDynamicListerWatcherFactory(server.Config())
		require.NoError(b, err)
		for _, r := range []schema.GroupVersionResource{pods, deployments, widgets, crds} {
			config := informer.InformerConfig{ListerWatcher: listers.ForResource("", r), Handler: informer.ResourceEventHandlerFuncs{}}
			lease, err := f.AcquireResourceVersion(r, factory.InformerOptions{Cluster: fmt.Sprint(i)}, func() informer.ResourceVersionInformer {
				return informer.NewResourceVersionInformer("alone", config)
			})
			require.NoError(b, err)
			require.NoError(b, lease.Start())
		}
	}
	require.True(b, f.WaitForCacheSync(nil))
	return f.Shutdown
}

// inUse is the memory of the heap and of stacks.
func inUse() int64 {
	var m runtime.MemStats
	for range 3 {
		runtime.GC()
	}
	runtime.ReadMemStats(&m)
	return int64(m.HeapInuse + m.StackInuse)
}
