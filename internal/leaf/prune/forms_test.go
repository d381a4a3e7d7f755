package prune_test

import (
	"encoding/json"
	"maps"
	"math/rand"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	eventsv1 "k8s.io/api/events/v1"
	networkingv1 "k8s.io/api/networking/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/apitesting/fuzzer"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metafuzzer "k8s.io/apimachinery/pkg/apis/meta/fuzzer"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/client-go/kubernetes/scheme"
	"pgregory.net/rapid"

	"github.com/rvinformer/informer/internal/leaf/prune"
)

// generated are types with every kind of field.
var generated = []reflect.Type{
	reflect.TypeFor[corev1.Pod](), reflect.TypeFor[corev1.Node](), reflect.TypeFor[corev1.Secret](), reflect.TypeFor[corev1.Service](),
	reflect.TypeFor[corev1.PersistentVolume](), reflect.TypeFor[appsv1.Deployment](), reflect.TypeFor[appsv1.StatefulSet](), reflect.TypeFor[appsv1.ControllerRevision](),
	reflect.TypeFor[autoscalingv2.HorizontalPodAutoscaler](), reflect.TypeFor[discoveryv1.EndpointSlice](), reflect.TypeFor[eventsv1.Event](),
	reflect.TypeFor[networkingv1.Ingress](), reflect.TypeFor[networkingv1.NetworkPolicy](), reflect.TypeFor[resourcev1.ResourceClaim](), reflect.TypeFor[metav1.PartialObjectMetadata](),
}

// An object that lost its fields as JSON, as protobuf, or decoded, is the same.
func TestFormsAgree(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		goType := rapid.SampledFrom(generated).Draw(rt, "type")
		text := randomObject(rt, rapid.Int64().Draw(rt, "object"), goType)
		var whole map[string]interface{}
		require.NoError(rt, utiljson.Unmarshal(text, &whole))
		path := rapid.Custom(func(rt *rapid.T) string { return randomPath(rt, whole) })
		keep := rapid.SliceOfN(path, 0, 5).Draw(rt, "keep")
		drop := slices.DeleteFunc(rapid.SliceOfN(path, 0, 5).Draw(rt, "prune"), func(p string) bool {
			_, err := prune.Parse(nil, []string{p})
			return err != nil
		})
		fields := stay(rt, keep, drop)
		decode := func(text []byte) (interface{}, message) {
			m := reflect.New(goType).Interface().(message)
			require.NoError(rt, utiljson.Unmarshal(text, m), "%s", text)
			return m, m
		}

		left, err := fields.AppendJSON(nil, text)
		require.NoError(rt, err)
		want, _ := decode(left)

		typed, encoded := decode(text)
		protobuf := marshalled(rt, encoded)
		fields.Apply(typed)
		requireSame(rt, want, typed, left, "decoded, %q without %q", keep, drop)

		fields.Apply(&unstructured.Unstructured{Object: whole})
		applied, err := json.Marshal(whole)
		require.NoError(rt, err)
		fromMap, _ := decode(applied)
		requireSame(rt, want, fromMap, left, "unstructured, %q without %q", keep, drop)

		if of := fields.Of(reflect.PointerTo(goType)); of.InProtobuf() {
			message := reflect.New(goType).Interface().(message)
			less, err := of.AppendProtobuf(nil, protobuf)
			require.NoError(rt, err)
			require.NoError(rt, message.Unmarshal(less))
			reflect.ValueOf(message).Elem().FieldByName("TypeMeta").Set(reflect.ValueOf(want).Elem().FieldByName("TypeMeta"))
			requireSame(rt, want, message, left, "protobuf, %q without %q", keep, drop)
		}
	})
}

func requireSame(t *rapid.T, want, got interface{}, text []byte, format string, args ...interface{}) {
	t.Helper()
	if !apiequality.Semantic.DeepEqual(want, got) {
		require.Equal(t, want, got, append([]interface{}{format + "\n%s"}, append(args, text)...)...)
		t.Fatalf(format+": not the same", args...)
	}
}

// randomObject is the JSON of an object of a type, with its keys sorted.
func randomObject(t *rapid.T, seed int64, goType reflect.Type) []byte {
	fill := fuzzer.FuzzerFor(metafuzzer.Funcs, rand.NewSource(seed), serializer.NewCodecFactory(scheme.Scheme))
	obj := reflect.New(goType).Interface()
	fill.Fill(obj)
	if revision, ok := obj.(*appsv1.ControllerRevision); ok {
		revision.Data = runtime.RawExtension{Raw: []byte(`{"kind":"K","spec":{"a":[{"b":1,"c":2},3],"d":null}}`)}
	}
	text, err := json.Marshal(obj)
	require.NoError(t, err)
	var sorted map[string]interface{}
	require.NoError(t, utiljson.Unmarshal(text, &sorted))
	text, err = json.Marshal(sorted)
	require.NoError(t, err)
	return text
}

// randomPath is one that value has, or nearly has.
func randomPath(rt *rapid.T, value interface{}) string {
	var names []string
	for {
		if array, ok := value.([]interface{}); ok && len(array) > 0 {
			value = rapid.SampledFrom(array).Draw(rt, "element")
			continue
		}
		m, _ := value.(map[string]interface{})
		if chance := rapid.IntRange(0, 20).Draw(rt, "chance"); len(names) > 0 && (len(m) == 0 && chance < 19 || chance < 4) {
			return strings.Join(names, ".")
		} else if len(m) == 0 || chance == 20 {
			return strings.Join(append(names, "other"), ".")
		}
		all := slices.DeleteFunc(slices.Sorted(maps.Keys(m)), func(name string) bool { return name == "" || strings.HasSuffix(name, `\`) })
		if len(all) == 0 {
			return strings.Join(append(names, "other"), ".")
		}
		name := rapid.SampledFrom(all).Draw(rt, "name")
		value = m[name]
		names = append(names, strings.ReplaceAll(name, ".", `\.`))
	}
}
