package race

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Store remembers the versions of objects. It may be used by several.
type Store interface {
	// Put stores the version of an object, known or not, under the key that it makes
	// of it. The object may be kept.
	Put(obj *metav1.PartialObjectMetadata)
	// Remove forgets an object.
	Remove(obj *metav1.PartialObjectMetadata)
	// Has reads the version of a key.
	Has(key string) bool
	// Pass reads each version, and counts them.
	Pass() int
	// PassKeys reads each version and the last letter of its key, and counts them.
	PassKeys() int
	ListKeys() []string
}

// StoreCosts are what a store has cost.
type StoreCosts struct {
	// Live is what the garbage collector leaves of a filled store, LiveLater what it
	// leaves after each object was updated, removed and put again, and Peak what the
	// process had in addition at most while it was filled; in bytes of all keys.
	Live, LiveLater, Peak int64
	// The caller's CPU time, for all keys. What else runs, the garbage collector too,
	// is not in it.
	Fill, Lookup, Absent, Update, Replace, Pass, PassKeys, ListKeys time.Duration
	// GC is how long a full garbage collection beside the filled store takes, GCCPU
	// the CPU time of it.
	GC, GCCPU time.Duration
}

// storing is one run of a store.
type storing struct {
	keys  keys
	order []uint32 // random
	store Store
	costs StoreCosts
}

// repeated is how often is done what takes little time; the median counts.
const repeated = 7

// store measures a store.
func (t *trial) store(empty Store) error {
	runtime.LockOSThread() // its CPU time is measured
	defer runtime.UnlockOSThread()
	n := t.Target.Objects
	keys, err := t.Names.keys(n)
	if err != nil {
		return err
	}
	s := &storing{keys: keys, order: shuffled(n), store: empty}
	clock := t.Target.startStopwatch()
	before := settledMemory()
	rss, err := settledRSS()
	if err != nil {
		return err
	}
	live := func() int64 {
		now := settledMemory()
		return int64(now.HeapAlloc) - int64(before.HeapAlloc)
	}

	s.costs.Fill = s.objects(0, func(k int) int { return k }, s.store.Put)
	if err := t.result.notePeakRSS(); err != nil {
		return err
	}
	s.costs.Peak = t.result.PeakRSS - rss
	s.costs.Live = live()
	s.costs.GC = median(wallTime, runtime.GC)
	s.costs.GCCPU = median(CPUTime, runtime.GC)
	if err := s.read(); err != nil {
		return err
	}
	s.costs.Update = s.objects(1, s.random, s.store.Put)
	s.costs.Replace = s.objects(2, s.random, func(obj *metav1.PartialObjectMetadata) {
		s.store.Remove(obj)
		s.store.Put(obj)
	})
	s.costs.LiveLater = live()
	if n != len(s.store.ListKeys()) {
		return errors.New("it has other keys in the end")
	}
	clock.stop(&t.result)
	t.result.Store = &s.costs
	return nil
}

// read measures what changes nothing, and holds it against what must come out.
func (s *storing) read() error {
	found, foundNear := 0, 0
	s.costs.Lookup = s.lookups(s.keys.at, &found)
	s.costs.Absent = s.lookups(s.keys.near, &foundNear)
	passed, passedKeys, listed := 0, 0, 0
	s.costs.Pass = median(threadCPUTime, func() { passed = s.store.Pass() })
	s.costs.PassKeys = median(threadCPUTime, func() { passedKeys = s.store.PassKeys() })
	s.costs.ListKeys = median(threadCPUTime, func() { listed = len(s.store.ListKeys()) })
	if n := s.keys.len(); found != n || foundNear != 0 || passed != n || passedKeys != n || listed != n {
		return fmt.Errorf("of %d keys it found %d, and %d others; it read %d, %d with their keys, and listed %d", n, found, foundNear, passed, passedKeys, listed)
	}
	return nil
}

func (s *storing) random(k int) int { return int(s.order[k]) }

// objects makes an object of each key and times only what is done with it.
func (s *storing) objects(age int, order func(k int) int, do func(*metav1.PartialObjectMetadata)) time.Duration {
	return inParts(s.keys.len(), func(k int) *metav1.PartialObjectMetadata { return s.keys.object(order(k), age) }, do)
}

// lookups looks up a key made of each, in random order.
func (s *storing) lookups(key func(i int) string, found *int) time.Duration {
	return inParts(s.keys.len(), func(k int) string { return strings.Clone(key(s.random(k))) }, func(key string) {
		if s.store.Has(key) {
			*found++
		}
	})
}

// inParts makes some of n and does something with each of them, which alone is
// timed, and so on. What was made is in the CPU's caches, as what was just read is.
func inParts[T any](n int, make func(k int) T, do func(T)) (took time.Duration) {
	var some [1000]T
	for first := 0; first < n; first += len(some) {
		part := some[:min(len(some), n-first)]
		for k := range part {
			part[k] = make(first + k)
		}
		start := threadCPUTime()
		for _, one := range part {
			do(one)
		}
		took += threadCPUTime() - start
	}
	return took
}

// median is what something takes of a kind of time.
func median(now func() time.Duration, do func()) time.Duration {
	var all [repeated]time.Duration
	for i := range all {
		start := now()
		do()
		all[i] = now() - start
	}
	return Middle(all[:])
}
