package race

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"time"

	krt "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"
)

// Updates is how often each object of a store is updated.
const Updates = 10

func (c Readable) store(o Order, costs *ReadCosts) error {
	// The first object leaves things in memory for ever, which are not counted.
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
		return float64(now-before) / float64(o.Target.Objects), err
	}
	var all []update
	for i := range o.Target.Objects {
		all = append(all, update{i, 0})
	}
	if costs.Add, err = c.put(store, all); err != nil {
		return err
	}
	all = nil
	if costs.Live, err = perObject(); err != nil {
		return err
	}
	if err := writeProfile("heap", o.Profile); err != nil {
		return err
	}
	updates := randomUpdates(o.Target.Objects)
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
	if n := len(store.ListKeys()); n != o.Target.Objects {
		return fmt.Errorf("the store has %d objects instead of %d", n, o.Target.Objects)
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
