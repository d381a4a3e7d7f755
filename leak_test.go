package informer

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"net"
	"net/http"
	"path/filepath"
	"runtime"
	"runtime/metrics"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/rvinformer/informer/informertest"
	"github.com/rvinformer/informer/internal/engine/server"
)

// TestInformersLeaveNothing starts and stops 2,000 informers of all kinds, many of them side by
// side: while they list, while they watch, and while they wait to ask again. They leave no
// goroutine, no memory, nothing of their budget, and once they are not referenced they are
// collected.
func TestInformersLeaveNothing(t *testing.T) {
	t.Run("loopback", func(t *testing.T) { leaveNothing(t, informertest.Options{}) })
	t.Run("in memory", func(t *testing.T) { leaveNothing(t, informertest.Options{InMemory: true}) })
}

const (
	// rounds of waves of informers that run side by side are 1,000 informers.
	rounds, waves, besides = 5, 2, 100
	// mostLeft is how many bytes an informer may leave. Measured are -20 to 130: pools and
	// maps, and what the runtime has for goroutines, grow once in a while. An object of its own of
	// 200 bytes for each would be too much.
	mostLeft = 150
)

func leaveNothing(t *testing.T, opts informertest.Options) {
	goroutines := steady()
	y := newYard(t, opts)
	for range waves * 2 {
		y.wave() // pools fill
	}
	left := y.left()
	for again := 0; left > mostLeft && again < 2; again++ {
		left = y.left() // what grows once in a while does not grow each time
	}
	require.LessOrEqual(t, left, int64(mostLeft), "bytes left of each informer")
	require.Zero(t, y.budget.InUse())
	y.close()
	y.settle(goroutines)
}

// left is how many bytes an informer leaves.
func (y *yard) left() int64 {
	heaps := []int64{y.liveHeap()}
	for range rounds {
		for range waves {
			y.wave()
		}
		heaps = append(heaps, y.liveHeap())
	}
	left := slope(heaps) / (waves * besides)
	y.t.Logf("%d bytes left of each informer; the heap after each round: %d", left, heaps)
	return left
}

// steady is the number of goroutines once those of other tests have ended, or most of them: on a
// slow machine some may end later.
func steady() int {
	n := runtime.NumGoroutine()
	for since := time.Now(); time.Since(since) < 50*time.Millisecond; time.Sleep(time.Millisecond) {
		if now := runtime.NumGoroutine(); now != n {
			n, since = now, time.Now()
		}
	}
	return n
}

// slope is by how much the values grow from one to the next: the median over all pairs, so that one
// that is far off does not matter.
func slope(values []int64) int64 {
	var slopes []int64
	for i, from := range values {
		for j, to := range values[i+1:] {
			slopes = append(slopes, (to-from)/int64(j+1))
		}
	}
	slices.Sort(slopes)
	return slopes[len(slopes)/2]
}

// fate is what an informer is doing when it is stopped.
type fate string

const (
	watched     fate = "watched"     // it watches
	hung        fate = "hung"        // it lists, and the server has sent a part and no more
	refused     fate = "refused"     // the server has answered 503, and it waits
	unreachable fate = "unreachable" // the connection was refused, and it waits
)

var fates = []fate{watched, watched, hung, refused, unreachable}

// yard is where informers are started and stopped.
type yard struct {
	t      *testing.T
	server *informertest.Server
	// factory makes ListerWatchers of the server, and nowhere those of a port without a listener.
	factory, nowhere *server.Server
	budget           *Budget
	random           *rand.Rand
	// made and collected count the objects that informers are made of.
	made, collected atomic.Int64
	started         int
	// idle is how many goroutines there are while no informer runs.
	idle      int
	directory string // of checkpoints
}

var podsResource = schema.GroupVersionResource{Version: "v1", Resource: "pods"}

func serverAt(t *testing.T, config *rest.Config) *server.Server {
	t.Helper()
	s, err := server.New(config)
	require.NoError(t, err)
	return s
}

func newYard(t *testing.T, opts informertest.Options) *yard {
	opts.Wrap = fateful
	y := &yard{t: t, server: informertest.NewServer(opts), budget: NewBudget(1 << 20), random: rand.New(rand.NewPCG(1, 2)), directory: t.TempDir()}
	y.factory = serverAt(t, y.server.Config())
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	y.nowhere = serverAt(t, &rest.Config{Host: "http://" + listener.Addr().String()})
	require.NoError(t, listener.Close())
	y.idle = steady()
	for i := range 5 {
		_, err := y.server.Create(podsResource, y.pod(i))
		require.NoError(t, err)
	}
	return y
}

func (y *yard) pod(i int) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: string(watched), Name: fmt.Sprintf("pod-%d", i), Labels: map[string]string{"wave": fmt.Sprint(y.started)}}}
}

func (y *yard) close() {
	y.server.Close()
	y.closeIdle()
}

func (y *yard) closeIdle() {
	y.factory.CloseIdleConnections()
	y.nowhere.CloseIdleConnections()
}

// fateful has the requests in a namespace meet the fate of its name.
func fateful(server http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		const pod = `{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a","namespace":"hung","uid":"u","resourceVersion":"5"}}`
		switch {
		case strings.Contains(r.URL.Path, string(refused)):
			http.Error(w, "refused", http.StatusServiceUnavailable)
		case strings.Contains(r.URL.Path, string(hung)):
			w.Header().Set("Content-Type", "application/json")
			text := `{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"7"},"items":[` + pod + ","
			if r.URL.Query().Get("watch") != "" {
				text = `{"type":"ADDED","object":` + pod + "}\n"
			}
			_, _ = io.WriteString(w, text)
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		default:
			server.ServeHTTP(w, r)
		}
	})
}

// wave starts informers, waits until they have met their fates, and stops them.
func (y *yard) wave() {
	ctx, stop := context.WithCancel(y.t.Context())
	defer stop()
	var running sync.WaitGroup
	var met []func() bool
	for i := range besides {
		i, isMet := y.informer(fates[i%len(fates)])
		running.Go(func() { i.RunWithContext(ctx) })
		met = append(met, isMet)
	}
	for i, isMet := range met {
		y.eventually(isMet, func() string { return fmt.Sprintf("informer %d is not yet %s", i, fates[i%len(fates)]) })
	}
	_, err := y.server.Update(podsResource, y.pod(y.random.IntN(5)))
	require.NoError(y.t, err)
	stop()
	running.Wait()
}

// informer makes one of any kind for a fate, and tells when it has met that.
func (y *yard) informer(of fate) (i ResourceVersionInformer, met func() bool) {
	var told atomic.Int64
	i = NewResourceVersionInformer("leak", y.config(of, &told))
	y.started++
	y.count(i.(*resourceVersionInformer))
	return i, func() bool {
		switch status := i.Status(); of {
		case watched:
			return status.Synced && status.Phase == PhaseWatching
		case hung:
			return told.Load() > 0 && status.Phase == PhaseListing
		default:
			return status.Phase == PhaseBackoff
		}
	}
}

func (y *yard) config(of fate, told *atomic.Int64) InformerConfig {
	factory := y.factory
	if of == unreachable {
		factory = y.nowhere
	}
	tell := func(interface{}) { told.Add(1) }
	modes := []ListMode{ListModeAuto, ListModePaged, ListModeFull, ListModeWatchList}
	examples := []apiruntime.Object{nil, &RawObject{}, &unstructured.Unstructured{}, &metav1.PartialObjectMetadata{}, &corev1.Pod{}}
	c := InformerConfig{
		ListerWatcher:     resourceListerWatcher{factory.Resource(string(of), podsResource)},
		ListMode:          modes[y.random.IntN(len(modes))],
		ExampleObject:     examples[y.random.IntN(len(examples))],
		WatchListPageSize: y.random.Int64N(3),
		ErrorHandler:      func(*Reflector, error) {},
		Workers:           y.random.IntN(3),
		Budget:            []*Budget{nil, y.budget, NewBudget(1 << 20)}[y.random.IntN(3)],
		Checkpoint:        []CheckpointStore{nil, nil, &memoryCheckpoint{}, FileCheckpoint(filepath.Join(y.directory, fmt.Sprint(y.started)))}[y.random.IntN(4)],
		Prune:             []string{"metadata.labels"}[:y.random.IntN(2)],
	}
	if y.random.IntN(2) == 0 {
		c.Handler = ResourceEventHandlerFuncs{AddFunc: tell, DeleteFunc: tell, SyncFunc: tell}
	} else {
		c.BatchHandler = BatchHandlerFunc(func(_ context.Context, events []Event) error {
			told.Add(int64(len(events)))
			return nil
		})
	}
	return c
}

// count counts the parts of an informer, now and when they are collected.
func (y *yard) count(i *resourceVersionInformer) {
	collected := func(counter *atomic.Int64) { counter.Add(1) }
	runtime.AddCleanup(i, collected, &y.collected)
	runtime.AddCleanup(i.flow, collected, &y.collected)
	runtime.AddCleanup(i.reflector, collected, &y.collected)
	runtime.AddCleanup(i.flow.Versions, collected, &y.collected)
	y.made.Add(4)
}

// liveHeap is the bytes in use once all informers have been collected.
func (y *yard) liveHeap() int64 {
	y.closeIdle()
	y.settle(y.idle)
	y.server.ResetRequests()
	y.server.Compact() // which forgets the history of the pods
	y.eventually(func() bool {
		runtime.GC()
		return y.collected.Load() == y.made.Load()
	}, func() string {
		return fmt.Sprintf("%d of %d parts of informers are not collected", y.made.Load()-y.collected.Load(), y.made.Load())
	})
	runtime.GC() // what pools have kept goes with the second one
	runtime.GC()
	sample := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(sample)
	return int64(sample[0].Value.Uint64())
}

// settle waits until there are so many goroutines, and not one more.
func (y *yard) settle(goroutines int) {
	y.t.Helper()
	y.eventually(func() bool { return runtime.NumGoroutine() <= goroutines }, func() string {
		stacks := make([]byte, 1<<20)
		return fmt.Sprintf("%d goroutines, not %d at most:\n%s", runtime.NumGoroutine(), goroutines, stacks[:runtime.Stack(stacks, true)])
	})
}

func (y *yard) eventually(done func() bool, otherwise func() string) {
	y.t.Helper()
	for deadline := time.Now().Add(2 * time.Minute); !done(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			require.FailNow(y.t, otherwise())
		}
	}
}

// memoryCheckpoint is a checkpoint in memory.
type memoryCheckpoint struct {
	mu   sync.Mutex
	text []byte
}

func (c *memoryCheckpoint) Load(context.Context) (io.ReadCloser, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.text == nil {
		return nil, fs.ErrNotExist
	}
	return io.NopCloser(bytes.NewReader(c.text)), nil
}

func (c *memoryCheckpoint) Save(_ context.Context, write func(io.Writer) error) error {
	var b bytes.Buffer
	err := write(&b)
	if err == nil {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.text = b.Bytes()
	}
	return err
}
