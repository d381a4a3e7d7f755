package objectcache_test

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"

	"github.com/rvinformer/informer/internal/object"
	"github.com/rvinformer/informer/internal/wire"
	"github.com/rvinformer/informer/objectcache"
)

// damagedList is a list of two pods in protobuf. The spec of the second cannot be decoded, its metadata can.
func damagedList(t *testing.T) []byte {
	list := []byte{}
	for _, name := range []string{"good", "bad"} {
		message, err := podOf("a", name, "u-"+name, "1").Marshal()
		require.NoError(t, err)
		if name == "bad" {
			// A time decodes itself: that its seconds are no number is not seen when the object is stored.
			const status, startTime, seconds = 3<<3 | 2, 7<<3 | 2, 1<<3 | 2
			message = append(message, status, 5, startTime, 3, seconds, 1, 0)
		}
		const items = 2<<3 | 2
		require.Less(t, len(message), 128)
		list = append(append(list, items, byte(len(message))), message...)
	}
	envelope, err := (&runtime.Unknown{TypeMeta: runtime.TypeMeta{APIVersion: "v1", Kind: "PodList"}, Raw: list}).Marshal()
	require.NoError(t, err)
	return append([]byte("k8s\x00"), envelope...)
}

func TestObjectThatCannotBeDecodedIsReported(t *testing.T) {
	var reported []error
	s := objectcache.NewStore(&corev1.Pod{}, cache.Indexers{"version": byVersion}, objectcache.StoreOptions{
		ErrorHandler: func(err error) { reported = append(reported, err) },
	})
	require.Equal(t, 2, list(t, s, wire.Protobuf, damagedList(t), &corev1.Pod{}))
	require.Len(t, reported, 1, "it is in no index")
	require.ErrorContains(t, reported[0], `"a/bad"`)
	keys, err := s.IndexKeys("version", "1")
	require.NoError(t, err)
	require.Equal(t, []string{"a/good"}, keys)

	require.ElementsMatch(t, []string{"a/good", "a/bad"}, s.ListKeys())
	_, exists, err := s.GetByKey("a/bad")
	require.True(t, exists)
	require.ErrorContains(t, err, `decode *v1.Pod "a/bad"`)
	reported = nil
	require.Len(t, s.List(), 1)
	require.Len(t, reported, 1)
	_, err = objectcache.ListMatching(s, "a", nil)
	require.ErrorContains(t, err, `"a/bad"`)
	// Its metadata can be read all the same.
	partial := &metav1.PartialObjectMetadata{}
	exists, err = s.GetInto("a/bad", partial)
	require.NoError(t, err)
	require.True(t, exists)
	require.Equal(t, "u-bad", string(partial.UID))
	require.Equal(t, 1, s.Explain(0).Sampled)
}

func TestTypedTextThatDoesNotFitIsRefused(t *testing.T) {
	s := objectcache.NewStore(&gadget{}, nil, objectcache.StoreOptions{})
	g := s.Begin()
	defer g.Abandon()
	text := []byte(`{"kind":"List","apiVersion":"v1","metadata":{},"items":[{"metadata":{"name":"a","namespace":"n"},"sizes":"many"}]}`)
	read := 0
	readItems(t, wire.JSON, text, &gadget{}, func(it object.Item) {
		read++
		require.ErrorContains(t, g.PutItem(it), "sizes")
	})
	require.Equal(t, 1, read)
}

func TestWhatIsNoObjectIsRefused(t *testing.T) {
	s := objectcache.NewStore(&corev1.Pod{}, nil, objectcache.StoreOptions{})
	require.NoError(t, s.Add(podOf("a", "b", "u", "1")))
	for _, obj := range []interface{}{nil, "text", 7, corev1.Pod{}, (*corev1.Pod)(nil), cache.DeletedFinalStateUnknown{Key: "a/b"}} {
		require.Error(t, s.Add(obj), "%#v", obj)
		require.Error(t, s.Replace([]interface{}{podOf("a", "c", "u", "1"), obj}, "2"), "%#v", obj)
	}
	require.Equal(t, []string{"a/b"}, s.ListKeys(), "nothing has changed")
	require.Error(t, s.Delete("text"))
	_, _, err := s.Get("text")
	require.Error(t, err)
	require.NoError(t, s.Delete(cache.DeletedFinalStateUnknown{Key: "a/b"}))
	require.Empty(t, s.ListKeys())
	exists, err := s.GetInto("a/b", &corev1.Pod{})
	require.NoError(t, err)
	require.False(t, exists)
	require.NoError(t, s.Add(podOf("a", "b", "u", "1")))
	_, err = s.GetInto("a/b", (*corev1.Pod)(nil))
	require.Error(t, err)
	_, err = s.GetInto("a/b", &gadget{})
	require.ErrorContains(t, err, "protobuf")
}

func TestFailingIndexFunctionChangesNothing(t *testing.T) {
	s := objectcache.NewStore(&corev1.Pod{}, cache.Indexers{"version": byVersion}, objectcache.StoreOptions{})
	require.NoError(t, s.Add(podOf("a", "b", "u", "1")))
	failing := cache.Indexers{"failing": func(interface{}) ([]string, error) { return nil, errors.New("no value") }}
	require.Panics(t, func() { _ = s.AddIndexers(failing) })
	require.NotContains(t, s.GetIndexers(), "failing")
	require.NoError(t, s.Replace(nil, "2"))
	require.NoError(t, s.AddIndexers(failing))
	require.PanicsWithError(t, `unable to calculate an index entry for key "a/b" on index "failing": no value`, func() {
		_ = s.Add(podOf("a", "b", "u", "1"))
	})
	require.Panics(t, func() { _ = s.Replace([]interface{}{podOf("a", "b", "u", "1")}, "3") })
	require.Empty(t, s.List())
	require.NoError(t, s.Check())
}

// FuzzStoredBytes decodes bytes that no encoder made: there is an error, or an object that is stored as it is.
func FuzzStoredBytes(f *testing.F) {
	examples := []runtime.Object{
		podOf("a", "b", "u", "1"),
		&gadget{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Spec: map[string]string{"k": "v"}},
		&metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: "a"}},
		&unstructured.Unstructured{Object: map[string]interface{}{"kind": "K", "metadata": map[string]interface{}{"name": "a"}, "n": int64(1)}},
	}
	message, err := examples[0].(*corev1.Pod).Marshal()
	require.NoError(f, err)
	f.Add(uint8(0), message)
	f.Add(uint8(2), message)
	for i := range examples {
		text, err := json.Marshal(examples[i])
		require.NoError(f, err)
		f.Add(uint8(i), text)
		f.Add(uint8(i), []byte(`{"metadata":null}`))
		f.Add(uint8(i), []byte(`null`))
	}
	s := objectcache.NewStore(nil, nil, objectcache.StoreOptions{})
	f.Fuzz(func(t *testing.T, kind uint8, data []byte) {
		example := examples[int(kind)%len(examples)]
		stored, err := s.EncodedAs(example, data)
		require.NoError(t, err)
		_ = stored.DecodeInto(&metav1.PartialObjectMetadata{})
		_ = stored.DecodeInto(&unstructured.Unstructured{})
		obj, err := stored.Decode()
		if err != nil {
			require.ErrorContains(t, err, stored.Key())
			return
		}
		require.IsType(t, example, obj)
		if s.Add(obj) != nil { // it has no text, as a negative date
			return
		}
		key, err := cache.MetaNamespaceKeyFunc(obj)
		require.NoError(t, err)
		again, exists, err := s.GetByKey(key)
		require.NoError(t, err)
		require.True(t, exists)
		require.NoError(t, s.Delete(obj))
		want, wantErr := json.Marshal(obj)
		got, gotErr := json.Marshal(again)
		require.Equal(t, wantErr == nil, gotErr == nil)
		require.Equal(t, string(want), string(got))
	})
}
