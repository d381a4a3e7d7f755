package objectcache_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/rvinformer/informer/internal/leaf/checkpoint"
	"github.com/rvinformer/informer/internal/testkit/samples"
	"github.com/rvinformer/informer/objectcache"
)

// craftedSamples are the payloads of snapshots of real stores, each split into its slots and its
// pack.
func craftedSamples(t require.TestingT) (parts [][2][]byte) {
	pods := podsByVersion()
	for _, pod := range samplePods(1, 60) {
		require.NoError(t, pods.Add(pod))
	}
	for _, key := range pods.ListKeys()[:20] {
		require.NoError(t, pods.Delete(cache.DeletedFinalStateUnknown{Key: key}))
	}
	for _, s := range []*objectcache.Store{smallStore(t), pods, smallEmpty()} {
		slots, pack := s.SplitSnapshot(snapshotOf(t, s))
		parts = append(parts, [2][]byte{slots, pack})
	}
	return parts
}

// podsByVersion has an index of objects of all types.
func podsByVersion() *objectcache.Store {
	byVersion := func(obj interface{}) ([]string, error) {
		return []string{obj.(metav1.Object).GetResourceVersion()}, nil
	}
	return objectcache.NewStore(&corev1.Pod{}, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc, "version": byVersion},
		objectcache.StoreOptions{ErrorHandler: func(error) {}})
}

// crafted returns a snapshot with these parts and the checksums that fit them.
func crafted(slots, pack []byte) []byte {
	var b bytes.Buffer
	out := checkpoint.NewSnapshotWriter(&b).Payload()
	out.Write(slots)
	out.Write(pack)
	_ = out.Close() // a buffer takes everything
	return b.Bytes()
}

// requireSafe reads a snapshot that may be crafted. There is an error, or a store that is of use.
// Memory is taken in proportion to the length.
func requireSafe(t require.TestingT, text []byte) {
	s := podsByVersion()
	before := allocated()
	err := s.ReadSnapshot(bytes.NewReader(text))
	require.Less(t, allocated()-before, uint64(1<<20+100*len(text)))
	if err != nil {
		require.Empty(t, s.ListKeys())
	}
	require.NoError(t, s.Check())
	before = allocated()
	keys := s.ListKeys()
	for _, key := range keys {
		_, _, _ = s.GetByKey(key)
	}
	require.Less(t, allocated()-before, uint64((1+len(keys))*(1<<18)+5000*len(text)))
	s.List()
	s.ListIndexFuncValues("version")
	_, err = s.Select(objectcache.Query{Labels: versionSelector{}})
	require.NoError(t, err)
	pods := samplePods(2, 30)
	for i, pod := range pods {
		if i < len(keys) && i%2 == 0 { // it replaces one of the snapshot
			pod.Namespace, pod.Name, _ = cache.SplitMetaNamespaceKey(keys[i])
		}
		require.NoError(t, s.Add(pod))
	}
	for _, pod := range pods {
		key, _ := cache.MetaNamespaceKeyFunc(pod)
		got, exists, err := s.GetByKey(key)
		require.NoError(t, err)
		require.True(t, exists)
		require.True(t, equality.Semantic.DeepEqual(pod, got), key)
	}
	require.NoError(t, s.Check())
	again := podsByVersion()
	require.NoError(t, again.ReadSnapshot(bytes.NewReader(snapshotOf(t, s))))
	require.ElementsMatch(t, s.ListKeys(), again.ListKeys())
	for _, key := range s.ListKeys() {
		require.NoError(t, s.Delete(cache.DeletedFinalStateUnknown{Key: key}))
	}
	require.NoError(t, s.Check())
}

func samplePods(seed uint64, n int) (pods []*corev1.Pod) {
	for _, pod := range (samples.Cluster{Seed: seed}).Pods(0, n, 0) {
		pods = append(pods, pod)
	}
	return pods
}

func allocated() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.TotalAlloc
}

// mutated returns b with a few changes.
func mutated(r *rand.Rand, b []byte) []byte {
	b = bytes.Clone(b)
	for range 1 + r.IntN(3) {
		if len(b) == 0 {
			return b
		}
		at := r.IntN(len(b))
		if r.IntN(2) == 0 { // where the numbers are
			at = min(len(b)-1, r.IntN(4<<r.IntN(6)))
		}
		switch r.IntN(6) {
		case 0:
			b[at] ^= 1 << r.IntN(8)
		case 1:
			b[at] = byte(r.Uint32())
		case 2: // a number that is large
			b = append(b[:at:at], append(binary.AppendUvarint(nil, r.Uint64()>>r.IntN(64)), b[at+1:]...)...)
		case 3:
			b = append(b[:at], b[min(len(b), at+1+r.IntN(4)):]...)
		case 4:
			n := min(len(b)-at, 1+r.IntN(64))
			b = append(b[:at+n:at+n], b[at:]...)
		default:
			b[at]--
		}
	}
	return b
}

// A program that can write the file can give it the right checksums.
func TestCraftedSnapshotsAreRefusedOrOfUse(t *testing.T) {
	parts := craftedSamples(t)
	for seed := range 200 {
		r := rand.New(rand.NewPCG(uint64(seed), 34))
		of := parts[seed%len(parts)]
		slots, pack := of[0], of[1]
		if seed%2 == 0 {
			pack = mutated(r, pack)
		} else {
			slots = mutated(r, slots)
		}
		requireSafeCase(t, fmt.Sprint("seed ", seed), crafted(slots, pack))
	}
	for k, of := range parts {
		for at := range of[1][:min(16, len(of[1]))] { // the numbers of codes and roots
			for _, value := range []byte{1, 100} {
				pack := bytes.Clone(of[1])
				pack[at] = value
				requireSafeCase(t, fmt.Sprintf("%d at byte %d of pack %d", value, at, k), crafted(of[0], pack))
			}
		}
	}
}

func requireSafeCase(t *testing.T, name string, text []byte) {
	defer func() {
		if p := recover(); p != nil {
			t.Errorf("%s: %v", name, p)
			panic(p)
		}
	}()
	requireSafe(t, text)
}

// FuzzCraftedSnapshot is TestCraftedSnapshotsAreRefusedOrOfUse with other mutations: so many bytes
// at a place become others. Its inputs are the mutations and not the snapshots, because these are
// too large for a fuzzer.
func FuzzCraftedSnapshot(f *testing.F) {
	parts := craftedSamples(f)
	for n := range parts {
		f.Add(uint8(n), false, uint32(8), uint8(1), []byte{0xff, 0xff, 0x03})
		f.Add(uint8(n), true, uint32(9), uint8(0), []byte{100})
	}
	f.Fuzz(func(t *testing.T, sample uint8, inPack bool, at uint32, cut uint8, edit []byte) {
		of := parts[int(sample)%len(parts)]
		changed := &of[0]
		if inPack {
			changed = &of[1]
		}
		from := min(int(at), len(*changed))
		*changed = slices.Concat((*changed)[:from], edit, (*changed)[min(from+int(cut), len(*changed)):])
		requireSafe(t, crafted(of[0], of[1]))
	})
}

func TestDeadSlotsOfASnapshotTakeNoMemory(t *testing.T) {
	s := smallEmpty()
	slots, pack := s.SplitSnapshot(snapshotOf(t, s))
	const dead = 4 << 20
	slots = append(binary.AppendUvarint(slots[:len(slots)-1], dead), make([]byte, dead)...) // there were no slots
	text := crafted(slots, pack)
	before := allocated()
	require.NoError(t, s.ReadSnapshot(bytes.NewReader(text)))
	require.Less(t, allocated()-before, uint64(1<<20))
	require.NoError(t, s.Check())
	require.Less(t, s.SizeBytes(), int64(100<<10))
}

func TestFreeSlotsOfASnapshotAreNotRestored(t *testing.T) {
	s := smallEmpty()
	pods := samplePods(1, 20000)
	for _, pod := range pods {
		require.NoError(t, s.Add(pod))
	}
	for i, pod := range pods {
		if i%1000 != 999 {
			require.NoError(t, s.Delete(pod))
		}
	}
	again := smallEmpty()
	require.NoError(t, again.ReadSnapshot(bytes.NewReader(snapshotOf(t, s))))
	require.NoError(t, again.Check())
	require.Less(t, again.SizeBytes(), int64(200<<10))
	require.ElementsMatch(t, s.ListKeys(), again.ListKeys())
	for i := 999; i < len(pods); i += 1000 {
		got, exists, err := again.Get(pods[i])
		require.NoError(t, err)
		require.True(t, exists)
		require.True(t, equality.Semantic.DeepEqual(pods[i], got))
		require.NoError(t, again.Delete(pods[i]))
	}
	require.NoError(t, again.Check())
}

// A snapshot cannot use up the forms that a store can have.
func TestRefusedSnapshotLeavesNoForms(t *testing.T) {
	many := smallEmpty()
	for i := range 256 {
		pod := podOf("a", fmt.Sprint("p", i), "u", "1")
		pod.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: fmt.Sprint("Kind", i)}
		require.NoError(t, many.Add(pod))
	}
	text := snapshotOf(t, many)
	s := smallEmpty()
	_ = s.ReadSnapshot(bytes.NewReader(text))
	require.NoError(t, s.Add(podOf("b", "new", "u", "2")))
	text[len(text)-1] ^= 1
	s = smallEmpty()
	require.Error(t, s.ReadSnapshot(bytes.NewReader(text)))
	require.NoError(t, s.Add(podOf("b", "new", "u", "2")))
}
