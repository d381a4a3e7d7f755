package oracle_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/informertest"
	"github.com/rvinformer/informer/informertest/oracle"
	"github.com/rvinformer/informer/internal/checkpoint"
)

var pods = schema.GroupVersionResource{Version: "v1", Resource: "pods"}

// TestTheInformerOfThisModule lets it follow random changes, with cut connections,
// compactions, versions that go back, restarts and handlers that fail.
func TestTheInformerOfThisModule(t *testing.T) {
	crash, handlers := utilruntime.ReallyCrash, utilruntime.PanicHandlers
	t.Cleanup(func() { utilruntime.ReallyCrash, utilruntime.PanicHandlers = crash, handlers })
	utilruntime.ReallyCrash, utilruntime.PanicHandlers = false, nil
	for seed := range uint64(20) {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := informertest.NewServer(informertest.Options{InMemory: true})
				defer server.Close()
				f := &follower{t: t, Server: server, dice: rand.New(rand.NewPCG(seed, 1)), storage: informer.NewResourceVersionStorage()}
				f.oracle = oracle.New(oracle.Options{Late: time.Microsecond})
				f.run()
			})
		})
	}
}

// follower is a server, and an informer that follows its pods.
type follower struct {
	t *testing.T
	*informertest.Server
	oracle  *oracle.Oracle
	storage *informer.ResourceVersionStorage
	config  informer.InformerConfig

	mu   sync.Mutex
	dice *rand.Rand
	// rewinds: versions may go back.
	rewinds bool
	// fails is one call of the handler out of how many that fails; 0: none.
	fails int
	// poison has one key out of so many fail by itself while calls fail; 0: none.
	poison int

	informer informer.ResourceVersionInformer
	stopped  func()
	// saved is the checkpoint, and life the process under way; nil: there are none, and
	// the storage stays.
	saved []byte
	life  *life
}

// life is a process, until it is killed: nothing that it does after that counts.
type life struct {
	*follower
	dead bool
}

// Load is of informer.CheckpointStore.
func (l *life) Load(context.Context) (io.ReadCloser, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.saved == nil {
		return nil, fs.ErrNotExist
	}
	return io.NopCloser(bytes.NewReader(l.saved)), nil
}

// Save is of informer.CheckpointStore.
func (l *life) Save(ctx context.Context, write func(io.Writer) error) error {
	var b bytes.Buffer
	if err := write(&b); err != nil {
		return err
	}
	time.Sleep(time.Duration(l.n(100)) * time.Millisecond)
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.dead {
		l.saved = b.Bytes()
		version, _ := contentOf(l.t, l.saved)
		l.oracle.Claimed(oracle.FromCheckpoint, version)
	}
	return nil
}

// OnBatch hands on what happens while it lives.
func (l *life) OnBatch(ctx context.Context, events []informer.Event) error {
	l.mu.Lock()
	dead := l.dead
	l.mu.Unlock()
	if dead {
		return nil
	}
	return l.oracle.BatchHandler(informer.BatchHandlerFunc(l.batch)).OnBatch(ctx, events)
}

// contentOf is what a checkpoint has.
func contentOf(t *testing.T, content []byte) (version string, known map[string]string) {
	known = map[string]string{}
	r := checkpoint.NewReader(bytes.NewReader(content))
	for {
		key, v, err := r.Next()
		if err == io.EOF {
			return strings.Clone(r.Metadata()["resourceVersion"]), known
		}
		require.NoError(t, err)
		known[strings.Clone(key)] = strings.Clone(v.Version().ResourceVersion)
	}
}

func (f *follower) n(most int) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.dice.IntN(most)
}

func (f *follower) run() {
	for range f.n(30) {
		f.touch()
	}
	f.configure()
	f.start(oracle.Run{})
	for range 40 {
		f.act()
		f.oracle.Claimed(oracle.FromStatus, f.informer.Status().ResourceVersion)
		if f.informer.HasSynced() {
			f.oracle.Synced()
		}
	}
	f.mu.Lock()
	f.fails = 0
	f.mu.Unlock()
	time.Sleep(40 * time.Minute) // a silent watch may last for half an hour
	f.Compact()
	f.stop(false) // a list finds out where versions went back
	time.Sleep(40 * time.Minute)
	f.oracle.Claimed(oracle.FromStatus, f.informer.Status().ResourceVersion)
	f.oracle.Settled(maps.Collect(f.storage.All()))
	f.stopped()
	f.oracle.Stopped(false)
	require.NoError(f.t, f.oracle.Check(), "%+v", f.config)
}

func (f *follower) configure() {
	modes := []informer.ListMode{informer.ListModeAuto, informer.ListModePaged, informer.ListModeFull, informer.ListModeWatchList}
	examples := []runtime.Object{nil, &informer.RawObject{}, &metav1.PartialObjectMetadata{}, &corev1.Pod{}}
	f.fails = []int{0, 10, 3}[f.n(3)]
	f.rewinds = f.n(4) == 0
	f.poison = []int{0, 2, 3, 5}[f.n(4)]
	f.config = informer.InformerConfig{
		Storage: f.storage, WatchListPageSize: int64(1 + f.n(20)), ListMode: modes[f.n(4)], Workers: 1 + f.n(3), MaxBatch: 1 + f.n(10),
		ExampleObject: examples[f.n(4)], Budget: informer.NewBudget(int64(1 + f.n(5000))), ErrorHandler: f.report,
	}
	if f.n(2) == 0 {
		f.life, f.rewinds = &life{follower: f}, false
		f.config.CheckpointInterval = []time.Duration{0, time.Second}[f.n(2)]
		f.config.CheckpointChanges = f.n(5)
		return
	}
	if f.n(2) == 0 {
		f.config.BatchHandler = f.oracle.BatchHandler(informer.BatchHandlerFunc(f.batch))
		return
	}
	f.config.Handler = f.oracle.Handler(informer.ResourceEventHandlerFuncs{
		AddFunc: f.called, UpdateFunc: func(_, obj interface{}) { f.called(obj) }, DeleteFunc: f.called, SyncFunc: f.called,
	})
}

var errSometimes = errors.New("sometimes")

// called is what the handler does with an object.
func (f *follower) called(interface{}) {
	if f.failsNow() {
		panic(errSometimes)
	}
}

func (f *follower) batch(_ context.Context, events []informer.Event) error {
	fails := f.failsNow()
	f.mu.Lock()
	poison := f.fails > 0 && f.poison > 0
	f.mu.Unlock()
	isPoison := func(e informer.Event) bool { return int(e.Key[len(e.Key)-1])%f.poison == 0 }
	switch {
	case poison && slices.ContainsFunc(events, isPoison):
		return errSometimes
	case !fails:
		return nil
	}
	switch f.n(4) {
	case 0:
		panic(errSometimes)
	case 1:
		failed := informer.FailedEvents{{Index: f.n(len(events)), Err: errSometimes}}
		return fmt.Errorf("a part of it: %w", failed)
	default:
		return errSometimes
	}
}

func (f *follower) failsNow() bool {
	time.Sleep(time.Duration(f.n(50)) * time.Millisecond)
	f.mu.Lock()
	fails := f.fails
	f.mu.Unlock()
	return fails > 0 && f.n(fails) == 0
}

// report notes what the informer gives up.
func (f *follower) report(_ *informer.Reflector, err error) {
	var one *informer.ProcessError
	var batch *informer.BatchError
	switch {
	case !errors.Is(err, informer.ErrPassedOver):
	case errors.As(err, &one):
		f.oracle.GaveUp(one.Key)
	case errors.As(err, &batch):
		for _, key := range batch.Keys {
			f.oracle.GaveUp(key)
		}
	}
}

// start starts a new informer, with what is left of the one before.
func (f *follower) start(r oracle.Run) {
	factory, err := informer.NewDynamicListerWatcherFactory(f.Config())
	require.NoError(f.t, err)
	f.config.ListerWatcher = factory.ForResource("", pods)
	if f.life != nil {
		f.life = &life{follower: f}
		f.storage = informer.NewResourceVersionStorage()
		f.config.Storage, f.config.Checkpoint, f.config.BatchHandler = f.storage, f.life, f.life
	}
	f.informer = informer.NewResourceVersionInformer("pods", f.config)
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	f.oracle.Started(r)
	followed := f.informer
	running.Go(func() { followed.RunWithContext(ctx) })
	f.stopped = func() {
		cancel()
		running.Wait()
	}
}

// stop ends the informer, or kills it if there are checkpoints, and starts another one.
func (f *follower) stop(kill bool) {
	stopped, r := f.stopped, oracle.Run{}
	if kill = kill && f.life != nil; kill {
		f.mu.Lock()
		f.life.dead = true
		f.oracle.Stopped(true)
		f.mu.Unlock()
	} else {
		stopped()
		f.oracle.Stopped(false)
	}
	for range f.n(10) {
		f.touch()
	}
	switch {
	case f.life == nil:
		r.Known = maps.Collect(f.storage.All())
	case f.saved == nil:
		r.Known = map[string]string{}
	default:
		r.Resumed, r.Known = contentOf(f.t, f.saved)
	}
	if kill {
		defer stopped()
	}
	f.start(r)
}

func (f *follower) act() {
	switch f.n(12) {
	case 0:
		f.CloseClientConnections()
	case 1:
		f.Compact()
	case 2:
		f.stop(f.n(3) > 0)
	case 3:
		f.rewind()
	case 4:
		time.Sleep(time.Duration(f.n(1200)) * time.Second)
	default:
		for range f.n(10) {
			f.touch()
			time.Sleep(time.Duration(f.n(3)*f.n(200)) * time.Millisecond)
		}
	}
	f.oracle.Queued(f.config.Budget.InUse(), f.config.Budget.Limit(), 16<<10)
}

// rewind sets the sequence of versions back. The objects stay.
func (f *follower) rewind() {
	now, err := strconv.ParseUint(f.ResourceVersion(), 10, 64)
	require.NoError(f.t, err)
	if back := uint64(f.n(30)); f.rewinds && now > back+2 {
		f.SetResourceVersion(now - back)
		objects, err := f.List(pods, "")
		require.NoError(f.t, err)
		var state []oracle.Write
		for _, obj := range objects {
			state = append(state, oracle.Write{Key: "ns/" + obj.GetName(), UID: obj.GetUID(), ResourceVersion: obj.GetResourceVersion()})
		}
		f.oracle.Restored(f.ResourceVersion(), state)
	}
}

// touch creates, updates or deletes one of 20 pods.
func (f *follower) touch() {
	name := fmt.Sprint("pod-", f.n(20))
	obj := &unstructured.Unstructured{Object: map[string]interface{}{"apiVersion": "v1", "kind": "Pod"}}
	obj.SetNamespace("ns")
	obj.SetName(name)
	old, err := f.Get(pods, "ns", name)
	switch {
	case err != nil:
		obj, err = f.Create(pods, obj)
		f.wrote(oracle.Created, obj, err)
	case f.n(3) == 0:
		err = f.Delete(pods, "ns", name)
		old.SetResourceVersion(f.ResourceVersion())
		f.wrote(oracle.Deleted, old, err)
	default:
		obj.SetLabels(map[string]string{"n": strconv.Itoa(f.n(1000000))})
		obj, err = f.Update(pods, obj)
		f.wrote(oracle.Updated, obj, err)
	}
}

func (f *follower) wrote(t oracle.WriteType, obj *unstructured.Unstructured, err error) {
	require.NoError(f.t, err)
	f.oracle.Wrote(oracle.Write{Type: t, Key: "ns/" + obj.GetName(), UID: obj.GetUID(), ResourceVersion: obj.GetResourceVersion()})
}
