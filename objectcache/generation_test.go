package objectcache_test

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"pgregory.net/rapid"

	"github.com/rvinformer/informer/internal/testkit/samples"
	"github.com/rvinformer/informer/objectcache"
)

func podOf(namespace, name, uid, version string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: namespace, Name: name, UID: types.UID(uid), ResourceVersion: version, Labels: map[string]string{"version": version},
	}}
}

// generationModel writes as the informer does, and compares the store and the changes that it
// reports with a map.
type generationModel struct {
	store objectcache.Kept
	model map[string]*corev1.Pod
	// told is the model as the changes tell it.
	told map[string]string
	next int

	open    bool
	g       objectcache.Generation
	shown   map[string]bool
	dropped map[string]bool
	staged  map[string]*corev1.Pod
	decoded bool
	// indexed tells that the index "late" was added.
	indexed bool
}

var modelKeys = []string{"a/x", "a/y", "b/x", "a/z-1", "a/z-2", "ab/x"}

func drawKey(t *rapid.T) string { return rapid.SampledFrom(modelKeys).Draw(t, "key") }

// pod is a new version of the object of a key.
func (m *generationModel) pod(t *rapid.T, key string) *corev1.Pod {
	namespace, name, err := cache.SplitMetaNamespaceKey(key)
	require.NoError(t, err)
	m.next++
	version := strconv.Itoa(m.next)
	if rapid.Bool().Draw(t, "version is no number") {
		version = "v" + version
	}
	return podOf(namespace, name, rapid.SampledFrom([]string{"u1", "u2"}).Draw(t, "uid"), version)
}

func (m *generationModel) tell(t *rapid.T, old, now objectcache.Stored) {
	key := ""
	for _, o := range []objectcache.Stored{old, now} {
		if !o.IsZero() {
			key = o.Key()
		}
	}
	version := func(o objectcache.Stored) string {
		if o.IsZero() {
			return ""
		}
		require.Equal(t, key, o.Key())
		v, uid, err := o.StateOfVersion()
		require.NoError(t, err)
		obj, err := o.Decode()
		require.NoError(t, err)
		require.Equal(t, obj.(*corev1.Pod).ResourceVersion, v)
		require.Equal(t, string(obj.(*corev1.Pod).UID), uid)
		return v
	}
	require.Equal(t, m.told[key], version(old), "the old state of %s", key)
	if m.told[key] = version(now); now.IsZero() {
		delete(m.told, key)
	}
}

func (m *generationModel) Put(t *rapid.T) {
	m.needCallers(t)
	pod := m.pod(t, drawKey(t))
	old, now, err := m.store.PutObject(pod)
	require.NoError(t, err)
	key := pod.Namespace + "/" + pod.Name
	m.model[key] = pod
	if m.open {
		m.shown[key] = true
	}
	m.tell(t, old, now)
}

func (m *generationModel) Remove(t *rapid.T) {
	m.needCallers(t)
	key := drawKey(t)
	old := m.store.Remove(key)
	_, was := m.model[key]
	require.Equal(t, was, !old.IsZero())
	delete(m.model, key)
	if was {
		m.tell(t, old, objectcache.Stored{})
	}
}

// needCallers skips what only callers other than the informer do: to write beside a generation. A
// list undoes that where objects are kept decoded.
func (m *generationModel) needCallers(t *rapid.T) {
	if m.open && m.decoded {
		t.Skip("the informer does not write beside a generation")
	}
}

func (m *generationModel) Begin(t *rapid.T) {
	if m.open {
		t.Skip("there is a generation")
	}
	m.open, m.g = true, m.store.Begin()
	m.shown, m.dropped, m.staged = map[string]bool{}, map[string]bool{}, map[string]*corev1.Pod{}
}

func (m *generationModel) needOpen(t *rapid.T) {
	if !m.open {
		t.Skip("there is no generation")
	}
}

// Show shows an object in a version that is staged, stored or new.
func (m *generationModel) Show(t *rapid.T) {
	m.needOpen(t)
	key := drawKey(t)
	pod, isStaged := m.staged[key]
	if !isStaged {
		pod = m.model[key]
	}
	if pod != nil && rapid.Bool().Draw(t, "unchanged") {
		require.True(t, m.g.Show(key, pod.ResourceVersion, string(pod.UID)))
		m.shown[key] = true
		return
	}
	pod = m.pod(t, key)
	require.False(t, m.g.Show(key, pod.ResourceVersion, string(pod.UID)))
	require.NoError(t, m.g.Put(pod))
	m.staged[key], m.shown[key] = pod, true
}

func (m *generationModel) Keep(t *rapid.T) {
	m.needOpen(t)
	key := drawKey(t)
	m.g.Keep(key)
	m.shown[key] = true
}

func (m *generationModel) Drop(t *rapid.T) {
	m.needOpen(t)
	key := drawKey(t)
	m.g.Drop(key)
	delete(m.staged, key)
	delete(m.shown, key)
	m.dropped[key] = true
}

func (m *generationModel) Known(t *rapid.T) {
	m.needOpen(t)
	key := drawKey(t)
	version, uid, told, ok := m.g.Known(key)
	pod := m.staged[key]
	if pod == nil {
		pod = m.model[key]
	}
	require.Equal(t, pod != nil, ok)
	if ok {
		require.Equal(t, pod.ResourceVersion, version)
		require.Equal(t, string(pod.UID), uid)
		require.Equal(t, m.shown[key], told)
	}
}

// AddIndexer adds an index, also while objects are staged.
func (m *generationModel) AddIndexer(t *rapid.T) {
	if m.indexed {
		t.Skip("it is there")
	}
	m.indexed = true
	require.NoError(t, m.store.AddIndexers(cache.Indexers{"late": byVersion}))
}

func (m *generationModel) Abandon(t *rapid.T) {
	m.needOpen(t)
	m.g.Abandon()
	m.open = false
}

func (m *generationModel) End(t *rapid.T) {
	m.needOpen(t)
	complete := rapid.Bool().Draw(t, "complete")
	changes := m.g.End("list", complete)
	m.open = false
	for key := range m.model {
		if (complete || m.dropped[key]) && !m.shown[key] {
			delete(m.model, key)
		}
	}
	maps.Copy(m.model, m.staged)
	seen := map[string]bool{}
	for old, now := range changes {
		m.tell(t, old, now)
		key := old
		if key.IsZero() {
			key = now
		}
		require.False(t, seen[key.Key()], "%s changed twice", key.Key())
		seen[key.Key()] = true
	}
	require.Equal(t, "list", m.store.LastStoreSyncResourceVersion())
}

func (m *generationModel) Check(t *rapid.T) {
	require.NoError(t, m.store.Check())
	require.ElementsMatch(t, slices.Collect(maps.Keys(m.model)), m.store.ListKeys())
	require.Equal(t, len(m.model), m.store.Len())
	for _, key := range modelKeys {
		pod := m.model[key]
		obj, exists, err := m.store.GetByKey(key)
		require.NoError(t, err)
		require.Equal(t, pod != nil, exists)
		require.Equal(t, exists, m.told[key] != "")
		if !exists {
			require.False(t, m.store.Unchanged(key, "1", ""))
			continue
		}
		require.Equal(t, pod, obj)
		require.True(t, m.store.Unchanged(key, pod.ResourceVersion, string(pod.UID)))
		require.True(t, m.store.Unchanged(key, pod.ResourceVersion, ""))
		require.False(t, m.store.Unchanged(key, pod.ResourceVersion, "another"))
		require.False(t, m.store.Unchanged(key, pod.ResourceVersion+"0", string(pod.UID)))
		require.False(t, m.store.Unchanged(key, "", string(pod.UID)))
		keys, err := m.store.IndexKeys("version", pod.ResourceVersion)
		require.NoError(t, err)
		require.Equal(t, []string{key}, keys)
	}
	require.Len(t, m.store.ListIndexFuncValues("version"), len(m.model), "staged objects are not listed")
	if m.indexed {
		require.ElementsMatch(t, m.store.ListIndexFuncValues("version"), m.store.ListIndexFuncValues("late"))
	}
}

func byVersion(obj interface{}) ([]string, error) {
	return []string{obj.(*corev1.Pod).ResourceVersion}, nil
}

func TestGenerationsAreAppliedAtOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := &generationModel{decoded: rapid.Bool().Draw(t, "decoded"), model: map[string]*corev1.Pod{}, told: map[string]string{}}
		indexers := cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc, "version": byVersion}
		if m.decoded {
			m.store = objectcache.KeptDecoded(indexers)
		} else {
			m.store = objectcache.NewStore(&corev1.Pod{}, indexers, objectcache.StoreOptions{}).Kept()
		}
		t.Repeat(map[string]func(*rapid.T){
			"": m.Check, "Put": m.Put, "Remove": m.Remove, "Begin": m.Begin, "Show": m.Show, "ShowAnother": m.Show, "Keep": m.Keep, "Drop": m.Drop,
			"Known": m.Known, "AddIndexer": m.AddIndexer, "Abandon": m.Abandon, "End": m.End,
		})
	})
}

// Changes are valid until the next write: what has changed again is not reported as something else.
func TestChangesReportNoLaterState(t *testing.T) {
	s := objectcache.NewStore(&corev1.Pod{}, nil, objectcache.StoreOptions{})
	g := s.Begin()
	require.NoError(t, g.Put(podOf("a", "first", "u", "1")))
	require.NoError(t, g.Put(podOf("a", "second", "u", "2")))
	changes := g.End("2", true)
	s.Remove("a/first")
	_, _, err := s.PutObject(podOf("a", "other", "u", "3")) // in the slot of the first
	require.NoError(t, err)
	keys := []string{}
	for _, now := range changes {
		keys = append(keys, now.Key())
	}
	require.Equal(t, []string{"a/second"}, keys)
}

// Marks begin anew after 65,535 generations. An old one must not count.
func TestMarksSurviveManyGenerations(t *testing.T) {
	s := objectcache.NewStore(&corev1.Pod{}, nil, objectcache.StoreOptions{})
	kept, gone := podOf("a", "kept", "u", "1"), podOf("a", "gone", "u", "2")
	require.NoError(t, s.Replace([]interface{}{kept, gone}, "2")) // marked by the first generation
	for range 1<<16 - 3 {
		s.Begin().Abandon()
	}
	g := s.Begin() // the first one again
	require.True(t, g.Show("a/kept", "1", "u"))
	for range g.End("3", true) {
	}
	require.Equal(t, []string{"a/kept"}, s.ListKeys())
}

// Readers see one state, whatever is written meanwhile, and never an older one than before.
func TestReadersSeeOneState(t *testing.T) {
	const objects, lists = 60, 40
	s := objectcache.NewStore(&corev1.Pod{}, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc, "version": byVersion}, objectcache.StoreOptions{HotBytes: 20_000})
	set := func(version int) (all []interface{}) {
		for i := range objects {
			pod := podOf("a", fmt.Sprintf("p%d", i+version%3), fmt.Sprint("u", i+version%3), strconv.Itoa(version))
			pod.Spec.NodeName = strconv.Itoa(version)
			all = append(all, pod)
		}
		return all
	}
	require.NoError(t, s.Replace(set(1), "1"))
	oneState := func(found []interface{}) (version int) {
		require.Len(t, found, objects)
		for _, obj := range found {
			pod := obj.(*corev1.Pod)
			v, err := strconv.Atoi(pod.ResourceVersion)
			require.NoError(t, err)
			require.Equal(t, pod.ResourceVersion, pod.Spec.NodeName)
			require.True(t, version == 0 || v == version, "two lists at once")
			version = v
			pod.Labels["version"] = "changed by its reader"
		}
		return version
	}
	done := make(chan struct{})
	var readers sync.WaitGroup
	for _, read := range []func() int{
		func() int { return oneState(s.List()) },
		func() int {
			found, err := s.ByIndex(cache.NamespaceIndex, "a")
			require.NoError(t, err)
			return oneState(found)
		},
		func() int {
			obj, _, err := s.GetByKey("a/p10")
			require.NoError(t, err)
			pod := obj.(*corev1.Pod)
			require.Equal(t, pod.ResourceVersion, pod.Labels["version"])
			pod.Labels["version"] = "changed by its reader"
			v, err := strconv.Atoi(pod.ResourceVersion)
			require.NoError(t, err)
			return v
		},
		func() int {
			selector := versionSelector{}
			found, err := objectcache.ListMatching(s, "", selector)
			require.NoError(t, err)
			all := make([]interface{}, len(found))
			for i := range found {
				all[i] = found[i]
			}
			return oneState(all)
		},
		func() int {
			again := objectcache.NewStore(&corev1.Pod{}, nil, objectcache.StoreOptions{})
			require.NoError(t, again.ReadSnapshot(bytes.NewReader(snapshotOf(t, s))))
			version := oneState(again.List())
			require.Equal(t, strconv.Itoa(version), again.LastStoreSyncResourceVersion())
			return version
		},
	} {
		readers.Go(func() {
			for last := 0; ; {
				version := read()
				if version < last {
					t.Errorf("back from version %d to %d", last, version)
				}
				last = version
				select {
				case <-done:
					return
				default:
				}
			}
		})
	}
	for version := 2; version <= lists; version++ {
		require.NoError(t, s.Replace(set(version), strconv.Itoa(version)))
	}
	close(done)
	readers.Wait()
	require.NoError(t, s.Check())
}

func TestListThatDeletesGivesMemoryBack(t *testing.T) {
	s := objectcache.NewStore(&corev1.Pod{}, nil, objectcache.StoreOptions{})
	cluster := samples.Cluster{Seed: 1}
	var all []interface{}
	for n := range 1000 {
		all = append(all, cluster.Pod(n, 0))
	}
	require.NoError(t, s.Replace(all, "1"))
	full := s.SizeBytes()
	var kept []interface{}
	for n := 0; n < len(all); n += 4 {
		kept = append(kept, all[n])
	}
	require.NoError(t, s.Replace(kept, "2"))
	require.Less(t, s.SizeBytes(), full*2/3)
	require.NoError(t, s.Check())
	require.Len(t, s.List(), len(kept))
}
