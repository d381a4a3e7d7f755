package informer_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/informertest"
)

// TestTorture lets random objects, faults, handlers and configurations meet and
// checks each call, and that handler and Storage are the server's in the end.
// INFORMER_TORTURE=n runs n seeds, from INFORMER_TORTURE_FROM on. One seed is
// run again with -run 'TestTorture/seed=n$' and INFORMER_TORTURE_FROM=n; the
// goroutines take their turns anew each time, so that it may take a few.
func TestTorture(t *testing.T) {
	survivePanics(t)
	from, seeds := number("INFORMER_TORTURE_FROM", 1), number("INFORMER_TORTURE", 40)
	for seed := from; seed < from+seeds; seed++ {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) { torture(t, uint64(seed)) })
	}
}

func number(variable string, otherwise int) int {
	if n, err := strconv.Atoi(os.Getenv(variable)); err == nil {
		return n
	}
	return otherwise
}

func torture(t *testing.T, seed uint64) {
	f := &faults{gone: map[string]string{}, dice: dice{rand: rand.New(rand.NewPCG(seed, 1))}}
	bubble(t, informertest.Options{Wrap: f.wrap}, func(t *testing.T, w *world) {
		f.world = w
		x := &torment{
			world: w, faults: f, dice: dice{rand: rand.New(rand.NewPCG(seed, 2))}, storage: informer.NewResourceVersionStorage(),
			handler: newSceptic(seed),
		}
		x.handler.acknowledged = func(key string) string {
			version, _, _ := x.storage.GetByKey(key)
			stored, _ := version.(string)
			return stored
		}
		x.handler.synced = func() bool { return x.informer.HasSynced() }
		x.handler.alive = func(key string, uid types.UID) bool {
			namespace, name, _ := strings.Cut(key, "/")
			obj, err := w.Get(pods, namespace, name)
			return err == nil && obj.GetUID() == uid
		}
		x.prepare()
		defer func() { x.stop() }()
		for range 20 + x.n(40) {
			x.act()
			x.resumable()
			x.handler.checkSynced()
		}
		x.settle()
	})
}

// dice is a source of random decisions for several goroutines.
type dice struct {
	mu   sync.Mutex
	rand *rand.Rand
}

// n is a number below most.
func (d *dice) n(most int) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.rand.IntN(most)
}

// one is true one time out of n, and never for 0.
func (d *dice) one(n int) bool { return n > 0 && d.n(n) == 0 }

// faults is what stands between server and informer.
type faults struct {
	dice
	world    *world
	touching sync.Mutex
	gone     map[string]string // the version of each key's last deletion

	state sync.Mutex
	kind  string
}

func (f *faults) become(kind string) {
	f.state.Lock()
	defer f.state.Unlock()
	f.kind = kind
}

func (f *faults) now() string {
	f.state.Lock()
	defer f.state.Unlock()
	return f.kind
}

var statuses = []int{http.StatusTooManyRequests, http.StatusInternalServerError, http.StatusServiceUnavailable, http.StatusForbidden, http.StatusGatewayTimeout}

func (f *faults) wrap(server http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch kind := f.now(); {
		case kind == "refuse" && !f.one(4):
			if f.one(2) {
				w.Header().Set("Retry-After", strconv.Itoa(1+f.n(3)))
			}
			http.Error(w, "refused", statuses[f.n(len(statuses))])
			return
		case kind == "cut" && f.one(2):
			w = &cutting{ResponseWriter: w, left: f.n(2000)}
		case kind == "close" && isWatch(r):
			return
		case kind == "silent" && isWatch(r):
			w.WriteHeader(http.StatusOK)
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
			return
		case kind == "refuse watch-lists" && isWatchList(r):
			http.Error(w, "sendInitialEvents is forbidden", http.StatusUnprocessableEntity)
			return
		case kind == "ignore watch-lists" && isWatchList(r):
			r = ignoring(r, "sendInitialEvents", "resourceVersionMatch")
		case kind == "compact" && f.one(2):
			f.touch()
			f.world.Compact()
		}
		server.ServeHTTP(w, r)
	})
}

// touch creates, changes, deletes, or deletes and creates again one of 30 pods.
func (f *faults) touch() {
	f.touching.Lock()
	defer f.touching.Unlock()
	w, n, how := f.world, f.n(30), f.n(5)
	key := fmt.Sprintf("ns%d/pod-%d", n%3, n)
	if _, err := w.Get(pods, fmt.Sprintf("ns%d", n%3), fmt.Sprintf("pod-%d", n)); err != nil {
		w.create(key)
		return
	}
	switch how {
	case 0, 1:
		w.remove(key)
		f.gone[key] = w.ResourceVersion()
		if how == 1 {
			w.create(key)
		}
	default:
		w.update(key, w.ResourceVersion())
	}
}

// torment is one seed's run.
type torment struct {
	*world
	dice
	faults  *faults
	handler *sceptic
	storage *informer.ResourceVersionStorage
	config  informer.InformerConfig

	informer informer.ResourceVersionInformer
	stopRun  func()
	rewinds  bool
	// rewound: only a list can tell what happened.
	rewound bool
}

func (x *torment) prepare() {
	for range x.n(60) {
		x.faults.touch()
	}
	if x.one(3) { // warm, and the world moves on
		versions, err := x.ResourceVersions(pods, "")
		require.NoError(x.t, err)
		stored := map[string]interface{}{}
		for key, version := range versions {
			stored[key], x.handler.known[key], x.handler.acked[key] = version, version, version
		}
		require.NoError(x.t, x.storage.Replace(stored))
		for range x.n(30) {
			x.faults.touch()
		}
	}
	modes := []informer.ListMode{informer.ListModeAuto, informer.ListModePaged, informer.ListModeFull, informer.ListModeWatchList}
	examples := []runtime.Object{nil, &informer.RawObject{}, &metav1.PartialObjectMetadata{}, &corev1.Pod{}}
	x.config = informer.InformerConfig{
		Storage:           x.storage,
		Handler:           x.handler,
		WatchListPageSize: int64(1 + x.n(50)),
		ListMode:          modes[x.n(4)],
		Workers:           1 + x.n(4),
		ExampleObject:     examples[x.n(4)],
		Budget:            informer.NewBudget(int64(1 + x.n(5000))),
		ErrorHandler:      (&failures{}).handle,
	}
	if x.one(2) {
		x.config.StallTimeout = 2 * time.Minute
	}
	h := x.handler
	switch x.n(4) {
	case 0:
		x.config.Handler = informer.ResourceEventHandlerDetailedFuncs{
			AddFunc: h.OnAdd, UpdateFunc: h.OnUpdate, DeleteFunc: h.OnDelete,
		}
	case 1, 2:
		x.config.Handler, x.config.BatchHandler = nil, h
		x.config.MaxBatch = []int{0, 1, 2, 1 + x.n(30)}[x.n(4)]
		if x.one(3) {
			x.config.BatchHandler, h.ignores = informer.IgnoreSynced(h), true
		}
		h.errors = []int{0, 0, 10, 2}[x.n(4)]
	}
	h.slow = []int{0, 20, 3000}[x.n(3)]
	h.panics = []int{0, 0, 10, 2}[x.n(4)]
	h.exits = []int{0, 0, 0, 10}[x.n(4)]
	x.rewinds = x.one(4)
	x.restart(true)
}

func (x *torment) stop() {
	x.stopRun()
	synctest.Wait()
	require.Zero(x.t, x.config.Budget.InUse(), "given back")
	x.handler.forget()
}

func (x *torment) restart(anew bool) {
	if anew {
		x.config.ListerWatcher = x.lister()
		x.informer = informer.NewResourceVersionInformer("pods", x.config)
	}
	x.stopRun = start(x.informer.RunWithContext)
}

func (x *torment) act() {
	switch x.n(16) {
	case 0:
		x.CloseClientConnections()
	case 1:
		x.Compact()
	case 2:
		x.faults.become([]string{"refuse", "cut", "close", "silent", "compact", "refuse watch-lists", "ignore watch-lists"}[x.n(7)])
	case 3, 4:
		x.faults.become("")
	case 5:
		x.stop()
		for range x.n(10) {
			x.faults.touch()
		}
		x.restart(x.one(2))
	case 6:
		x.blocked.Lock()
		x.CloseClientConnections()
		for range x.n(20) {
			x.faults.touch()
		}
		time.Sleep(time.Duration(x.n(300)) * time.Second)
		x.blocked.Unlock()
	case 7:
		time.Sleep(time.Duration(x.n(1200)) * time.Second)
	case 8:
		if rv, err := strconv.Atoi(x.ResourceVersion()); err == nil && x.rewinds {
			x.SetResourceVersion(uint64(max(2, rv-x.n(30))))
			x.rewound = true
		}
	default:
		for range 1 + x.n(10) {
			x.faults.touch()
			if x.one(3) {
				time.Sleep(time.Duration(x.n(500)) * time.Millisecond)
			}
		}
	}
}

// resumable checks that all up to Status.ResourceVersion is acknowledged.
func (x *torment) resumable() {
	if x.rewound {
		return
	}
	x.faults.touching.Lock()
	defer x.faults.touching.Unlock()
	point := x.informer.Status().ResourceVersion
	stored := maps.Collect(x.storage.All())
	server, err := x.ResourceVersions(pods, "")
	require.NoError(x.t, err)
	for key, version := range server {
		if notAfter(version, point) {
			require.True(x.t, notAfter(version, stored[key]), "%s: server %s, resume point %s, stored %q", key, version, point, stored[key])
		}
	}
	for key, version := range x.faults.gone {
		if server[key] == "" && notAfter(version, point) {
			require.NotContains(x.t, stored, key, "deleted in %s, resume point %s", version, point)
		}
	}
}

// notAfter is false where one of the versions is empty.
func notAfter(a, b string) bool {
	order, err := resourceversion.CompareResourceVersion(a, b)
	return err == nil && order <= 0
}

// settle takes all faults away, waits, and checks what is left.
func (x *torment) settle() {
	x.handler.mu.Lock()
	x.handler.panics, x.handler.errors, x.handler.exits = 0, 0, 0
	lost := x.handler.anyLost
	x.handler.mu.Unlock()
	x.faults.become("")
	time.Sleep(40 * time.Minute) // a silent watch may last for half an hour
	if !lost && !x.rewound {
		x.check("without a list")
	}
	x.relist()
	time.Sleep(5 * time.Minute) // a slow handler is told of all again where versions went back
	x.check("after a list")
	x.faults.touch()
	time.Sleep(time.Minute)
	x.check("after one more change")
}

func (x *torment) check(when string) {
	h := x.handler
	h.mu.Lock()
	defer h.mu.Unlock()
	require.Empty(x.t, h.wrong, "%s; config %+v; calls %v", when, x.config, h.calls)
	h.checkKept(x.t)
	server, err := x.ResourceVersions(pods, "")
	require.NoError(x.t, err)
	status := x.informer.Status()
	told := fmt.Sprintf("%s; config %+v; status %+v; calls %v", when, x.config, status, h.calls)
	require.Equal(x.t, server, h.known, "handler %s", told)
	require.Equal(x.t, server, maps.Collect(x.storage.All()), "Storage %s", told)
	require.True(x.t, x.informer.HasSynced(), told)
	require.Equal(x.t, informer.PhaseWatching, status.Phase, told)
	require.Zero(x.t, status.Queued, told)
	require.Zero(x.t, status.QueuedBytes, told)
	require.Zero(x.t, x.config.Budget.InUse(), told)
	require.Equal(x.t, len(server), status.Objects, told)
	require.NoError(x.t, status.LastError, told)
	require.NotEmpty(x.t, status.ResourceVersion, told)
	require.Equal(x.t, status.ResourceVersion, x.informer.LastSyncResourceVersion(), told)
}
