package pack_test

import (
	"math/rand/v2"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rvinformer/informer/internal/leaf/pack"
)

func perObject(p *pack.Pack, objects []object) int { return int(p.SizeBytes()) / len(objects) }

func TestPodsTakeAnEighthOfTheirLength(t *testing.T) {
	objects := pods(3000, 0)
	p := pack.New()
	refs := fill(p, objects)
	requireHas(t, p, refs, objects)
	require.Less(t, perObject(p, objects), 430)
}

func TestUpdatesDoNotWearTheRatioDown(t *testing.T) {
	objects := pods(500, 0)
	p := pack.New()
	refs := fill(p, objects)
	for _, k := range inRandomOrder(len(objects), 10) {
		objects[k].update()
		replace(p, refs, k, objects[k])
	}
	requireHas(t, p, refs, objects)
	updated := perObject(p, objects)
	require.Less(t, updated, 720)

	for _, k := range inRandomOrder(len(objects), 10) {
		replace(p, refs, k, objects[k])
	}
	require.Less(t, perObject(p, objects), updated*11/10, "after ten times more")
}

func TestPodsWithoutAHintFindTheirSiblings(t *testing.T) {
	objects := hinted(pods(1500, 0), func(object) string { return "" })
	p := pack.New()
	refs := fill(p, objects)
	requireHas(t, p, refs, objects)
	require.Less(t, perObject(p, objects), 500)
}

func TestHintsOfNoUseCostLittle(t *testing.T) {
	objects := hinted(pods(1500, 0), func(o object) string { return o.name })
	p := pack.New()
	refs := fill(p, objects)
	requireHas(t, p, refs, objects)
	require.Less(t, perObject(p, objects), 500)
}

func TestGroupThatDriftsGetsANewBase(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	noise := func(n int) []byte {
		b := make([]byte, n)
		for k := range b {
			b[k] = "0123456789abcdef"[r.IntN(16)]
		}
		return b
	}
	template := noise(3000)
	objects := make([]object, 40)
	for k := range objects {
		objects[k] = object{name: strconv.Itoa(k), like: "one StatefulSet"}
	}
	p := pack.New()
	refs := make([]pack.Ref, len(objects))
	for range 20 {
		copy(template[r.IntN(2500):], noise(500))
		for k := range objects {
			objects[k].data = slices.Concat(template[:2000], noise(100), template[2000:])
			replace(p, refs, k, objects[k])
		}
	}
	requireHas(t, p, refs, objects)
	fresh := pack.New()
	fill(fresh, objects)
	require.Less(t, p.SizeBytes(), 2*fresh.SizeBytes())
}

func TestCustomResourcesTakeASixthOfTheirLength(t *testing.T) {
	objects := releases(2000)
	p := pack.New()
	refs := fill(p, objects)
	requireHas(t, p, refs, objects)
	require.Less(t, perObject(p, objects), 380)
}

func TestLoneObjectPaysForNoBaseAfterUpdates(t *testing.T) {
	objects := hinted(each(15, pods(3000, 0)), func(o object) string { return o.name })
	p := pack.New()
	refs := fill(p, objects)
	before := perObject(p, objects)
	for _, k := range inRandomOrder(len(objects), 5) {
		objects[k].update()
		replace(p, refs, k, objects[k])
	}
	requireHas(t, p, refs, objects)
	require.Less(t, perObject(p, objects), before*4/3)
}

func TestFewSmallObjectsTakeLittle(t *testing.T) {
	p := pack.New()
	p.Add([]byte("a"), 0, p.Prepare("", 0, []byte(`{"kind":"Lease"}`)))
	require.Less(t, p.SizeBytes(), int64(4000))
}

func TestNoiseTakesItsLength(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	p := pack.New()
	var objects []object
	for k := range 200 {
		b := make([]byte, 5000)
		for i := range b {
			b[i] = byte(r.Uint32())
		}
		objects = append(objects, object{name: strconv.Itoa(k), like: "same", data: b})
	}
	refs := fill(p, objects)
	requireHas(t, p, refs, objects)
	require.Less(t, perObject(p, objects), 5700)
}

func TestHugeObjectLeavesNothingBehind(t *testing.T) {
	p := pack.New()
	huge := make([]byte, 5<<20)
	r := rand.New(rand.NewPCG(1, 2))
	for k := range huge {
		huge[k] = byte(r.Uint32N(200))
	}
	small := []object{{name: "small", data: []byte("a small object that stays")}}
	refs := fill(p, small)
	ref := p.Add([]byte("huge"), 1, p.Prepare("", 0, huge))
	require.Greater(t, p.SizeBytes(), int64(4<<20))
	view := p.Record(ref)
	p.Drop(ref)
	require.Less(t, p.SizeBytes(), int64(100<<10))
	got, err := view.Append(nil)
	require.NoError(t, err)
	require.Equal(t, huge, got)
	requireHas(t, p, refs, small)
}

func TestMemoryReturnsWhenThePackShrinks(t *testing.T) {
	objects := pods(1000, 0)
	p := pack.New()
	refs := fill(p, objects)
	full := p.SizeBytes()
	for k := range objects {
		if k%10 != 3 {
			p.Drop(refs[k])
		}
	}
	calls := 0
	for p.Tidy(func(owner uint32, to pack.Ref) { refs[owner] = to }) {
		calls++
	}
	require.Greater(t, calls, 2, "one call moves a bounded part")
	require.Less(t, p.SizeBytes(), full/3)
	for k := 3; k < len(objects); k += 10 {
		requireHas(t, p, refs[k:k+1], objects[k:k+1])
		p.Drop(refs[k])
	}
	require.Less(t, p.SizeBytes(), int64(1000))
	refs = fill(p, objects)
	requireHas(t, p, refs, objects)
	require.InEpsilon(t, full, p.SizeBytes(), 0.05, "a pack that was empty is as good as a new one")
}

func TestBaseStaysWhileSiblingsNeedIt(t *testing.T) {
	objects := hinted(pods(50, 0), func(object) string { return "of one owner" })
	p := pack.New()
	refs := fill(p, objects)
	p.Drop(refs[0]) // the base of all
	requireHas(t, p, refs[1:], objects[1:])
}

func TestReadersNeedNoLockForWhatTheyHold(t *testing.T) {
	objects := pods(100, 0)
	p := pack.New()
	refs := fill(p, objects)
	var mu sync.RWMutex
	done := make(chan struct{})
	var readers sync.WaitGroup
	for seed := range uint64(3) {
		readers.Go(func() {
			r := rand.New(rand.NewPCG(seed, 0))
			var views []held
			for {
				select {
				case <-done:
					for _, v := range views {
						v.check(t)
					}
					return
				default:
				}
				k := r.IntN(len(objects))
				mu.RLock()
				v := held{stored{head: objects[k].name, data: objects[k].data}, p.Record(refs[k])}
				p.SizeBytes()
				mu.RUnlock()
				v.check(t)
				if views = append(views, v); len(views) > 100 {
					for _, v := range views {
						v.check(t)
					}
					views = nil
				}
			}
		})
	}
	for _, k := range inRandomOrder(len(objects), 5) {
		o := objects[k]
		o.update()
		d := p.Prepare(o.like, refs[k], o.data) // beside the readers
		mu.Lock()
		old := refs[k]
		objects[k] = o
		refs[k] = p.Add([]byte(o.name), uint32(k), d)
		p.Drop(old)
		p.Tidy(func(owner uint32, to pack.Ref) { refs[owner] = to })
		mu.Unlock()
	}
	close(done)
	readers.Wait()
	requireHas(t, p, refs, objects)
}

func TestSizeBytesIsWhatTheHeapHolds(t *testing.T) {
	objects := pods(3000, 0)
	refs := make([]pack.Ref, len(objects))
	heap := func() int64 {
		runtime.GC()
		runtime.GC() // the first one only empties pools into their victims
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	before := heap()
	p := pack.New()
	for k, o := range objects {
		refs[k] = p.Add([]byte(o.name), uint32(k), p.Prepare(o.like, 0, o.data))
	}
	for _, k := range inRandomOrder(len(objects), 1) {
		replace(p, refs, k, objects[k])
	}
	grown := heap() - before
	require.InEpsilon(t, grown, p.SizeBytes(), 0.05)
	runtime.KeepAlive(objects)
}
