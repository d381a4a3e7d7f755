package objectcache_test

import (
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

// requireKeys checks which keys each value has in the index "values".
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

// A store does not notice what a caller does later to the maps and objects that it has passed.
func TestStoreKeepsNothingOfItsCallers(t *testing.T) {
	indexers := cache.Indexers{"values": byValues}
	store := objectcache.NewStore(&corev1.Pod{}, indexers, objectcache.StoreOptions{})
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
