package objectcache_test

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/rvinformer/informer/internal/engine/object"
	"github.com/rvinformer/informer/internal/leaf/keytable"
	"github.com/rvinformer/informer/internal/leaf/wire"
	"github.com/rvinformer/informer/internal/testkit/samples"
	"github.com/rvinformer/informer/objectcache"
)

// body is a list response of pods or, with JSON, of releases.
func body(t testing.TB, format wire.Format, n, revision int) []byte {
	cluster := samples.Cluster{Seed: 1}
	if format == wire.JSON {
		list := &unstructured.UnstructuredList{Object: map[string]interface{}{"apiVersion": "v1", "kind": "List", "metadata": map[string]interface{}{"resourceVersion": "9"}}}
		for i := range n {
			list.Items = append(list.Items, *cluster.Release(i, revision))
		}
		text, err := list.MarshalJSON()
		require.NoError(t, err)
		return text
	}
	list := &corev1.PodList{ListMeta: metav1.ListMeta{ResourceVersion: "9"}}
	for _, pod := range cluster.Pods(0, n, revision) {
		list.Items = append(list.Items, *pod)
	}
	message, err := list.Marshal()
	require.NoError(t, err)
	unknown := runtime.Unknown{TypeMeta: runtime.TypeMeta{APIVersion: "v1", Kind: "PodList"}, Raw: message}
	envelope, err := unknown.Marshal()
	require.NoError(t, err)
	return append([]byte("k8s\x00"), envelope...)
}

// readItems calls f with each object of a body, as a source reads it.
func readItems(t testing.TB, format wire.Format, body []byte, example runtime.Object, f func(object.Item)) {
	form := object.Expect(example, "", object.Public{}).Form(false, nil)
	lent := &object.Lent{Form: &form}
	reader := wire.NewListReader(bytes.NewReader(body), format, wire.Options{})
	var key []byte
	for {
		it, err := reader.Next()
		if err != nil {
			break
		}
		m := reader.Meta()
		lent.Item, lent.Listed = it, metav1.TypeMeta{APIVersion: m.APIVersion, Kind: m.ItemKind()}
		key = append(append(append(key[:0], it.Namespace...), '/'), it.Name...)
		f(object.Item{
			Key:     object.LentString(key),
			Version: keytable.Version{ResourceVersion: object.LentString(it.ResourceVersion), UID: types.UID(object.LentString(it.UID))},
			Lent:    lent,
		})
	}
}

// list reads a list into the store, and returns how many objects were put.
func list(t testing.TB, s *objectcache.Store, format wire.Format, body []byte, example runtime.Object) (put int) {
	g := s.Begin()
	readItems(t, format, body, example, func(it object.Item) {
		if !g.ShowItem(it) {
			require.NoError(t, g.PutItem(it))
			put++
		}
	})
	for old, now := range g.End("9", true) {
		require.True(t, !old.IsZero() || !now.IsZero())
	}
	return put
}

func TestObjectsOffTheWireComeBack(t *testing.T) {
	cluster := samples.Cluster{Seed: 1}
	const n = 50
	s := objectcache.NewStore(&corev1.Pod{}, nil, objectcache.StoreOptions{})
	require.Equal(t, n, list(t, s, wire.Protobuf, body(t, wire.Protobuf, n, 0), &corev1.Pod{}))
	require.Zero(t, s.Decoded())
	for i := range n {
		want := cluster.Pod(i, 0)
		want.TypeMeta = metav1.TypeMeta{} // as typed clients have it
		got, exists, err := s.GetByKey(want.Namespace + "/" + want.Name)
		require.NoError(t, err)
		require.True(t, exists)
		require.True(t, equality.Semantic.DeepEqual(want, got))
	}

	custom := objectcache.NewStore(nil, nil, objectcache.StoreOptions{})
	require.Equal(t, n, list(t, custom, wire.JSON, body(t, wire.JSON, n, 0), nil))
	require.Zero(t, custom.Decoded())
	for i := range n {
		want := cluster.Release(i, 0)
		got, exists, err := custom.GetByKey(want.GetNamespace() + "/" + want.GetName())
		require.NoError(t, err)
		require.True(t, exists)
		wantText, err := json.Marshal(want)
		require.NoError(t, err)
		gotText, err := json.Marshal(got)
		require.NoError(t, err)
		require.JSONEq(t, string(wantText), string(gotText))
	}
}

func TestUnchangedListDecodesAndAllocatesNothing(t *testing.T) {
	for name, kind := range map[string]struct {
		format  wire.Format
		example runtime.Object
	}{"protobuf": {wire.Protobuf, &corev1.Pod{}}, "JSON": {wire.JSON, nil}} {
		t.Run(name, func(t *testing.T) {
			const n = 500
			s := objectcache.NewStore(kind.example, allIndexers, objectcache.StoreOptions{})
			same := body(t, kind.format, n, 0)
			list(t, s, kind.format, same, kind.example)
			before := s.Decoded()
			// What a list costs is what one of no objects costs, and the reader that reads it.
			reading := testing.AllocsPerRun(5, func() { readItems(t, kind.format, same, kind.example, func(object.Item) {}) })
			listing := testing.AllocsPerRun(5, func() { require.Zero(t, list(t, s, kind.format, same, kind.example)) })
			require.Equal(t, before, s.Decoded())
			require.Less(t, listing-reading, 20.0, "for %d objects", n)
		})
	}
}

// A pod has numbers whose tags say that they are bytes, as every pod of a real server has.
func TestFirstListDecodesNoPod(t *testing.T) {
	const n = 500
	pods := body(t, wire.Protobuf, n, 0)
	listing := testing.AllocsPerRun(3, func() {
		list(t, objectcache.NewStore(&corev1.Pod{}, nil, objectcache.StoreOptions{}), wire.Protobuf, pods, &corev1.Pod{})
	})
	require.Less(t, listing/n, 40.0, "a decoded pod takes 68 allocations; the race detector has its own")
}

// A changed list decodes for the indexes alone, and an unchanged object of it is not among the
// changes.
func TestRelistOfSomeChangesReportsThese(t *testing.T) {
	cluster := samples.Cluster{Seed: 1}
	s := objectcache.NewStore(&corev1.Pod{}, nil, objectcache.StoreOptions{})
	const n = 20
	list(t, s, wire.Protobuf, body(t, wire.Protobuf, n, 0), &corev1.Pod{})
	g := s.Begin()
	for i := 1; i < n; i++ { // the first one is gone
		pod := cluster.Pod(i, i%2)
		if !g.Show(pod.Namespace+"/"+pod.Name, pod.ResourceVersion, string(pod.UID)) {
			require.NoError(t, g.Put(pod))
		}
	}
	added := cluster.Pod(n, 0)
	require.NoError(t, g.Put(added))
	updates, adds, deletes := 0, 0, 0
	for old, now := range g.End("10", true) {
		switch {
		case old.IsZero():
			adds++
			require.Equal(t, added.Namespace+"/"+added.Name, now.Key())
		case now.IsZero():
			deletes++
			rv, uid, err := old.StateOfVersion()
			require.NoError(t, err)
			gone := cluster.Pod(0, 0)
			require.Equal(t, gone.ResourceVersion, rv)
			require.Equal(t, string(gone.UID), uid)
		default:
			updates++
			require.Equal(t, old.Key(), now.Key())
			before, err := old.Decode()
			require.NoError(t, err)
			after, err := now.Decode()
			require.NoError(t, err)
			require.NotEqual(t, before.(*corev1.Pod).ResourceVersion, after.(*corev1.Pod).ResourceVersion)
		}
	}
	require.Equal(t, []int{n / 2, 1, 1}, []int{updates, adds, deletes})
	require.Equal(t, "10", s.LastStoreSyncResourceVersion())
	require.NoError(t, s.Check())
}
