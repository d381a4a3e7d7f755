//go:build !race

package watches_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/informertest"
	"github.com/rvinformer/informer/tests/harness"
)

// Most that an idle informer may take. The race detector enlarges stacks, so the test is not built
// with it.
const (
	idleInformers = 200
	// idleGoroutines are the informer's own and the one that HTTP/2 keeps for its request.
	idleGoroutines = 2
	// idleStackBytes are 4 KiB for each, and what a process has at all. The next size is 8 KiB.
	idleStackBytes = 9 << 10
	// idleHeapBytes has room for what Status tells of conditions, freshness, counts and audits, for a
	// pool of decoders, and for what an informer has learnt of its server.
	idleHeapBytes = 9<<10 + 384
)

// idleBeyondBytes is what an informer may take of the heap beyond a bare stream. The stacks of a
// bare stream have sizes by chance.
const idleBeyondBytes = 4<<10 + 640

// idleCost is what informers take that only wait for events, each.
type idleCost struct{ Goroutines, StackBytes, HeapBytes float64 }

// An idle informer over HTTP/2 takes two goroutines, and little stack and heap. They depend on what
// stands on the stack while a watch waits: flow.run, Follower.Run and step, watching.follow,
// wireFeed.Next, and the reader's Wait. A deeper call, or a large variable in one of them, doubles
// the stack of every informer. That must not happen below some calls of the user's either, such as
// those of a factory, so the informers of one case have callers that take some stack. Their watches
// are compressed, and keep no memory of a decompressor.
func TestIdleInformerTakesLittle(t *testing.T) {
	bare := measureIdle(t, bareStreams)
	for _, callers := range []string{"no callers", "callers"} {
		t.Run(callers, func(t *testing.T) { takesLittle(t, callers, bare) })
	}
}

// bareStreams is a role of idles, beside "callers" and "no callers".
const bareStreams = "bare streams"

func takesLittle(t *testing.T, callers string, bare idleCost) {
	cost := measureIdle(t, callers)
	// On a busy machine, stacks that grow side by side leave spans behind that are partly empty, and
	// what was allocated for them is not all freed. That only adds, so the least of some measurements
	// counts.
	for tries := 1; tries < 4 && (cost.StackBytes > idleStackBytes || cost.HeapBytes > idleHeapBytes); tries++ {
		cost = measureIdle(t, callers)
	}
	require.LessOrEqual(t, cost.Goroutines, float64(idleGoroutines)+0.05) // a connection has some of its own
	require.LessOrEqual(t, cost.StackBytes, float64(idleStackBytes))
	require.LessOrEqual(t, cost.HeapBytes, float64(idleHeapBytes))
	require.Greater(t, cost.HeapBytes, 0.0)
	require.LessOrEqual(t, cost.HeapBytes-bare.HeapBytes, float64(idleBeyondBytes))
}

// measureIdle measures what informers, or bare streams, take in a process of their own.
func measureIdle(t *testing.T, what string) (cost idleCost) {
	server := informertest.NewServer(informertest.Options{TLS: true, GzipWatches: what == "callers"})
	defer server.Close()
	harness.PassServer(t, server.Config())
	p := harness.StartProcess(t, "idles", what)
	require.NoError(t, json.Unmarshal([]byte(p.Line()), &cost))
	t.Logf("%s: each of %d takes %+v", what, idleInformers, cost)
	return cost
}

// The process prints its idleCost. It is one of its own because the server's goroutines must not
// count.
var _ = harness.Role("idles", func(t require.TestingT, callers string) {
	config := harness.PassedServer()
	factory, err := informer.NewDynamicListerWatcherFactory(config)
	require.NoError(t, err)
	var informers sync.WaitGroup
	ctx, stop := context.WithCancel(context.Background())
	start := func(n int) {
		if callers == bareStreams {
			openStreams(ctx, t, config, &informers, n)
			return
		}
		for range n {
			i := informer.NewResourceVersionInformer("pods", informer.InformerConfig{
				ListerWatcher: factory.ForResource("", harness.Pods),
				ExampleObject: &informer.RawObject{},
				Handler:       informer.ResourceEventHandlerFuncs{},
			})
			if callers == "callers" {
				informers.Go(func() { runBelow(ctx, i) })
			} else {
				informers.Go(func() { i.RunWithContext(ctx) })
			}
			<-i.HasSyncedChecker().Done()
		}
	}
	start(10) // what is there once, the connection for instance
	before, goroutines := settled()
	start(idleInformers)
	after, all := settled()
	each := func(before, after uint64) float64 { return (float64(after) - float64(before)) / idleInformers }
	require.NoError(t, json.NewEncoder(os.Stdout).Encode(idleCost{
		Goroutines: float64(all-goroutines) / idleInformers,
		StackBytes: each(before.StackInuse, after.StackInuse),
		HeapBytes:  each(before.HeapAlloc, after.HeapAlloc),
	}))
	stop()
	informers.Wait()
})

// openStreams opens watch-lists as an informer does, and reads them with 64 bytes: the least that a
// watch takes.
func openStreams(ctx context.Context, t require.TestingT, config *rest.Config, readers *sync.WaitGroup, n int) {
	client, err := rest.HTTPClientFor(config)
	require.NoError(t, err)
	for range n {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, config.Host+"/api/v1/pods?watch=true&sendInitialEvents=true&"+
			"resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true&timeoutSeconds=1800", nil)
		require.NoError(t, err)
		opened := make(chan error)
		readers.Go(func() { // the stack of the request is deep
			response, err := client.Do(request)
			if err == nil {
				readers.Go(func() { readStream(response.Body) })
			}
			opened <- err
		})
		require.NoError(t, <-opened)
	}
}

// readStream reads a body to its end.
func readStream(body io.ReadCloser) {
	defer body.Close()
	var piece [64]byte
	for {
		if _, err := body.Read(piece[:]); err != nil {
			return
		}
	}
}

// callersBytes are so many that the frame of the call is as large as that of a factory.
const callersBytes = 32

// runBelow runs an informer below a call that takes callersBytes of the stack.
//
//go:noinline
func runBelow(ctx context.Context, i informer.ResourceVersionInformer) {
	var taken [callersBytes]byte
	defer func() { runtime.KeepAlive(&taken) }()
	i.RunWithContext(ctx)
	taken[0]++
}

// settled waits until no goroutine has ended for longer than a worker of a queue waits for more,
// and collects garbage until stacks have shrunk, which a collection does by half.
func settled() (m runtime.MemStats, goroutines int) {
	n := runtime.NumGoroutine()
	for since := time.Now(); time.Since(since) < 2*time.Second; time.Sleep(10 * time.Millisecond) {
		if now := runtime.NumGoroutine(); now != n {
			n, since = now, time.Now()
		}
	}
	for range 10 {
		runtime.GC()
	}
	runtime.ReadMemStats(&m)
	return m, runtime.NumGoroutine()
}
