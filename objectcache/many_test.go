package objectcache_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"

	"github.com/rvinformer/informer/internal/leaf/wire"
	"github.com/rvinformer/informer/objectcache"
)

// A store that grows and shrinks to nothing has what a map has, and gives its memory back.
func TestManyObjectsComeAndGo(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	s := objectcache.NewStore(&corev1.Pod{}, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc, "version": byVersion}, objectcache.StoreOptions{HotBytes: -1})
	empty := s.SizeBytes()
	model := map[string]string{}
	pod := func(i, version int) *corev1.Pod {
		p := podOf(fmt.Sprint("namespace-", i%13), fmt.Sprint("name-", i), "u", strconv.Itoa(version))
		p.Labels = map[string]string{"team": fmt.Sprint(i % 29), "tier": fmt.Sprint(version % 3)}
		return p
	}
	check := func() {
		require.NoError(t, s.Check())
		require.Equal(t, len(model), s.Len())
		for key, version := range model {
			require.True(t, s.Unchanged(key, version, "u"), key)
		}
		team := r.IntN(29)
		for _, namespace := range []string{"", fmt.Sprint("namespace-", r.IntN(13))} {
			want := []string{}
			for i := range 5000 {
				key := fmt.Sprintf("namespace-%d/name-%d", i%13, i)
				if _, has := model[key]; has && i%29 == team && (namespace == "" || namespace == fmt.Sprint("namespace-", i%13)) {
					want = append(want, key)
				}
			}
			selector := labels.SelectorFromSet(labels.Set{"team": strconv.Itoa(team)})
			found, err := s.Select(objectcache.Query{Namespace: namespace, Labels: selector})
			require.NoError(t, err)
			got := []string{}
			for _, o := range found {
				got = append(got, o.Key())
			}
			slices.Sort(got)
			slices.Sort(want)
			require.Equal(t, want, got)
		}
	}
	version := 0
	for _, phase := range []struct{ steps, deletes int }{{6000, 10}, {6000, 50}, {12000, 90}} {
		for range phase.steps {
			version++
			p := pod(r.IntN(5000), version)
			key := p.Namespace + "/" + p.Name
			if r.IntN(100) < phase.deletes {
				require.NoError(t, s.Delete(p))
				delete(model, key)
			} else {
				require.NoError(t, s.Add(p))
				model[key] = p.ResourceVersion
			}
		}
		check()
	}
	for key := range model {
		require.NoError(t, s.Delete(cache.DeletedFinalStateUnknown{Key: key}))
		delete(model, key)
	}
	check()
	require.LessOrEqual(t, s.SizeBytes(), empty+4096, "nothing is left")
}

// The objects that a selector selects are returned in a slice without room for the others.
func TestFewSelectedObjectsTakeLittle(t *testing.T) {
	s := objectcache.NewStore(&corev1.Pod{}, nil, objectcache.StoreOptions{})
	for i := range 1000 {
		p := podOf("a", fmt.Sprint(i), "u", "1")
		p.Labels = map[string]string{"name": p.Name}
		require.NoError(t, s.Add(p))
	}
	found, err := s.Select(objectcache.Query{Labels: labels.SelectorFromSet(labels.Set{"name": "7"})})
	require.NoError(t, err)
	require.Len(t, found, 1)
	require.Less(t, cap(found), 10)
}

// Select uses the shortest way, and gives the same whatever that is.
func TestSelectCombinesWhatIsAsked(t *testing.T) {
	byNode := func(obj interface{}) ([]string, error) { return []string{obj.(*corev1.Pod).Spec.NodeName}, nil }
	s := objectcache.NewStore(&corev1.Pod{}, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc, "node": byNode}, objectcache.StoreOptions{})
	const n = 120
	for i := range n {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: fmt.Sprint("n", i%2), Name: fmt.Sprint(i), Labels: map[string]string{"l": fmt.Sprint(i % 3)}}}
		p.Spec.NodeName = fmt.Sprint(i % 5)
		require.NoError(t, s.Add(p))
	}
	for _, namespace := range []string{"", "n0", "none"} {
		for _, node := range []string{"", "3", "none"} {
			for _, label := range []string{"", "1", "none"} {
				for _, other := range []string{"", "n0", "n1"} {
					q, want := objectcache.Query{Namespace: namespace}, 0
					if node != "" {
						q.Indexed = append(q.Indexed, objectcache.IndexedValue{Name: "node", Value: node})
					}
					if other != "" {
						q.Indexed = append(q.Indexed, objectcache.IndexedValue{Name: cache.NamespaceIndex, Value: other})
					}
					if label != "" {
						q.Labels = labels.SelectorFromSet(labels.Set{"l": label})
					}
					for i := range n {
						if (namespace == "" || namespace == fmt.Sprint("n", i%2)) && (other == "" || other == fmt.Sprint("n", i%2)) &&
							(node == "" || node == fmt.Sprint(i%5)) && (label == "" || label == fmt.Sprint(i%3)) {
							want++
						}
					}
					found, err := s.Select(q)
					require.NoError(t, err)
					require.Len(t, found, want, "%+v", q)
					q.Limit = 3
					found, err = s.Select(q)
					require.NoError(t, err)
					require.Len(t, found, min(want, 3), "%+v", q)
				}
			}
		}
	}
	_, err := s.Select(objectcache.Query{Indexed: []objectcache.IndexedValue{{Name: "none", Value: "x"}}})
	require.EqualError(t, err, "Index with name none does not exist")
	require.Zero(t, s.Decoded())
}

// A selector is asked once for each set of labels.
func TestSelectorIsAskedOncePerSet(t *testing.T) {
	s := objectcache.NewStore(&corev1.Pod{}, nil, objectcache.StoreOptions{})
	const n, sets = 300, 7
	for i := range n {
		p := podOf(fmt.Sprint("n", i%2), fmt.Sprint(i), "u", "1")
		p.Labels = map[string]string{"version": fmt.Sprint(i % sets)}
		require.NoError(t, s.Add(p))
	}
	for _, namespace := range []string{"", "n1"} {
		asked := 0
		found, err := s.Select(objectcache.Query{Namespace: namespace, Labels: countingSelector{&asked}})
		require.NoError(t, err)
		require.NotEmpty(t, found)
		require.LessOrEqual(t, asked, sets+1, "and once for no labels")
	}
}

// A selector may take long, and even write: what it was asked before says nothing of later sets of
// labels.
func TestSelectorIsAskedOfLaterLabels(t *testing.T) {
	set := func(label string) (pods []interface{}) {
		for i := range 20 {
			p := podOf("a", fmt.Sprint(i), "u", "1")
			p.Labels = map[string]string{label: "x"}
			pods = append(pods, p)
		}
		return pods
	}
	s := objectcache.NewStore(&corev1.Pod{}, nil, objectcache.StoreOptions{})
	for before, after := range map[string]string{"version": "other", "other": "version"} {
		require.NoError(t, s.Replace(set(before), "1"))
		asked := 0
		found, err := s.Select(objectcache.Query{Labels: writingSelector{countingSelector{&asked}, func() {
			require.NoError(t, s.Replace(nil, "2"))
			require.NoError(t, s.Replace(set(after), "3"))
		}}})
		require.NoError(t, err)
		if after == "version" {
			require.Len(t, found, 20)
		} else {
			require.Empty(t, found)
		}
	}
}

// Equal sets of labels are one, in whichever order a server sends them. Of repeated keys the last
// counts.
func TestLabelsAreSortedOffTheWire(t *testing.T) {
	item := func(name, labels string) string {
		return `{"metadata":{"name":"` + name + `","namespace":"n","labels":` + labels + `}}`
	}
	text := `{"kind":"List","apiVersion":"v1","metadata":{},"items":[` + item("a", `{"x":"1","version":"2"}`) + "," +
		item("b", `{"version":"2","x":"1"}`) + "," + item("c", `{"x":"0","version":"2","x":"1"}`) + "]}"
	s := objectcache.NewStore(nil, nil, objectcache.StoreOptions{})
	require.Equal(t, 3, list(t, s, wire.JSON, []byte(text), nil))
	asked := 0
	found, err := s.Select(objectcache.Query{Labels: countingSelector{&asked}})
	require.NoError(t, err)
	require.Len(t, found, 3)
	require.Equal(t, 1, asked)
	found, err = s.Select(objectcache.Query{Labels: labels.SelectorFromSet(labels.Set{"x": "1"})})
	require.NoError(t, err)
	require.Len(t, found, 3)
}

// The key of a label may be longer than what one byte counts.
func TestLabelsOfLongKeysAreFound(t *testing.T) {
	long := strings.Repeat("x", 253) + "/y"
	p := podOf("a", "0", "u", "1")
	p.Labels = map[string]string{long: "1", "z": "2"}
	s := objectcache.NewStore(&corev1.Pod{}, nil, objectcache.StoreOptions{})
	require.NoError(t, s.Add(p))
	for _, of := range []labels.Set{{long: "1"}, {"z": "2"}} {
		found, err := s.Select(objectcache.Query{Labels: labels.SelectorFromSet(of)})
		require.NoError(t, err)
		require.Len(t, found, 1)
	}
}

// remark embeds ObjectMeta alone, and so has the methods of its protobuf message, which knows
// nothing of Text.
type remark struct {
	metav1.ObjectMeta `json:"metadata"`
	Text              string `json:"text"`
}

func (*remark) GetObjectKind() schema.ObjectKind { return schema.EmptyObjectKind }

func (r *remark) DeepCopyObject() runtime.Object {
	c := &remark{Text: r.Text}
	r.ObjectMeta.DeepCopyInto(&c.ObjectMeta)
	return c
}

func TestEmbeddedMessageIsNotTheObject(t *testing.T) {
	s := objectcache.NewStore(&remark{}, nil, objectcache.StoreOptions{})
	want := &remark{ObjectMeta: metav1.ObjectMeta{Name: "r"}, Text: "all of it"}
	require.NoError(t, s.Add(want))
	got, _, err := s.GetByKey("r")
	require.NoError(t, err)
	require.Equal(t, want, got)
}
