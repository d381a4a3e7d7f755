package objectcache_test

// The cases of client-go's own tests of stores and indexers (tools/cache: store_test.go,
// index_test.go, thread_safe_store_test.go) with objects that a Store takes.

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/rvinformer/informer/objectcache"
)

// valued is a pod with a value, which may be several with commas between them.
func valued(name, value string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{"value": value}}}
}

func valueOf(obj interface{}) string { return obj.(*corev1.Pod).Annotations["value"] }

func byValues(obj interface{}) ([]string, error) { return strings.Split(valueOf(obj), ","), nil }

func valuesOf(objects []interface{}) []string {
	values := []string{}
	for _, obj := range objects {
		values = append(values, valueOf(obj))
	}
	slices.Sort(values)
	return values
}

func newValued(indexers cache.Indexers) cache.Indexer {
	return objectcache.NewStore(&corev1.Pod{}, indexers, objectcache.StoreOptions{})
}

func TestStoreAddsUpdatesDeletesAndReplaces(t *testing.T) {
	store := newValued(nil)
	require.NoError(t, store.Add(valued("foo", "bar")))
	obj, exists, err := store.Get(valued("foo", ""))
	require.NoError(t, err)
	require.True(t, exists)
	require.Equal(t, "bar", valueOf(obj))
	require.NoError(t, store.Update(valued("foo", "baz")))
	obj, _, err = store.Get(cache.ExplicitKey("foo"))
	require.NoError(t, err)
	require.Equal(t, "baz", valueOf(obj))
	require.NoError(t, store.Delete(valued("foo", "")))
	_, exists, err = store.Get(valued("foo", ""))
	require.NoError(t, err)
	require.False(t, exists)

	for _, name := range []string{"b", "d", "e"} {
		require.NoError(t, store.Add(valued("of-"+name, name)))
	}
	require.Equal(t, []string{"b", "d", "e"}, valuesOf(store.List()))
	require.NoError(t, store.Replace([]interface{}{valued("foo", "foo"), valued("bar", "bar")}, "0"))
	require.Equal(t, []string{"bar", "foo"}, valuesOf(store.List()))
	require.NoError(t, store.Resync())
	require.Len(t, store.List(), 2)
}

func TestIndexFindsWhatSharesAValue(t *testing.T) {
	indexer := newValued(cache.Indexers{"values": byValues})
	for name, value := range map[string]string{"a": "b", "c": "b", "e": "f", "g": "h"} {
		require.NoError(t, indexer.Add(valued(name, value)))
	}
	for value, count := range map[string]int{"b": 2, "f": 1, "h": 1, "none": 0, "b,f": 3} {
		found, err := indexer.Index("values", valued("", value))
		require.NoError(t, err)
		require.Len(t, found, count, value)
	}
	require.ElementsMatch(t, []string{"b", "f", "h"}, indexer.ListIndexFuncValues("values"))
}

// keysOf are the keys of each value of a comma separated list.
func requireKeys(t *testing.T, indexer cache.Indexer, want map[string][]string) {
	t.Helper()
	values := []string{}
	for value, keys := range want {
		got, err := indexer.IndexKeys("values", value)
		require.NoError(t, err)
		require.Equal(t, keys, got, value)
		found, err := indexer.ByIndex("values", value)
		require.NoError(t, err)
		require.Len(t, found, len(keys), value)
		if len(keys) > 0 {
			values = append(values, value)
		}
	}
	require.ElementsMatch(t, values, indexer.ListIndexFuncValues("values"), "a value without objects is forgotten")
}

func TestIndexOfSeveralValuesFollowsUpdates(t *testing.T) {
	indexer := newValued(cache.Indexers{"values": byValues})
	steps := []struct {
		name, value string // empty: deleted
		want        map[string][]string
	}{
		{"1", "foo", map[string][]string{"foo": {"1"}, "bar": {}}},
		{"2", "bar", map[string][]string{"foo": {"1"}, "bar": {"2"}}},
		{"2", "foo,bar", map[string][]string{"foo": {"1", "2"}, "bar": {"2"}}},
		{"1", "foo,bar", map[string][]string{"foo": {"1", "2"}, "bar": {"1", "2"}}},
		{"3", "foo,bar,baz", map[string][]string{"foo": {"1", "2", "3"}, "bar": {"1", "2", "3"}, "baz": {"3"}}},
		{"1", "foo", map[string][]string{"foo": {"1", "2", "3"}, "bar": {"2", "3"}, "baz": {"3"}}},
		{"2", "bar", map[string][]string{"foo": {"1", "3"}, "bar": {"2", "3"}, "baz": {"3"}}},
		{"1", "", map[string][]string{"foo": {"3"}, "bar": {"2", "3"}, "baz": {"3"}}},
		{"3", "", map[string][]string{"foo": {}, "bar": {"2"}, "baz": {}}},
		{"2", "", map[string][]string{"foo": {}, "bar": {}, "baz": {}}},
	}
	for _, step := range steps {
		if step.value == "" {
			require.NoError(t, indexer.Delete(valued(step.name, "")))
		} else {
			require.NoError(t, indexer.Update(valued(step.name, step.value)))
		}
		requireKeys(t, indexer, step.want)
	}
}

func TestLastVersionFollowsWhatIsWritten(t *testing.T) {
	store := newValued(nil)
	version := func(name, version string) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, ResourceVersion: version}}
	}
	require.Empty(t, store.LastStoreSyncResourceVersion())
	steps := []struct {
		do   func() error
		want string
	}{
		{func() error { return store.Add(version("1", "10")) }, "10"},
		{func() error { return store.Add(version("3", "10")) }, "10"},
		{func() error { return store.Update(version("4", "20")) }, "20"},
		{func() error { return store.Delete(version("4", "30")) }, "30"},
		{func() error { return store.Delete(cache.DeletedFinalStateUnknown{Key: "3"}) }, "30"},
		{func() error { return store.Add(version("6", "40")) }, "40"},
		{func() error { return store.Replace([]interface{}{version("7", "40"), version("8", "30")}, "50") }, "50"},
		{func() error { store.Bookmark("60"); return nil }, "60"},
	}
	for i, step := range steps {
		require.NoError(t, step.do())
		require.Equal(t, step.want, store.LastStoreSyncResourceVersion(), "step %d", i)
	}
}

func TestAddIndexersAfterObjects(t *testing.T) {
	store := objectcache.NewStore(&corev1.Pod{}, nil, objectcache.StoreOptions{})
	for name, value := range map[string]string{"a": "x", "b": "x,y"} {
		require.NoError(t, store.Add(valued(name, value)))
	}
	before := store.Decoded()
	require.NoError(t, store.AddIndexers(cache.Indexers{"values": byValues, cache.NamespaceIndex: cache.MetaNamespaceIndexFunc}))
	require.Equal(t, int64(2), store.Decoded()-before, "each object once")
	requireKeys(t, store, map[string][]string{"x": {"a", "b"}, "y": {"b"}})
	require.EqualError(t, store.AddIndexers(cache.Indexers{"values": byValues, "more": byValues}), "indexer conflict: map[values:{}]")
	require.NotContains(t, store.GetIndexers(), "more")
	_, err := store.IndexKeys("more", "x")
	require.EqualError(t, err, "Index with name more does not exist")
}

// What a caller does to its maps and objects afterwards is its own affair.
func TestStoreKeepsNothingOfItsCallers(t *testing.T) {
	indexers := cache.Indexers{"values": byValues}
	store := newValued(indexers)
	indexers["late"] = byValues
	require.NotContains(t, store.GetIndexers(), "late")
	store.GetIndexers()["late"] = byValues
	require.NotContains(t, store.GetIndexers(), "late")
	pod := valued("a", "x")
	require.NoError(t, store.Add(pod))
	pod.Annotations["value"] = "y"
	obj, _, err := store.GetByKey("a")
	require.NoError(t, err)
	require.Equal(t, "x", valueOf(obj))
}

// A delete and an update need no old object: nothing is decoded to undo an index.
func TestWritesDecodeNothing(t *testing.T) {
	store := objectcache.NewStore(&corev1.Pod{}, cache.Indexers{"values": byValues}, objectcache.StoreOptions{})
	require.NoError(t, store.Add(valued("a", "x")))
	require.NoError(t, store.Update(valued("a", "y")))
	require.NoError(t, store.Delete(valued("a", "z")))
	require.NoError(t, store.Replace([]interface{}{valued("b", "x")}, "1"))
	require.NoError(t, store.Replace(nil, "2"))
	require.Zero(t, store.Decoded())
	requireKeys(t, store, map[string][]string{"x": {}, "y": {}, "z": {}})
}
