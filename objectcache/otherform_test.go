package objectcache_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/informertest"
	"github.com/rvinformer/informer/objectcache"
)

// A typed object comes back without a kind, as from a typed client. An object of another type that
// it is read into has the kind, in each encoding, whether the object was listed, watched or
// restored.
func TestKindOfATypedObjectInAnotherForm(t *testing.T) {
	same := func(obj interface{}) (interface{}, error) { return obj, nil }
	for name, c := range map[string]struct {
		content   string
		transform cache.TransformFunc
	}{
		"protobuf": {runtime.ContentTypeProtobuf, nil}, "JSON": {runtime.ContentTypeJSON, nil}, "transformed": {runtime.ContentTypeProtobuf, same},
	} {
		bubbleRun(t, name, informertest.Options{}, func(t *testing.T, w *world) {
			w.create("a/listed")
			config := w.Config()
			config.ContentType = c.content
			factory, err := informer.NewDynamicListerWatcherFactory(config)
			require.NoError(t, err)
			opts := objectcache.Options{Snapshot: informer.FileCheckpoint(snapshotFile(t)), Transform: c.transform}
			demand := func(i *objectcache.Informer, keys ...string) {
				t.Helper()
				for _, key := range keys {
					u, partial := &unstructured.Unstructured{}, &metav1.PartialObjectMetadata{}
					for _, into := range []runtime.Object{u, partial} {
						exists, err := i.Store().GetInto(key, into)
						require.NoError(t, err)
						require.True(t, exists, key)
						require.Equal(t, "/v1, Kind=Pod", into.GetObjectKind().GroupVersionKind().String(), "%s into a %T", key, into)
					}
					typed, _, err := i.Store().GetByKey(key)
					require.NoError(t, err)
					require.Empty(t, typed.(*corev1.Pod).TypeMeta)
					into := &corev1.Pod{TypeMeta: metav1.TypeMeta{Kind: "Left"}}
					_, err = i.Store().GetInto(key, into)
					require.NoError(t, err)
					require.Empty(t, into.TypeMeta)
				}
			}
			run := func() (i *objectcache.Informer, stop func()) {
				i = newInformer(factory.ForResource("", pods), &corev1.Pod{}, opts)
				return i, w.run(i)
			}
			i, stop := run()
			w.create("a/watched")
			require.NoError(t, i.WaitUntil(t.Context(), w.ResourceVersion()))
			demand(i, "a/listed", "a/watched")
			stop()
			w.ResetRequests()
			i, stop = run()
			defer stop()
			demand(i, "a/listed", "a/watched")
			require.Zero(t, w.lists(), "they were restored")
		})
	}
}

// memo is a typed object with a field that JSON leaves out, several levels down.
type memo struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Parts             map[string][]*part `json:"parts,omitempty"`
}

type part struct {
	Text  string `json:"text"`
	Cache string `json:"-"`
	Next  *part  `json:"next,omitempty"`
}

func (m *memo) DeepCopyObject() runtime.Object { c := *m; return &c }

// A store of JSON refuses an object with a value in a field that JSON leaves out, and names the
// field. The value would be lost without an error.
func TestFieldsThatJSONLeavesOutAreNotLost(t *testing.T) {
	s := objectcache.NewStore(&memo{}, nil, objectcache.StoreOptions{})
	m := &memo{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Parts: map[string][]*part{"p": {nil, {Text: "t", Next: &part{}}}}}
	require.NoError(t, s.Add(m))
	m.Parts["p"][1].Next.Cache = "kept by client-go"
	err := s.Add(m)
	require.ErrorContains(t, err, "objectcache_test.part.Cache")
	require.ErrorContains(t, err, "Options.Decoded")
	require.ErrorContains(t, s.Replace([]interface{}{m}, "7"), "part.Cache")
	got, exists, err := s.GetByKey("a")
	require.NoError(t, err)
	require.True(t, exists)
	require.Empty(t, got.(*memo).Parts["p"][1].Next.Cache, "what was there stays")
}

// charter is a typed object with a message of its own decoding, which refers to its descriptors, as
// types of golang-protobuf do. Descriptors lead to each other.
type charter struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              message `json:"spec"`
}

type message struct {
	Text  string
	state *descriptor
	// Open leads round too, and is exported.
	Open *descriptor
}

type descriptor struct {
	file, message *descriptor
	Of            []*descriptor
}

func newDescriptor() *descriptor {
	file, message := &descriptor{}, &descriptor{}
	message.file, message.message = file, message
	file.message = message
	message.Of = []*descriptor{message, file, message}
	file.Of = message.Of
	return message
}

func (c *charter) DeepCopyObject() runtime.Object { copied := *c; return &copied }

func (m message) MarshalJSON() ([]byte, error) { return json.Marshal(m.Text) }
func (m *message) UnmarshalJSON(b []byte) error {
	m.state, m.Open = newDescriptor(), newDescriptor()
	return json.Unmarshal(b, &m.Text)
}

// An object is read by key whatever its fields refer to. The memory of such a type was measured
// through its descriptors, without end.
func TestObjectsThatReferToThemselvesAreRead(t *testing.T) {
	s := objectcache.NewStore(&charter{}, nil, objectcache.StoreOptions{HotBytes: 1 << 20})
	require.NoError(t, s.Add(&charter{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Spec: message{Text: "b"}}))
	for range 3 {
		got, exists, err := s.GetByKey("a")
		require.NoError(t, err)
		require.True(t, exists)
		require.Equal(t, "b", got.(*charter).Spec.Text)
	}
	require.NoError(t, s.Add(&charter{ObjectMeta: metav1.ObjectMeta{Name: "c"}, Spec: message{Text: "d", state: newDescriptor(), Open: newDescriptor()}}))
	require.Len(t, s.List(), 2)
}

// growing is what types of objects have in common that are declared in functions, and so have no methods of
// their own. Two of them have the same name, as one type has in two versions of a program.
type growing struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
}

func (g *growing) DeepCopyObject() runtime.Object { panic("the test copies nothing") }

var podKind = metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}

func beforeItGrew() runtime.Object {
	type widget struct{ growing }
	return &widget{growing{TypeMeta: podKind}}
}

// afterItGrew returns an object of a type with another field, and how that field is read.
func afterItGrew() (runtime.Object, func(*objectcache.Store) (string, error)) {
	type widget struct {
		growing
		Spec struct {
			NodeName string `json:"nodeName"`
		} `json:"spec"`
	}
	return &widget{growing: growing{TypeMeta: podKind}}, func(s *objectcache.Store) (string, error) {
		into := &widget{}
		_, err := s.GetInto("a/1", into)
		return into.Spec.NodeName, err
	}
}

// A snapshot lacks the fields that the type of its objects has got since, where they were encoded from it.
func TestSnapshotOfATypeThatHasGrownIsReplaced(t *testing.T) {
	same := func(obj interface{}) (interface{}, error) { return obj, nil }
	for name, c := range map[string]struct {
		transform cache.TransformFunc
		lists     int
	}{"encoded again": {same, 1}, "as the server sent them": {nil, 0}} {
		bubbleRun(t, name, informertest.Options{}, func(t *testing.T, w *world) {
			created := pod("a/1", "created")
			require.NoError(t, unstructured.SetNestedField(created.Object, "node-1", "spec", "nodeName"))
			_, err := w.Create(pods, created)
			require.NoError(t, err)
			opts := objectcache.Options{Snapshot: informer.FileCheckpoint(snapshotFile(t)), HotBytes: -1} // nothing is copied
			run := func(example runtime.Object) (*objectcache.Informer, func()) {
				i := newInformer(w.lister(), example, opts)
				if c.transform != nil {
					require.NoError(t, i.SetTransform(c.transform))
				}
				return i, w.run(i)
			}
			_, stop := run(beforeItGrew())
			sleep(time.Second)
			stop()
			w.ResetRequests()
			example, nodeName := afterItGrew()
			i, stop := run(example)
			defer stop()
			sleep(time.Second)
			require.Equal(t, c.lists, w.lists())
			read, err := nodeName(i.Store())
			require.NoError(t, err)
			require.Equal(t, "node-1", read)
		})
	}
}

// ring has fields that lead back to their type, in each way that Go has.
type ring struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Next              *ring             `json:"next,omitempty"`
	Nodes             nodes             `json:"nodes,omitempty"`
	Names             names             `json:"names,omitempty"`
	Pairs             [][]map[int]*ring `json:"pairs,omitempty"`
	Left              *ring             `json:"-"`
	owner             *ring
	//lint:ignore U1000 reflection reads it
	parts nodes
}

type (
	nodes []nodes
	names map[string]names
)

func (r *ring) DeepCopyObject() runtime.Object { c := *r; return &c }

func TestTypeThatLeadsBackToItselfIsRead(t *testing.T) {
	for name, opts := range map[string]objectcache.Options{
		"whole":       {},
		"pruned":      {Prune: []string{"metadata.managedFields", "next.next.metadata.labels", "nodes", "pairs"}},
		"kept":        {Keep: []string{"metadata.labels", "next.next.metadata.name", "names"}},
		"transformed": {Transform: func(obj interface{}) (interface{}, error) { obj.(*ring).owner = obj.(*ring); return obj, nil }},
		"saved":       {Snapshot: informer.FileCheckpoint(snapshotFile(t)), Transform: func(obj interface{}) (interface{}, error) { return obj, nil }},
		"decoded":     {Decoded: true, Prune: []string{"next.next.next"}},
	} {
		bubbleRun(t, name, informertest.Options{}, func(t *testing.T, w *world) {
			created := pod("a/1", "created")
			created.Object["next"] = map[string]interface{}{"metadata": map[string]interface{}{"name": "inner"}, "names": map[string]interface{}{"a": map[string]interface{}{"b": nil}}}
			created.Object["nodes"] = []interface{}{[]interface{}{}, []interface{}{[]interface{}{}}}
			_, err := w.Create(pods, created)
			require.NoError(t, err)
			i := newInformer(w.lister(), &ring{TypeMeta: podKind}, opts)
			defer w.run(i)()
			for range 3 {
				obj, exists, err := i.GetIndexer().GetByKey("a/1")
				require.NoError(t, err)
				require.True(t, exists)
				require.Equal(t, "created", value(obj))
			}
			relist(w)
			require.NoError(t, i.Status().LastError)
		})
	}
}
