package shards_test

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/fleet"
	"github.com/rvinformer/informer/fleet/shards"
	"github.com/rvinformer/informer/informertest"

	_ "github.com/rvinformer/informer/internal/testkit/rapidseed"
)

func TestMain(m *testing.M) {
	klog.SetSlogLogger(slog.New(slog.DiscardHandler)) // client-go has much to say of dead servers
	utilruntime.ErrorHandlers = nil                   // one sleeps by the time since the last error, which in a bubble is decades
	goleak.VerifyTestMain(m)
}

var leases = schema.GroupVersionResource{Group: "coordination.k8s.io", Version: "v1", Resource: "leases"}

var leaseResource = informertest.Resource{GroupVersionResource: leases, Kind: "Lease", Namespaced: true}

// world is a coordinating cluster and the replicas that use it.
type world struct {
	t      *testing.T
	server *informertest.Server
	units  []fleet.Unit

	mu      sync.Mutex
	owners  map[fleet.Unit][]string // those whose RunUnit is under way
	epochs  map[fleet.Unit][]int64  // all that were ever given out
	doubles []string                // owners side by side
}

// bubble runs a test in virtual time, with a coordinating cluster and some units.
func bubble(t *testing.T, units int, test func(t *testing.T, w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &world{t: t, owners: map[fleet.Unit][]string{}, epochs: map[fleet.Unit][]int64{}}
		for i := range units {
			w.units = append(w.units, fleet.Unit{Cluster: fmt.Sprintf("cluster-%03d", i), Group: "all"})
		}
		w.server = informertest.NewServer(informertest.Options{InMemory: true, Resources: []informertest.Resource{leaseResource}})
		defer w.server.Close()
		test(t, w)
	})
}

// replica is a replica that a test runs, with its network.
type replica struct {
	*shards.Replica
	w    *world
	name string
	net  *network
	stop context.CancelFunc
	done chan struct{}
	run  func(ctx context.Context, u fleet.Unit) error // RunUnit; nil: wait for the end
	set  []fleet.Unit                                  // its units; nil: those of the world

	mu      sync.Mutex
	changed chan struct{}
}

// start runs a replica until the test ends or it is stopped.
func (w *world) start(name string, with ...func(*shards.Config, *replica)) *replica {
	w.t.Helper()
	r := &replica{w: w, name: name, net: &network{}, done: make(chan struct{}), changed: make(chan struct{})}
	config := w.server.Config()
	config.Wrap(r.net.over)
	c := shards.Config{Client: clientset(w.t, config).CoordinationV1(), Namespace: "fleet", Name: "test", Identity: name, Work: r}
	for _, f := range with {
		f(&c, r)
	}
	var err error
	r.Replica, err = shards.New(c)
	require.NoError(w.t, err)
	ctx, stop := context.WithCancel(w.t.Context())
	r.stop = stop
	go func() {
		defer close(r.done)
		_ = r.Run(ctx)
	}()
	return r
}

func clientset(t *testing.T, config *rest.Config) kubernetes.Interface {
	t.Helper()
	c, err := kubernetes.NewForConfig(config)
	require.NoError(t, err)
	return c
}

// startTwo starts the replicas a and b, and waits until they have settled.
func (w *world) startTwo() (a, b *replica) {
	w.t.Helper()
	a, b = w.start("a"), w.start("b")
	w.covered(settled)
	time.Sleep(settled)
	return a, b
}

// end stops replicas and waits until they have ended.
func (w *world) end(replicas ...*replica) {
	for _, r := range replicas {
		r.stop()
	}
	for _, r := range replicas {
		<-r.done
	}
}

// crash ends a replica so that nothing that it does from now on reaches the server. Its units count
// as uncovered at once.
func (r *replica) crash() {
	r.net.cut()
	r.w.forget(r.name)
	r.stop()
}

// forget takes an owner for one that runs nothing.
func (w *world) forget(owner string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for u, owners := range w.owners {
		w.owners[u] = slices.DeleteFunc(owners, func(o string) bool { return o == owner })
	}
}

func (r *replica) Units() []fleet.Unit {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.set != nil {
		return r.set
	}
	return r.w.units
}

func (r *replica) Changed() <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.changed
}

// use gives the replica other units.
func (r *replica) use(units []fleet.Unit) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.set = units
	close(r.changed)
	r.changed = make(chan struct{})
}

func (r *replica) RunUnit(ctx context.Context, u fleet.Unit) error {
	epoch, ok := informer.EpochOf(ctx)
	require.True(r.w.t, ok)
	r.w.enter(r.name, u, epoch)
	defer r.w.leave(r.name, u)
	if r.run != nil {
		return r.run(ctx, u)
	}
	<-ctx.Done()
	return nil
}

func (w *world) enter(owner string, u fleet.Unit, epoch int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.owners[u] = append(w.owners[u], owner)
	w.epochs[u] = append(w.epochs[u], epoch)
	if len(w.owners[u]) > 1 {
		w.doubles = append(w.doubles, fmt.Sprint(u, w.owners[u]))
	}
}

func (w *world) leave(owner string, u fleet.Unit) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.owners[u] = slices.DeleteFunc(w.owners[u], func(o string) bool { return o == owner })
}

// owned returns how many units each replica runs, and how many none does.
func (w *world) owned() (counts map[string]int, uncovered int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	counts = map[string]int{}
	for _, u := range w.units {
		if len(w.owners[u]) == 0 {
			uncovered++
		}
		for _, o := range w.owners[u] {
			counts[o]++
		}
	}
	return counts, uncovered
}

// covered waits until each unit is run by somebody, and returns how long that took.
func (w *world) covered(within time.Duration) time.Duration {
	w.t.Helper()
	begin := time.Now()
	for {
		synctest.Wait()
		if _, uncovered := w.owned(); uncovered == 0 {
			return time.Since(begin)
		}
		if time.Since(begin) > within {
			_, uncovered := w.owned()
			require.Failf(w.t, "not covered", "%d units have no owner after %v", uncovered, within)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// ownersNow returns the owner of each unit.
func (w *world) ownersNow() map[fleet.Unit]string {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := map[fleet.Unit]string{}
	for u, owners := range w.owners {
		if len(owners) > 0 {
			now[u] = owners[len(owners)-1]
		}
	}
	return now
}

// increasing fails unless the epochs of each unit grow.
func (w *world) increasing() {
	w.t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	for u, epochs := range w.epochs {
		for i := 1; i < len(epochs); i++ {
			require.Greater(w.t, epochs[i], epochs[i-1], u)
		}
	}
}

// alone fails if two replicas have run one unit at a time.
func (w *world) alone() {
	w.t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	require.Empty(w.t, w.doubles)
}

// lease reads a Lease from the server.
func (w *world) lease(name string) *coordinationv1.Lease {
	w.t.Helper()
	lease, err := clientset(w.t, w.server.Config()).CoordinationV1().Leases("fleet").Get(w.t.Context(), name, metav1.GetOptions{})
	require.NoError(w.t, err)
	return lease
}
