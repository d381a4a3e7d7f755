package objectcache_test

import (
	"bytes"
	"fmt"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
	"pgregory.net/rapid"

	"github.com/rvinformer/informer/internal/testkit/samples"
	"github.com/rvinformer/informer/objectcache"
)

func snapshotOf(t require.TestingT, s *objectcache.Store) []byte {
	var b bytes.Buffer
	n, err := s.WriteSnapshot(&b)
	require.NoError(t, err)
	require.Equal(t, int64(b.Len()), n)
	return b.Bytes()
}

func podsIndexed() *objectcache.Store {
	return objectcache.NewStore(&corev1.Pod{}, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc, "version": byVersion}, objectcache.StoreOptions{})
}

// smallStore has what a snapshot may have: labels, versions that are no numbers, several kinds,
// staged objects, free slots.
func smallStore(t require.TestingT) *objectcache.Store {
	s := objectcache.NewStore(&corev1.Pod{}, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc}, objectcache.StoreOptions{})
	for i := range 8 {
		require.NoError(t, s.Add(podOf("a", fmt.Sprint("p", i), fmt.Sprint("u", i%3), fmt.Sprint(i))))
	}
	for _, i := range []int{1, 4, 7} {
		require.NoError(t, s.Delete(podOf("a", fmt.Sprint("p", i), "", "20")))
	}
	require.NoError(t, s.Add(podOf("", "cluster", "", "v21")))
	kind := podOf("b", "kind", "u", "22")
	kind.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}
	require.NoError(t, s.Add(kind))
	require.NoError(t, s.Add(&metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: "partial", ResourceVersion: "23"}}))
	return s
}

// Reading back gives the same store, whatever was done to it before, and it goes on as one.
func TestSnapshotIsReadBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := newStoreModel(t, false)
		if len(m.kinds) > 1 {
			t.Skip("objects of types that the example does not say")
		}
		actions := map[string]func(*rapid.T){"Add": m.Add, "Update": m.Update, "Delete": m.Delete, "Replace": m.Replace, "AddIndexers": m.AddIndexers}
		t.Repeat(actions)
		text := snapshotOf(t, m.store)
		again := objectcache.NewStore(m.example, m.store.GetIndexers(), objectcache.StoreOptions{})
		reader := bytes.NewReader(append(bytes.Clone(text), "more"...))
		require.NoError(t, again.ReadSnapshot(iotest.OneByteReader(reader)))
		require.NoError(t, again.Check())
		m.store, m.indexer = again, again
		m.same(t)
		t.Repeat(actions)
		m.same(t)
		require.NoError(t, m.store.Check())
	})
}

func TestSnapshotHasOneStateWithoutWhatIsStaged(t *testing.T) {
	s := podsIndexed()
	require.NoError(t, s.Replace([]interface{}{podOf("a", "b", "u", "1"), podOf("a", "c", "u", "2")}, "2"))
	g := s.Begin()
	require.NoError(t, g.Put(podOf("a", "b", "u", "3")))
	require.NoError(t, g.Put(podOf("a", "d", "u", "4")))
	text := snapshotOf(t, s)
	g.Abandon()
	again := podsIndexed()
	require.NoError(t, again.ReadSnapshot(bytes.NewReader(text)))
	require.NoError(t, again.Check())
	require.ElementsMatch(t, []string{"a/b", "a/c"}, again.ListKeys())
	require.Equal(t, "2", again.LastStoreSyncResourceVersion())
	require.True(t, again.Unchanged("a/b", "1", "u"))
	require.False(t, again.Unchanged("a/b", "1", "another"))
	require.ErrorContains(t, again.ReadSnapshot(bytes.NewReader(text)), "not empty")
}

func TestRestoreDecodesForIndexesOnly(t *testing.T) {
	s := objectcache.NewStore(&corev1.Pod{}, nil, objectcache.StoreOptions{})
	const n = 30
	for _, pod := range (samples.Cluster{Seed: 1}).Pods(0, n, 0) {
		require.NoError(t, s.Add(pod))
	}
	text := snapshotOf(t, s)
	plain := objectcache.NewStore(&corev1.Pod{}, byNamespaceOnly, objectcache.StoreOptions{})
	require.NoError(t, plain.ReadSnapshot(bytes.NewReader(text)))
	require.Zero(t, plain.Decoded())
	indexed := podsIndexed()
	require.NoError(t, indexed.ReadSnapshot(bytes.NewReader(text)))
	require.Equal(t, int64(n), indexed.Decoded())
	require.Len(t, indexed.ListIndexFuncValues("version"), n)
}

func TestSnapshotOfAnotherTypeIsRefused(t *testing.T) {
	text := snapshotOf(t, smallStore(t))
	for _, other := range []*objectcache.Store{
		objectcache.NewStore(nil, nil, objectcache.StoreOptions{}), objectcache.NewStore(&gadget{}, nil, objectcache.StoreOptions{}),
	} {
		require.ErrorContains(t, other.ReadSnapshot(bytes.NewReader(text)), "k8s.io/api/core/v1.Pod")
		require.Empty(t, other.ListKeys())
	}
	mixed := smallStore(t)
	require.NoError(t, mixed.Add(&gadget{ObjectMeta: metav1.ObjectMeta{Name: "g"}}))
	err := smallEmpty().ReadSnapshot(bytes.NewReader(snapshotOf(t, mixed)))
	require.ErrorContains(t, err, "gadget")
}

func smallEmpty() *objectcache.Store {
	return objectcache.NewStore(&corev1.Pod{}, byNamespaceOnly, objectcache.StoreOptions{})
}

// Each byte that is changed or missing is noticed, and the store stays empty and of use.
func TestDamagedSnapshotIsRefused(t *testing.T) {
	text := snapshotOf(t, smallStore(t))
	refused := func(damaged []byte, what string) {
		s := smallEmpty()
		require.Error(t, s.ReadSnapshot(bytes.NewReader(damaged)), what)
		require.Empty(t, s.ListKeys())
		require.NoError(t, s.Add(podOf("a", "b", "u", "1")))
		require.NoError(t, s.Check())
	}
	for i := range text {
		refused(text[:i], fmt.Sprintf("cut at %d of %d", i, len(text)))
		damaged := bytes.Clone(text)
		damaged[i] ^= 1 << (i % 8)
		refused(damaged, fmt.Sprintf("another byte at %d of %d", i, len(text)))
	}
	broken := fmt.Errorf("broken disk")
	err := smallEmpty().ReadSnapshot(iotest.ErrReader(broken))
	require.ErrorIs(t, err, broken)
	_, err = smallStore(t).WriteSnapshot(failingWriter{broken})
	require.ErrorIs(t, err, broken)
}

type failingWriter struct{ err error }

func (w failingWriter) Write([]byte) (int, error) { return 0, w.err }
