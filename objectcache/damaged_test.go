package objectcache_test

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"

	"github.com/rvinformer/informer/internal/engine/object"
	"github.com/rvinformer/informer/internal/leaf/wire"
	"github.com/rvinformer/informer/objectcache"
)

// listOf is a list of pods in protobuf.
func listOf(t *testing.T, messages ...[]byte) []byte {
	list := []byte{}
	for _, message := range messages {
		const items = 2<<3 | 2
		list = append(binary.AppendUvarint(append(list, items), uint64(len(message))), message...)
	}
	envelope, err := (&runtime.Unknown{TypeMeta: runtime.TypeMeta{APIVersion: "v1", Kind: "PodList"}, Raw: list}).Marshal()
	require.NoError(t, err)
	return append([]byte("k8s\x00"), envelope...)
}

// noTime is what follows a pod whose start time is none.
func noTime() []byte {
	const status, startTime, seconds = 3<<3 | 2, 7<<3 | 2, 1<<3 | 2
	return []byte{status, 5, startTime, 3, seconds, 1, 0}
}

// damagedPod is a pod, and bytes of it that cannot be decoded. Its metadata can.
func damagedPod(t *testing.T) (*corev1.Pod, []byte) {
	pod := podOf("a", "bad", "u-bad", "1")
	message, err := pod.Marshal()
	require.NoError(t, err)
	return pod, append(message, noTime()...)
}

// A value that decodes itself, such as a quantity or a time, is tried before its object takes the
// place of a good one.
func TestObjectWithAValueThatDoesNotDecodeIsRefused(t *testing.T) {
	good := podOf("a", "b", "u", "1")
	pod := func(change func(*corev1.Pod)) []byte {
		p := podOf("a", "b", "u", "2")
		change(p)
		message, err := p.Marshal()
		require.NoError(t, err)
		return message
	}
	quantity := func(p *corev1.Pod) {
		p.Spec.Containers = []corev1.Container{{Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{"cpu": resource.MustParse("12345m")}}}}
	}
	volume := func(p *corev1.Pod) {
		size := resource.MustParse("12345m")
		p.Spec.Volumes = []corev1.Volume{{VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{SizeLimit: &size}}}}
	}
	for name, bad := range map[string][]byte{
		"a quantity in a map": bytes.Replace(pod(quantity), []byte("12345m"), []byte("no one"), 1),
		"a quantity":          bytes.Replace(pod(volume), []byte("12345m"), []byte("no one"), 1),
		"a time":              append(pod(func(*corev1.Pod) {}), noTime()...),
	} {
		t.Run(name, func(t *testing.T) {
			require.Error(t, (&corev1.Pod{}).Unmarshal(bad))
			s := objectcache.NewStore(&corev1.Pod{}, nil, objectcache.StoreOptions{})
			require.NoError(t, s.Add(good))
			g := s.Begin()
			readItems(t, wire.Protobuf, listOf(t, bad), &corev1.Pod{}, func(it object.Item) {
				require.ErrorContains(t, g.PutItem(it), "a/b")
				g.Keep(it.Key)
			})
			for range g.End("2", true) {
				t.Error("something has changed")
			}
			got, exists, err := s.GetByKey("a/b")
			require.NoError(t, err)
			require.True(t, exists)
			require.Equal(t, "1", got.(*corev1.Pod).ResourceVersion)
		})
	}
	s := objectcache.NewStore(&corev1.Pod{}, nil, objectcache.StoreOptions{})
	require.Equal(t, 1, list(t, s, wire.Protobuf, listOf(t, pod(quantity)), &corev1.Pod{}))
	require.Zero(t, s.Decoded())
}

// Bytes that are stored may be damaged, in a snapshot for instance.
func TestObjectThatCannotBeDecodedIsReported(t *testing.T) {
	var reported []error
	s := objectcache.NewStore(&corev1.Pod{}, cache.Indexers{"version": byVersion}, objectcache.StoreOptions{
		ErrorHandler: func(err error) { reported = append(reported, err) },
	})
	require.NoError(t, s.Add(podOf("a", "good", "u-good", "1")))
	require.NoError(t, s.PutEncoded(damagedPod(t)))
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

// FuzzStoredBytes decodes bytes that no encoder made: there is an error, or an object that is
// stored as it is.
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
