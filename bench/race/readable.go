package race

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"runtime/pprof"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/labels"
	krt "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"

	"github.com/rvinformer/informer/internal/samples"
)

// ReadOrder is what a program of readable caches is told on its input.
type ReadOrder struct {
	Contestant string
	Figure     Figure
	// Target is the server that an informer follows. It has samples.
	Target Target
	// Objects is how many a store is filled with.
	Objects int
	// Profile is a file for a profile of the heap where memory is measured, and Profile+".cpu" for one of the CPU.
	Profile string
}

// The contestants.
const (
	ClientGoTyped    = "client-go-typed"
	OursTyped        = "objectcache-typed"
	ClientGoDynamic  = "client-go-dynamic"
	OursUnstructured = "objectcache-unstructured"

	ControllerRuntime = "controller-runtime"
)

// Operators are the contestants of the figure Operator.
var Operators = []string{ControllerRuntime}

// Readables are the contestants in the order of the tables.
var Readables = []string{ClientGoTyped, OursTyped, ClientGoDynamic, OursUnstructured}

// Figure is what is measured of a readable cache, in a process of its own.
type Figure string

const (
	// StoreMemory is that of a store: filled, and after each object was updated ten times.
	StoreMemory Figure = "store"
	// Reading is how fast a filled store is read.
	Reading Figure = "read"
	// Informing is what an informer with a namespace index takes from its start on, through a list in which nothing
	// changed.
	Informing Figure = "informer"
	// Operator is what controller-runtime's cache takes, and how fast a controller reads it.
	Operator Figure = "operator"
)

// ReadCosts are what a readable cache has cost. What a figure does not measure is zero.
type ReadCosts struct {
	// Live is what is live per object, on the heap after a collection and outside of it, and LiveUpdated the
	// same after the updates.
	Live, LiveUpdated float64
	// Add and Update are the CPU times of one of these on a store.
	Add, Update time.Duration

	// Peaks are those of a process with an informer.
	Peaks Peaks
	// StartCPU is the CPU time until it had synced, and StartWall the time.
	StartCPU, StartWall time.Duration
	// Decoded is how many objects it decoded in the list without changes; -1 if it does not say.
	Decoded int64

	// CPU times of reading one object by key: one that was not read before, and one that was just read; and of a DeepCopy of it.
	Get, GetHot, DeepCopy time.Duration
	// ListMatching is the CPU time, and ListMatchingWall the time, of listing by labels what is about one object in a hundred, with a selector
	// that was not used before; Matched is how many it found.
	ListMatching, ListMatchingWall time.Duration
	Matched                        int
	// Namespace is the CPU time of listing a namespace of 500.
	Namespace time.Duration
}

// Readable is a contestant of readable caches.
type Readable struct {
	Name string
	// Object makes object i of a sample cluster after some updates, as a client decodes it.
	Object func(i, revision int) krt.Object
	// Store opens an empty store with an index of namespaces.
	Store func() cache.Indexer
	// Open runs an informer with an index of namespaces.
	Open func(ctx context.Context, t *Target, loss *Loss) (*Running, error)
	// Match lists by labels; the default is client-go's way to do that, which its listers have.
	Match func(of cache.Indexer, selector labels.Selector) (int, error)
}

// Read measures one figure.
func (c Readable) Read(ctx context.Context, o ReadOrder) (costs ReadCosts, err error) {
	costs.Decoded = -1
	switch o.Figure {
	case StoreMemory:
		err = c.store(o, &costs)
	case Reading:
		err = c.read(o, &costs)
	case Informing:
		return o.Informing(ctx, func(ctx context.Context, loss *Loss) (*Running, error) { return c.Open(ctx, &o.Target, loss) }, nil)
	default:
		err = fmt.Errorf("no figure %q", o.Figure)
	}
	return costs, err
}

// Updates is how often each object of a store is updated.
const Updates = 10

func (c Readable) store(o ReadOrder, costs *ReadCosts) error {
	// What a first object leaves in memory for ever is none of its cost.
	scratch := c.Store()
	for i := range 100 {
		if err := scratch.Add(c.Object(i, 0)); err != nil {
			return err
		}
	}
	scratch = nil
	before, err := liveBytes()
	if err != nil {
		return err
	}
	store := c.Store()
	perObject := func() (float64, error) {
		now, err := liveBytes()
		return float64(now-before) / float64(o.Objects), err
	}
	var all []update
	for i := range o.Objects {
		all = append(all, update{i, 0})
	}
	if costs.Add, err = c.put(store, all); err != nil {
		return err
	}
	all = nil
	if costs.Live, err = perObject(); err != nil {
		return err
	}
	if err := heapProfile(o.Profile); err != nil {
		return err
	}
	updates := randomUpdates(o.Objects)
	stopProfile, err := cpuProfile(o.Profile)
	if err != nil {
		return err
	}
	defer stopProfile()
	if costs.Update, err = c.put(store, updates); err != nil {
		return err
	}
	updates = nil
	if costs.LiveUpdated, err = perObject(); err != nil {
		return err
	}
	if n := len(store.ListKeys()); n != o.Objects {
		return fmt.Errorf("the store has %d objects instead of %d", n, o.Objects)
	}
	return nil
}

type update struct{ object, revision int }

// randomUpdates are ten of each object, in random order but for those of one object.
func randomUpdates(objects int) []update {
	all := make([]update, 0, objects*Updates)
	for i := range objects {
		for range Updates {
			all = append(all, update{object: i})
		}
	}
	rand.New(rand.NewPCG(1, 2)).Shuffle(len(all), func(i, k int) { all[i], all[k] = all[k], all[i] })
	done := make([]int, objects)
	for k := range all {
		done[all[k].object]++
		all[k].revision = done[all[k].object]
	}
	return all
}

// put adds or updates objects, and returns the CPU time of one.
func (c Readable) put(store cache.Indexer, all []update) (time.Duration, error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var failed error
	took := inParts(len(all), func(k int) krt.Object { return c.Object(all[k].object, all[k].revision) }, func(obj krt.Object) {
		if err := store.Update(obj); err != nil {
			failed = err
		}
	})
	return took / time.Duration(len(all)), failed
}

// Running is a readable cache that follows a server.
type Running struct {
	// Synced is closed when it can be read.
	Synced <-chan struct{}
	// Objects is how many it has.
	Objects func() (int, error)
	// Decoded is how many objects it has decoded, if it says so.
	Decoded func() int64
	// Wait returns after everything has ended. The context must have.
	Wait func()
}

// Run runs an informer.
func Run(ctx context.Context, informer cache.SharedIndexInformer) *Running {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		informer.RunWithContext(ctx)
	}()
	return &Running{
		Synced:  informer.HasSyncedChecker().Done(),
		Objects: func() (int, error) { return len(informer.GetIndexer().ListKeys()), nil },
		Wait:    func() { <-ended },
	}
}

// Informing measures a cache from its start on, and has read called when its memory was measured.
func (o ReadOrder) Informing(ctx context.Context, open func(context.Context, *Loss) (*Running, error), read func() error) (costs ReadCosts, err error) {
	costs.Decoded = -1
	before, err := liveBytes()
	if err != nil {
		return costs, err
	}
	stopProfile, err := cpuProfile(o.Profile)
	if err != nil {
		return costs, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	loss := &Loss{}
	cpu, start := cpuTime(), time.Now()
	running, err := open(ctx, loss)
	if err != nil {
		return costs, err
	}
	defer func() {
		cancel()
		running.Wait()
	}()
	synced := make(chan struct{})
	go func() {
		defer close(synced)
		_ = done(ctx, running.Synced)
		costs.StartCPU, costs.StartWall = cpuTime()-cpu, time.Since(start)
		stopProfile()
	}()
	decoded := int64(-1)
	costs.Peaks, err = loss.Measure(ctx, synced, func() error {
		if running.Decoded != nil {
			if decoded >= 0 {
				costs.Decoded = running.Decoded() - decoded
			}
			decoded = running.Decoded()
		}
		return o.allThere(running)
	})
	if err != nil {
		return costs, err
	}
	now, err := liveBytes()
	if err != nil {
		return costs, err
	}
	costs.Live = float64(now-before) / float64(o.Target.Objects)
	if err := heapProfile(o.Profile); err != nil || read == nil {
		return costs, err
	}
	return costs, read()
}

func (o ReadOrder) allThere(running *Running) error {
	n, err := running.Objects()
	if err == nil && n != o.Target.Objects {
		err = fmt.Errorf("there are %d objects instead of %d", n, o.Target.Objects)
	}
	return err
}

// The reading of a store: how many namespaces and teams are listed, and how many rounds of how many keys are read.
const (
	readLists  = 15
	readRounds = 9
	readKeys   = 1000
	readHot    = 100  // of these, again and again
	readAgain  = 5000 // times
)

// read measures the reading of a store.
func (c Readable) read(o ReadOrder, costs *ReadCosts) error {
	store, objects := c.Store(), o.Objects
	var all []update
	for i := range objects {
		all = append(all, update{i, 0})
	}
	if _, err := c.put(store, all); err != nil {
		return err
	}
	all = nil
	debug.FreeOSMemory()
	stopProfile, err := cpuProfile(o.Profile)
	if err != nil {
		return err
	}
	defer stopProfile()
	var matching, matchingWall, namespaces []time.Duration
	random := rand.New(rand.NewPCG(3, 4))
	for _, team := range random.Perm(samples.Teams)[:readLists] {
		selector := labels.SelectorFromSet(labels.Set{"team": fmt.Sprintf("team-%02d", team)})
		cpu, start := cpuTime(), time.Now()
		n, err := c.match(store, selector)
		if err != nil {
			return err
		}
		matching, matchingWall = append(matching, cpuTime()-cpu), append(matchingWall, time.Since(start))
		costs.Matched += n
	}
	costs.Matched /= readLists
	costs.ListMatching, costs.ListMatchingWall = Middle(matching), Middle(matchingWall)
	for range readLists {
		name := samples.Namespace(random.IntN(objects))
		cpu := cpuTime()
		listed, err := store.ByIndex(cache.NamespaceIndex, name)
		if err != nil {
			return err
		}
		if namespaces = append(namespaces, cpuTime()-cpu); len(listed) != min(samples.PerNamespace, objects) {
			return fmt.Errorf("namespace %s has %d objects", name, len(listed))
		}
	}
	costs.Namespace = Middle(namespaces)
	return c.readKeys(store, random, costs)
}

// readKeys measures the reading of single objects.
func (c Readable) readKeys(store cache.Indexer, random *rand.Rand, costs *ReadCosts) error {
	keys := store.ListKeys()
	slices.Sort(keys)
	random.Shuffle(len(keys), func(i, k int) { keys[i], keys[k] = keys[k], keys[i] })
	var get, hot, copies []time.Duration
	for round := range readRounds {
		some := keys[round*readKeys%len(keys):]
		some = some[:min(readKeys, len(some))]
		read := make([]krt.Object, 0, len(some))
		cpu := cpuTime()
		for _, key := range some {
			obj, exists, err := store.GetByKey(key)
			if err != nil || !exists {
				return fmt.Errorf("object %s: there is %v, error %v", key, exists, err)
			}
			read = append(read, obj.(krt.Object))
		}
		get = append(get, (cpuTime()-cpu)/time.Duration(len(some)))
		for _, obj := range read[:readHot] { // into the CPU's caches
			runtime.KeepAlive(obj.DeepCopyObject())
		}
		cpu = cpuTime()
		for k := range readAgain {
			runtime.KeepAlive(read[k%readHot].DeepCopyObject())
		}
		copies = append(copies, (cpuTime()-cpu)/readAgain)
		for _, key := range some[:readHot] {
			if _, _, err := store.GetByKey(key); err != nil {
				return err
			}
		}
		cpu = cpuTime()
		for k := range readAgain {
			obj, _, err := store.GetByKey(some[k%readHot])
			if err != nil {
				return err
			}
			runtime.KeepAlive(obj)
		}
		hot = append(hot, (cpuTime()-cpu)/readAgain)
	}
	costs.Get, costs.GetHot, costs.DeepCopy = Middle(get), Middle(hot), Middle(copies)
	return nil
}

func (c Readable) match(store cache.Indexer, selector labels.Selector) (n int, err error) {
	if c.Match != nil {
		return c.Match(store, selector)
	}
	err = cache.ListAll(store, selector, func(any) { n++ })
	return n, err
}

// Middle is the median.
func Middle(all []time.Duration) time.Duration {
	if len(all) == 0 {
		return 0
	}
	slices.Sort(all)
	return all[len(all)/2]
}

// liveBytes is what is live on the heap, and what the process has in memory beside what the Go runtime has.
func liveBytes() (int64, error) {
	debug.FreeOSMemory()
	heap := settledMemory().HeapAlloc
	debug.FreeOSMemory()
	outside, err := outsideBytes()
	return int64(heap) + outside, err
}

// outsideBytes is the anonymous and the shared memory that is resident and not of the Go runtime. It is about right: the runtime has
// memory that it has not touched yet.
func outsideBytes() (int64, error) {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0, err
	}
	var resident int64
	for lines := bufio.NewScanner(bytes.NewReader(status)); lines.Scan(); {
		name, value, _ := strings.Cut(lines.Text(), ":")
		if name != "RssAnon" && name != "RssShmem" {
			continue
		}
		kilobytes, err := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(value, "kB")), 10, 64)
		if err != nil {
			return 0, err
		}
		resident += kilobytes << 10
	}
	sample := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	metrics.Read(sample)
	return max(0, resident-int64(sample[0].Value.Uint64()-sample[1].Value.Uint64())), nil
}

// cpuProfile begins one in a file beside that of the heap, and returns what ends it.
func cpuProfile(path string) (stop func(), err error) {
	if path == "" {
		return func() {}, nil
	}
	file, err := os.Create(path + ".cpu")
	if err != nil {
		return nil, err
	}
	return func() {
		pprof.StopCPUProfile()
		_ = file.Close() // a profile that is not whole cannot be read
	}, pprof.StartCPUProfile(file)
}

// heapProfile writes what is live to a file, if it is named.
func heapProfile(path string) error {
	if path == "" {
		return nil
	}
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	if err := pprof.Lookup("heap").WriteTo(file, 0); err != nil {
		return err
	}
	return file.Close()
}
