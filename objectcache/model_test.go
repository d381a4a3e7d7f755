package objectcache_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"pgregory.net/rapid"

	"github.com/rvinformer/informer/objectcache"
)

// gadget is a typed object without protobuf.
type gadget struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              map[string]string `json:"spec,omitempty"`
	Sizes             []int64           `json:"sizes,omitempty"`
}

func (g *gadget) DeepCopyObject() runtime.Object {
	c := &gadget{TypeMeta: g.TypeMeta, Spec: maps.Clone(g.Spec), Sizes: slices.Clone(g.Sizes)}
	g.ObjectMeta.DeepCopyInto(&c.ObjectMeta)
	return c
}

// drawObject draws an object of a kind. There are few names and values, so that they meet.
func drawObject(t *rapid.T, kind string) runtime.Object {
	m := metav1.ObjectMeta{
		Namespace:       rapid.SampledFrom([]string{"", "a", "b", "ab"}).Draw(t, "namespace"),
		Name:            rapid.SampledFrom([]string{"x", "y", "z-1", "z-2", "b", ""}).Draw(t, "name"),
		UID:             types.UID(rapid.SampledFrom([]string{"", "u1", "3f2c6d0e-6a7f-4c56-9d7e-0f4f4a3f9b11"}).Draw(t, "uid")),
		ResourceVersion: rapid.SampledFrom([]string{"", "1", "2", "007", "9x", "340282366920938463463374607431768211455"}).Draw(t, "version"),
		Labels:          drawText(t, "labels", []string{"app", "tier"}, []string{"", "web", "db"}),
		Annotations:     drawText(t, "annotations", []string{"note"}, []string{"n", "m"}),
	}
	if rapid.Bool().Draw(t, "owned") {
		yes := true
		m.OwnerReferences = []metav1.OwnerReference{{Kind: "Set", Name: "s", UID: "s1", Controller: &yes}}
	}
	typed := metav1.TypeMeta{}
	if rapid.Bool().Draw(t, "kind said") {
		typed = metav1.TypeMeta{APIVersion: "g/v1", Kind: "Thing"}
	}
	node := rapid.SampledFrom([]string{"", "n1", "n2"}).Draw(t, "node")
	switch kind {
	case "pod":
		return &corev1.Pod{TypeMeta: typed, ObjectMeta: m, Spec: corev1.PodSpec{NodeName: node, Containers: []corev1.Container{{Name: "c", Image: node}}}}
	case "gadget":
		return &gadget{TypeMeta: typed, ObjectMeta: m, Spec: drawText(t, "spec", []string{"k"}, []string{"v", "w"}), Sizes: []int64{1 << 62, -3}}
	case "metadata":
		return &metav1.PartialObjectMetadata{TypeMeta: typed, ObjectMeta: m}
	default:
		u := &unstructured.Unstructured{Object: map[string]interface{}{
			"apiVersion": "g/v1", "kind": "Thing", "n": int64(1)<<53 + 1, "f": 1.5, "l": []interface{}{"a", nil, true, map[string]interface{}{}},
			"spec": map[string]interface{}{"nodeName": node},
		}}
		u.SetNamespace(m.Namespace)
		u.SetName(m.Name)
		u.SetUID(m.UID)
		u.SetResourceVersion(m.ResourceVersion)
		u.SetLabels(m.Labels)
		return u
	}
}

func drawText(t *rapid.T, label string, keys, values []string) map[string]string {
	m := rapid.MapOfN(rapid.SampledFrom(keys), rapid.SampledFrom(values), -1, len(keys)).Draw(t, label)
	if len(m) == 0 {
		return nil
	}
	return m
}

// Index functions of all sorts: one value, none or several, and of more than metadata.
func byLabels(obj interface{}) ([]string, error) {
	m, err := meta.Accessor(obj)
	if err != nil {
		return nil, err
	}
	values := []string{}
	for k, v := range m.GetLabels() {
		values = append(values, k, v)
	}
	return values, nil
}

func byNode(obj interface{}) ([]string, error) {
	switch obj := obj.(type) {
	case *corev1.Pod:
		return []string{obj.Spec.NodeName}, nil
	case *unstructured.Unstructured:
		node, _, err := unstructured.NestedString(obj.Object, "spec", "nodeName")
		return []string{node, node}, err
	case *gadget:
		return slices.Collect(maps.Values(obj.Spec)), nil
	}
	return nil, nil
}

func byNamespace(obj interface{}) ([]string, error) { return cache.MetaNamespaceIndexFunc(obj) }

var allIndexers = cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc, "labels": byLabels, "node": byNode, "again": byNamespace}

// storeModel compares a Store with client-go's.
type storeModel struct {
	indexer cache.Indexer
	model   cache.Indexer
	// store is the indexer, nil if it keeps objects decoded.
	store *objectcache.Store
	kinds []string
	// example is the store's.
	example runtime.Object
	drawn   []runtime.Object
}

func newStoreModel(t *rapid.T, decoded bool) *storeModel {
	examples := map[string]runtime.Object{"pod": &corev1.Pod{}, "gadget": &gadget{}, "metadata": &metav1.PartialObjectMetadata{}, "map": nil, "mixed": &appsv1.Deployment{}}
	kind := rapid.SampledFrom([]string{"pod", "gadget", "metadata", "map", "mixed"}).Draw(t, "kind")
	m := &storeModel{kinds: []string{kind}, example: examples[kind]}
	if kind == "mixed" {
		m.kinds = []string{"pod", "gadget", "metadata", "map"}
	}
	first, same := cache.Indexers{}, cache.Indexers{}
	for _, name := range slices.Sorted(maps.Keys(allIndexers)) {
		if rapid.Bool().Draw(t, "with "+name) {
			first[name], same[name] = allIndexers[name], allIndexers[name]
		}
	}
	if decoded {
		m.indexer = objectcache.KeptDecoded(first)
	} else {
		hot := rapid.SampledFrom([]int64{0, -1, 1000, 5000}).Draw(t, "hot bytes")
		m.store = objectcache.NewStore(examples[kind], first, objectcache.StoreOptions{HotBytes: hot})
		m.indexer = m.store
	}
	m.model = cache.NewIndexer(cache.DeletionHandlingMetaNamespaceKeyFunc, same)
	return m
}

func (m *storeModel) draw(t *rapid.T) runtime.Object {
	if len(m.drawn) > 0 && rapid.Bool().Draw(t, "drawn before") {
		return rapid.SampledFrom(m.drawn).Draw(t, "object")
	}
	obj := drawObject(t, rapid.SampledFrom(m.kinds).Draw(t, "kind of object"))
	m.drawn = append(m.drawn, obj)
	return obj
}

func (m *storeModel) Add(t *rapid.T) {
	obj := m.draw(t)
	require.NoError(t, m.model.Add(obj))
	require.NoError(t, m.indexer.Add(obj))
}

func (m *storeModel) Update(t *rapid.T) {
	obj := m.draw(t)
	require.NoError(t, m.model.Update(obj))
	require.NoError(t, m.indexer.Update(obj))
}

func (m *storeModel) Delete(t *rapid.T) {
	obj := interface{}(m.draw(t))
	if rapid.Bool().Draw(t, "tombstone") {
		key, err := cache.MetaNamespaceKeyFunc(obj)
		require.NoError(t, err)
		obj = cache.DeletedFinalStateUnknown{Key: key, Obj: obj}
	}
	require.NoError(t, m.indexer.Delete(obj))
	require.NoError(t, m.model.Delete(obj))
}

func (m *storeModel) Bookmark(*rapid.T) {
	m.model.Bookmark("5")
	m.indexer.Bookmark("5")
}

func (m *storeModel) Replace(t *rapid.T) {
	objects := make([]interface{}, rapid.IntRange(0, 6).Draw(t, "objects"))
	for i := range objects {
		objects[i] = m.draw(t)
	}
	require.NoError(t, m.indexer.Replace(slices.Clone(objects), "77"))
	require.NoError(t, m.model.Replace(objects, "77"))
}

func (m *storeModel) AddIndexers(t *rapid.T) {
	name := rapid.SampledFrom(slices.Sorted(maps.Keys(allIndexers))).Draw(t, "index")
	added := cache.Indexers{name: allIndexers[name]}
	want := m.model.AddIndexers(added)
	got := m.indexer.AddIndexers(added)
	require.Equal(t, want, got)
}

// Mutate changes what a reader got, which must not matter.
func (m *storeModel) Mutate(t *rapid.T) {
	if m.store == nil {
		t.Skip("readers share what is kept decoded")
	}
	for _, obj := range m.indexer.List() {
		accessor, err := meta.Accessor(obj)
		require.NoError(t, err)
		key, err := cache.MetaNamespaceKeyFunc(obj)
		require.NoError(t, err)
		read, exists, err := m.indexer.GetByKey(key)
		require.NoError(t, err)
		require.True(t, exists)
		for _, l := range []map[string]string{accessor.GetLabels(), read.(metav1.Object).GetLabels()} {
			maps.DeleteFunc(l, func(string, string) bool { return true })
		}
	}
}

func (m *storeModel) Check(t *rapid.T) { m.same(t) }

func (m *storeModel) same(t *rapid.T) {
	require.ElementsMatch(t, m.model.ListKeys(), m.indexer.ListKeys())
	requireSame(t, m.model.List(), m.indexer.List())
	require.Equal(t, m.model.LastStoreSyncResourceVersion(), m.indexer.LastStoreSyncResourceVersion())
	for _, key := range append(m.model.ListKeys(), "none", "a/none", "/x") {
		want, wantExists, _ := m.model.GetByKey(key)
		got, exists, err := m.indexer.GetByKey(key)
		require.NoError(t, err)
		require.Equal(t, wantExists, exists, key)
		if exists {
			requireEqual(t, want, got)
			if m.store != nil {
				m.sameInto(t, key, want.(runtime.Object))
			}
		}
	}
	for _, name := range append(slices.Sorted(maps.Keys(allIndexers)), "none") {
		require.ElementsMatch(t, m.model.ListIndexFuncValues(name), m.indexer.ListIndexFuncValues(name))
		for _, value := range append(m.model.ListIndexFuncValues(name), "none") {
			want, wantErr := m.model.ByIndex(name, value)
			got, err := m.indexer.ByIndex(name, value)
			require.Equal(t, wantErr, err)
			requireSame(t, want, got)
			wantKeys, _ := m.model.IndexKeys(name, value)
			keys, err := m.indexer.IndexKeys(name, value)
			require.Equal(t, wantErr, err)
			require.Equal(t, wantKeys, keys)
		}
		for _, obj := range m.drawn[max(0, len(m.drawn)-2):] {
			want, wantErr := m.model.Index(name, obj)
			got, err := m.indexer.Index(name, obj)
			require.Equal(t, wantErr, err)
			requireSame(t, want, got)
		}
	}
	require.Equal(t, len(m.model.GetIndexers()), len(m.indexer.GetIndexers()))
	if m.store != nil {
		m.sameMatching(t)
		require.GreaterOrEqual(t, m.store.SizeBytes(), int64(0))
	}
	require.Equal(t, len(m.model.ListKeys()), m.indexer.(interface{ Len() int }).Len())
}

func (m *storeModel) sameInto(t *rapid.T, key string, want runtime.Object) {
	into := want.DeepCopyObject()
	into.(metav1.Object).SetAnnotations(map[string]string{"left": "over"})
	exists, err := m.store.GetInto(key, into)
	require.NoError(t, err)
	require.True(t, exists)
	requireEqual(t, want, into)
	partial := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: "left over", Labels: map[string]string{"a": "b"}}}
	exists, err = m.store.GetInto(key, partial)
	require.NoError(t, err)
	require.True(t, exists)
	require.Equal(t, want.(metav1.Object).GetLabels(), partial.Labels)
	require.Equal(t, want.(metav1.Object).GetName(), partial.Name)
}

func (m *storeModel) sameMatching(t *rapid.T) {
	for _, namespace := range []string{"", "a"} {
		for _, text := range []string{"", "app=web", "app!=web,tier"} {
			selector, err := labels.Parse(text)
			require.NoError(t, err)
			var want []interface{}
			for _, obj := range m.model.List() {
				o := obj.(metav1.Object)
				if (namespace == "" || o.GetNamespace() == namespace) && selector.Matches(labels.Set(o.GetLabels())) {
					want = append(want, obj)
				}
			}
			before := m.store.Decoded()
			found, err := objectcache.ListMatching(m.store, namespace, selector)
			require.NoError(t, err)
			require.Equal(t, int64(len(want)), m.store.Decoded()-before, "decodes what matches and no more")
			got := make([]interface{}, len(found))
			for i := range found {
				got[i] = found[i]
			}
			requireSame(t, want, got)
			limited, err := m.store.Select(objectcache.Query{Namespace: namespace, Labels: selector, Limit: 2})
			require.NoError(t, err)
			require.Len(t, limited, min(2, len(want)))
		}
	}
}

// requireSame compares two lists, whatever their order.
func requireSame(t *rapid.T, want, got []interface{}) {
	require.Len(t, got, len(want))
	byKey := func(objects []interface{}) map[string]interface{} {
		keyed := map[string]interface{}{}
		for _, obj := range objects {
			key, err := cache.MetaNamespaceKeyFunc(obj)
			require.NoError(t, err)
			keyed[key] = obj
		}
		require.Len(t, keyed, len(objects), "a key twice")
		return keyed
	}
	gotByKey := byKey(got)
	for key, obj := range byKey(want) {
		requireEqual(t, obj, gotByKey[key])
	}
}

func requireEqual(t *rapid.T, want, got interface{}) {
	if !equality.Semantic.DeepEqual(want, got) {
		t.Fatalf("want %s\n got %s", fmt.Sprintf("%T %+v", want, want), fmt.Sprintf("%T %+v", got, got))
	}
}

func TestStoreAnswersAsClientGoDoes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := newStoreModel(t, rapid.Bool().Draw(t, "decoded"))
		t.Repeat(map[string]func(*rapid.T){
			"": m.Check, "Add": m.Add, "Update": m.Update, "Delete": m.Delete, "Replace": m.Replace, "AddIndexers": m.AddIndexers,
			"Bookmark": m.Bookmark, "Mutate": m.Mutate,
		})
	})
}
