package objectcache_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/rvinformer/informer/objectcache"
)

func TestHotObjectIsSharedUntilItChanges(t *testing.T) {
	s := objectcache.NewStore(&corev1.Pod{}, nil, objectcache.StoreOptions{})
	require.NoError(t, s.Add(podOf("a", "b", "u", "1")))
	state, exists := s.Lookup("a/b")
	require.True(t, exists)
	first, exists, err := s.Shared("a/b")
	require.NoError(t, err)
	require.True(t, exists)
	again, err := state.Shared()
	require.NoError(t, err)
	require.Same(t, first, again)
	require.Equal(t, int64(1), s.Decoded())

	copied, _, err := s.GetByKey("a/b")
	require.NoError(t, err)
	require.NotSame(t, first, copied)
	into := &corev1.Pod{}
	_, err = s.GetInto("a/b", into)
	require.NoError(t, err)
	into.Labels["version"] = "changed by its reader"
	require.Equal(t, "1", first.(*corev1.Pod).Labels["version"])
	require.Equal(t, int64(1), s.Decoded())

	require.NoError(t, s.Add(podOf("a", "b", "u", "2")))
	now, _, err := s.Shared("a/b")
	require.NoError(t, err)
	require.Equal(t, "2", now.(*corev1.Pod).ResourceVersion)
	old, err := state.Shared()
	require.NoError(t, err)
	require.Equal(t, "1", old.(*corev1.Pod).ResourceVersion, "a state does not change")
	now2, _, err := s.Shared("a/b")
	require.NoError(t, err)
	require.Same(t, now, now2, "an old state does not become hot")

	// The next object takes the place of the old state.
	require.NoError(t, s.Add(podOf("a", "c", "u", "3")))
	other, _, err := s.Shared("a/c")
	require.NoError(t, err)
	require.Equal(t, "c", other.(*corev1.Pod).Name)
	old, err = state.Shared()
	require.NoError(t, err)
	require.Equal(t, "b", old.(*corev1.Pod).Name)

	require.NoError(t, s.Replace(nil, "3"))
	_, exists, err = s.Shared("a/b")
	require.NoError(t, err)
	require.False(t, exists)
}

func TestHotObjectsAreBounded(t *testing.T) {
	const n = 200
	store := func(hotBytes int64) *objectcache.Store {
		s := objectcache.NewStore(&corev1.Pod{}, nil, objectcache.StoreOptions{HotBytes: hotBytes})
		for i := range n {
			require.NoError(t, s.Add(podOf("a", fmt.Sprint(i), "u", "1")))
		}
		return s
	}
	readAll := func(s *objectcache.Store) (decoded int64) {
		before := s.Decoded()
		for i := range n {
			_, exists, err := s.GetByKey(fmt.Sprint("a/", i))
			require.NoError(t, err)
			require.True(t, exists)
		}
		return s.Decoded() - before
	}
	all := store(0)
	size := all.SizeBytes()
	require.Equal(t, int64(n), readAll(all))
	require.Greater(t, all.SizeBytes(), size, "decoded objects count")
	require.Zero(t, readAll(all))

	const limit = 5000
	few := store(limit)
	size = few.SizeBytes()
	readAll(few)
	require.LessOrEqual(t, few.SizeBytes()-size, int64(limit))
	kept := n - readAll(few)
	require.Positive(t, kept)
	require.Less(t, kept, int64(n/2), "most are read too seldom to be kept")
	get := func(i int) (decoded int64) {
		before := few.Decoded()
		_, _, err := few.GetByKey(fmt.Sprint("a/", i))
		require.NoError(t, err)
		return few.Decoded() - before
	}
	last := n - 1
	get(last)
	require.Zero(t, get(last), "what is read again stays")
	for i := range n / 2 {
		get(100 + i)
		get(100 + i)
	}
	require.Equal(t, int64(1), get(0), "the least recently used are gone")
	require.LessOrEqual(t, few.SizeBytes()-size, int64(limit))

	none := store(-1)
	readAll(none)
	require.Equal(t, int64(n), readAll(none))
	a, _, err := none.Shared("a/1")
	require.NoError(t, err)
	b, _, err := none.Shared("a/1")
	require.NoError(t, err)
	require.NotSame(t, a, b)
}

// Reads, writes and the hot set side by side: whoever reads gets a whole object that is his own.
func TestHotObjectsUnderWrites(t *testing.T) {
	s := objectcache.NewStore(&corev1.Pod{}, nil, objectcache.StoreOptions{HotBytes: 4000})
	version := func(i int) *corev1.Pod {
		pod := podOf("a", fmt.Sprint(i%7), "u", fmt.Sprint(i))
		pod.Spec.NodeName = pod.ResourceVersion
		return pod
	}
	for i := range 7 {
		require.NoError(t, s.Add(version(i)))
	}
	var readers sync.WaitGroup
	for range 4 {
		readers.Go(func() {
			for i := range 500 {
				key := fmt.Sprint("a/", i%7)
				obj, exists, err := s.GetByKey(key)
				if err != nil || !exists {
					t.Error(key, exists, err)
					return
				}
				pod := obj.(*corev1.Pod)
				if pod.Labels["version"] != pod.ResourceVersion || pod.Spec.NodeName != pod.ResourceVersion {
					t.Errorf("%s is of versions %s and %s", key, pod.ResourceVersion, pod.Labels["version"])
				}
				pod.Labels["version"] = "changed by its reader"
			}
		})
	}
	for i := range 500 {
		require.NoError(t, s.Add(version(i)))
	}
	readers.Wait()
}

func TestObjectIsReadInOtherForms(t *testing.T) {
	s := objectcache.NewStore(&corev1.Pod{}, nil, objectcache.StoreOptions{})
	pod := podOf("a", "b", "u", "1")
	pod.Spec.NodeName = "n"
	require.NoError(t, s.Add(pod))
	u := &unstructured.Unstructured{Object: map[string]interface{}{"left": "over"}}
	exists, err := s.GetInto("a/b", u)
	require.NoError(t, err)
	require.True(t, exists)
	node, _, err := unstructured.NestedString(u.Object, "spec", "nodeName")
	require.NoError(t, err)
	require.Equal(t, "n", node)
	require.NotContains(t, u.Object, "left")
	partial := &metav1.PartialObjectMetadata{}
	exists, err = s.GetInto("a/b", partial)
	require.NoError(t, err)
	require.True(t, exists)
	require.Equal(t, pod.ObjectMeta, partial.ObjectMeta)

	for _, other := range []runtime.Object{&corev1.Secret{}, &corev1.PodList{}, (*corev1.Pod)(nil), nil} {
		exists, err = s.GetInto("a/b", other)
		require.ErrorContains(t, err, fmt.Sprintf("into a %T", other))
		require.True(t, exists)
	}
}

// An object that is read for its reader alone is not copied for others, unless it is read again.
func TestObjectReadOnceIsNotCopied(t *testing.T) {
	const n = 100
	s := objectcache.NewStore(&corev1.Pod{}, nil, objectcache.StoreOptions{HotBytes: 64 << 10})
	for i := range n {
		pod := podOf("a", fmt.Sprint(i), "u", "1")
		for range 50 {
			pod.Spec.Containers = append(pod.Spec.Containers, corev1.Container{Command: []string{strings.Repeat("x", 80)}})
		}
		require.NoError(t, s.Add(pod))
	}
	for i := range n { // only a few have room
		_, err := s.GetInto(fmt.Sprint("a/", i), &corev1.Pod{})
		require.NoError(t, err)
	}
	allocated := func(read func(i int)) float64 {
		i := n / 2
		return testing.AllocsPerRun(n/4, func() { i++; read(i) })
	}
	once := allocated(func(i int) {
		_, err := s.GetInto(fmt.Sprint("a/", i), &corev1.Pod{})
		require.NoError(t, err)
	})
	decoded := allocated(func(i int) {
		found, _ := s.Lookup(fmt.Sprint("a/", i))
		require.NoError(t, found.DecodeInto(&corev1.Pod{}))
	})
	const notes = 8
	require.LessOrEqual(t, once, decoded+notes, "a copy of the object")
}
