package race

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"runtime/debug"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/labels"
	krt "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"

	"github.com/rvinformer/informer/internal/testkit/samples"
)

// The reading of a store: how many namespaces and teams are listed, and how many rounds of how many
// keys are read.
const (
	readLists  = 15
	readRounds = 9
	readKeys   = 1000
	readHot    = 100  // of these, again and again
	readAgain  = 5000 // times
)

// read measures the reading of a store.
func (c Readable) read(o Order, costs *ReadCosts) error {
	store, objects := c.Store(), o.Target.Objects
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
		cpu, start := CPUTime(), time.Now()
		n, err := c.match(store, selector)
		if err != nil {
			return err
		}
		matching, matchingWall = append(matching, CPUTime()-cpu), append(matchingWall, time.Since(start))
		costs.Matched += n
	}
	costs.Matched /= readLists
	costs.ListMatching, costs.ListMatchingWall = Middle(matching), Middle(matchingWall)
	for range readLists {
		name := samples.Namespace(random.IntN(objects))
		cpu := CPUTime()
		listed, err := store.ByIndex(cache.NamespaceIndex, name)
		if err != nil {
			return err
		}
		if namespaces = append(namespaces, CPUTime()-cpu); len(listed) != min(samples.PerNamespace, objects) {
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
	if len(keys) < readKeys {
		return fmt.Errorf("%d objects are too few: %d are read", len(keys), readKeys)
	}
	var get, hot, copies []time.Duration
	for round := range readRounds {
		some := keys[round*readKeys%(len(keys)-readKeys+1):][:readKeys]
		read := make([]krt.Object, 0, len(some))
		cpu := CPUTime()
		for _, key := range some {
			obj, exists, err := store.GetByKey(key)
			if err != nil || !exists {
				return fmt.Errorf("object %s: there is %v, error %v", key, exists, err)
			}
			read = append(read, obj.(krt.Object))
		}
		get = append(get, (CPUTime()-cpu)/readKeys)
		for _, obj := range read[:readHot] { // into the CPU's caches
			runtime.KeepAlive(obj.DeepCopyObject())
		}
		cpu = CPUTime()
		for k := range readAgain {
			runtime.KeepAlive(read[k%readHot].DeepCopyObject())
		}
		copies = append(copies, (CPUTime()-cpu)/readAgain)
		for _, key := range some[:readHot] {
			if _, _, err := store.GetByKey(key); err != nil {
				return err
			}
		}
		cpu = CPUTime()
		for k := range readAgain {
			obj, _, err := store.GetByKey(some[k%readHot])
			if err != nil {
				return err
			}
			runtime.KeepAlive(obj)
		}
		hot = append(hot, (CPUTime()-cpu)/readAgain)
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
