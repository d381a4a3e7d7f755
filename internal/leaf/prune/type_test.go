package prune_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// thing is a type as users write them for custom resources, with what generated types do not have.
type thing struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	*Extra
	Any    interface{}            `json:"any"`
	Free   map[string]interface{} `json:"free"`
	Items  []interface{}          `json:"items"`
	ByName map[string]part        `json:"byName"`
	ByPtr  map[string]*part       `json:"byPtr"`
	ByCode map[int]part           `json:"byCode"`
	List   []*part                `json:"list"`
	Grid   [][]part               `json:"grid"`
	Own    ownJSON                `json:"own"`
	Raw    runtime.RawExtension   `json:"raw"`
	Hidden string                 `json:"-"`
	Plain  part
	hidden part
}

// Extra is inlined, behind a pointer.
type Extra struct {
	More part `json:"more"`
}

type part struct {
	A int               `json:"a,omitempty"`
	B int               `json:"b,omitempty"`
	C map[string]string `json:"c,omitempty"`
}

// ownJSON is an object in JSON that only this test knows.
type ownJSON struct{ text string }

func (o *ownJSON) UnmarshalJSON(text []byte) error { o.text = string(text); return nil }
func (o ownJSON) MarshalJSON() ([]byte, error)     { return []byte(o.text), nil }

const thingText = `{"apiVersion":"v1","kind":"Thing","metadata":{"name":"n","labels":{"l":"m"}},"more":{"a":1,"b":2},
	"any":{"a":1,"b":[{"a":1,"b":2},3,null]},"free":{"a":{"b":1,"c":2},"d":4},"items":[{"a":1,"b":2},5,[{"a":1}],null],
	"byName":{"x":{"a":1,"b":2},"y":{"a":3,"c":{"k":"v"}}},"byPtr":{"x":{"a":1,"b":2},"z":null},"byCode":{"7":{"a":1}},
	"list":[{"a":1,"b":2},null],"grid":[[{"a":1}]],"own":{"a":1},"raw":{"a":{"b":1,"c":[{"d":1,"e":2}]}},"Plain":{"a":1,"b":2}}`

func TestTypesOfUsers(t *testing.T) {
	for _, paths := range [][]string{
		{"more.a"}, {"any"}, {"any.a"}, {"any.b"}, {"any.b.a"}, {"free.a"}, {"free.a.b"}, {"free.d.x"}, {"free.a", "free.d"}, {"items"}, {"items.a"},
		{"byName"}, {"byName.x"}, {"byName.x.a"}, {"byName.y.c.k"}, {"byName.none"}, {"byName.none.a"}, {"byPtr.x.a"}, {"byPtr.z.a"},
		{"list"}, {"list.a"}, {"raw"}, {"raw.a"}, {"raw.a.b"}, {"raw.a.c.d"}, {"raw.a.none"}, {"Plain.a"}, {"metadata.labels"}, {"own"}, {"grid"},
		{"more.b", "any.b.b", "byName.x", "list.b", "raw.a.c"},
	} {
		for _, fields := range [][2][]string{{paths, nil}, {nil, paths}} {
			f := stay(t, fields[0], fields[1])
			require.NoError(t, f.Of(reflect.TypeFor[*thing]()).Err(), "%q", fields)
			want, got := &thing{}, &thing{Hidden: "h", hidden: part{A: 1}}
			text, err := f.AppendJSON(nil, []byte(thingText))
			require.NoError(t, err)
			require.NoError(t, utiljson.Unmarshal(text, want))
			require.NoError(t, utiljson.Unmarshal([]byte(thingText), got))
			f.Apply(got)
			require.Equal(t, len(fields[0]) == 0, got.Hidden == "h", "a field that JSON does not have is not kept")
			require.Equal(t, part{A: 1}, got.hidden, "a field that cannot be set")
			got.Hidden, got.hidden = "", part{}
			wanted, err := json.Marshal(emptied(want))
			require.NoError(t, err)
			have, err := json.Marshal(emptied(got))
			require.NoError(t, err)
			require.JSONEq(t, string(wanted), string(have), "keep %q prune %q", fields[0], fields[1])
		}
	}
}

// emptied fills in what cannot be written if it is empty.
func emptied(t *thing) *thing {
	if t.Own.text == "" {
		t.Own.text = "null"
	}
	for _, m := range []*map[string]interface{}{&t.Free} {
		if len(*m) == 0 {
			*m = nil
		}
	}
	return t
}

func TestPathsThatTypesDoNotHave(t *testing.T) {
	for path, says := range map[string]string{
		"more.x":            `keep "more.x": prune_test.part has no field "x"`,
		"Extra.more":        `keep "Extra.more": prune_test.thing has no field "Extra"`,
		"Hidden":            `keep "Hidden": prune_test.thing has no field "Hidden"`,
		"plain":             `keep "plain": prune_test.thing has no field "plain"`,
		"byName.x.none":     `keep "byName.x.none": prune_test.part has no field "none"`,
		"byCode.7":          `keep "byCode.7": a map[int]prune_test.part has no fields`,
		"grid.a":            `keep "grid.a": a [][]prune_test.part has no fields`,
		"list.a.x":          `keep "list.a.x": a int has no fields`,
		"own.a":             `keep "own.a": the fields of a prune_test.ownJSON are not known`,
		"metadata.labels.x": "",
		"any.x":             "",
		"free.x.y":          "",
		"raw.x.y":           "",
	} {
		of := kept(t, path).Of(reflect.TypeFor[*thing]())
		require.Equal(t, says == "", of.Knows(), path)
		if says == "" {
			require.NoError(t, of.Err(), path)
		} else {
			require.EqualError(t, of.Err(), says)
		}
		of = pruned(t, path).Of(reflect.TypeFor[*thing]())
		require.NoError(t, of.Err(), "there is nothing to drop")
		require.Equal(t, says == "", of.Knows(), path)
	}
	for path, says := range map[string]string{
		"more.x":        `keep "more.x": prune_test.part has no field "x"`,
		"byName.x.none": `keep "byName.x.none": prune_test.part has no field "none"`,
		"list.a.x":      `keep "list.a.x": a int has no fields`,
		"more.a":        "",
		"any.x":         "",
	} {
		whole, _, _ := strings.Cut(path, ".")
		for _, paths := range [][]string{{whole, path}, {path, whole}} {
			of := kept(t, paths...).Of(reflect.TypeFor[*thing]())
			require.True(t, of.Knows(), path)
			if says == "" {
				require.NoError(t, of.Err(), path)
			} else {
				require.EqualError(t, of.Err(), says, "beside %q", whole)
			}
		}
	}
	require.False(t, pruned(t, "list.a").Of(reflect.TypeFor[*thing]()).Knows(), "a path of Prune does not lead into arrays")
	require.NoError(t, kept(t, "any.thing").Of(reflect.TypeFor[*unstructured.Unstructured]()).Err())
}

// Some types have no table for what paths lead to. Their objects have to come in JSON.
func TestTypesWithoutATable(t *testing.T) {
	type wrapper struct{ corev1.Pod }
	type numbered struct {
		metav1.ObjectMeta `json:"metadata" protobuf:"bytes,1,opt,name=metadata"`
		Large             string                     `json:"large" protobuf:"bytes,4097,opt,name=large"`
		Number            string                     `json:"number" protobuf:"bytes,4096,opt,name=number"`
		None              string                     `json:"none"`
		Any               interface{}                `json:"any" protobuf:"bytes,3,opt,name=any"`
		Extra             map[string]numberedWrapper `json:"extra" protobuf:"bytes,4,opt,name=extra"`
		Wrapped           numberedWrapper            `json:"wrapped" protobuf:"bytes,5,opt,name=wrapped"`
	}
	for _, c := range []struct {
		of   reflect.Type
		keep string
		want bool
	}{
		{podType, "spec.containers.image", true},
		{podType, "metadata.creationTimestamp", true},
		{reflect.TypeFor[*appsv1.ControllerRevision](), "data", true},
		{reflect.TypeFor[*appsv1.ControllerRevision](), "data.spec", false},
		{reflect.TypeFor[*wrapper](), "spec", false},
		{reflect.TypeFor[*numbered](), "number", true},
		{reflect.TypeFor[*numbered](), "large", false},
		{reflect.TypeFor[*numbered](), "none", false},
		{reflect.TypeFor[*numbered](), "any", true},
		{reflect.TypeFor[*numbered](), "any.x", false},
		{reflect.TypeFor[*numbered](), "extra.x", true},
		{reflect.TypeFor[*numbered](), "extra.x.a", false},
		{reflect.TypeFor[*numbered](), "wrapped", true},
		{reflect.TypeFor[*numbered](), "wrapped.a", false},
		{reflect.TypeFor[*unstructured.Unstructured](), "spec", false},
	} {
		require.Equal(t, c.want, kept(t, c.keep).Of(c.of).InProtobuf(), "%v %s", c.of, c.keep)
	}
	require.False(t, pruned(t, "metadata.creationTimestamp.x").Of(podType).InProtobuf(), "JSON might have it")
	require.True(t, pruned(t, "metadata.labels.x.y").Of(podType).InProtobuf())
	require.True(t, pruned(t, "none").Of(reflect.TypeFor[*numbered]()).InProtobuf(), "it is not in the message")
}

// numberedWrapper is a message itself, as authentication's ExtraValue is.
type numberedWrapper []part

func (*numberedWrapper) Unmarshal([]byte) error { return nil }
