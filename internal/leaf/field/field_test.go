package field_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/apitesting/fuzzer"
	metafuzzer "k8s.io/apimachinery/pkg/apis/meta/fuzzer"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/rvinformer/informer/internal/leaf/field"
	"github.com/rvinformer/informer/internal/leaf/fieldpath"
	"github.com/rvinformer/informer/internal/leaf/gotype"
)

// message is what the generated types have.
type message interface {
	Marshal() ([]byte, error)
	Unmarshal([]byte) error
}

// forms are an object in JSON, in protobuf, and decoded to a map.
type forms struct {
	text, message []byte
	decoded       map[string]interface{}
	of            reflect.Type
}

// formsOf encodes what is left of obj when it was in protobuf.
func formsOf(t testing.TB, obj message) forms {
	encoded, err := obj.Marshal()
	require.NoError(t, err)
	back := reflect.New(reflect.TypeOf(obj).Elem()).Interface().(message)
	require.NoError(t, back.Unmarshal(encoded))
	f := forms{message: encoded, of: reflect.TypeOf(obj)}
	f.text, err = json.Marshal(back)
	require.NoError(t, err)
	require.NoError(t, utiljson.Unmarshal(f.text, &f.decoded))
	return f
}

// check holds what is found at a path, in both forms, against the map.
func (f forms) check(t testing.TB, typed *field.Type, path string, want interface{}, there bool) {
	inJSON, why := field.InJSON(f.text, path)
	compare(t, f, "JSON", path, inJSON, why, want, there)
	inProtobuf, why := typed.InProtobuf(f.message, path)
	compare(t, f, "protobuf", path, inProtobuf, why, want, there)
	if inJSON.Kind() == field.Object {
		var object interface{}
		require.NoError(t, utiljson.Unmarshal(inJSON.Bytes(), &object), path)
		require.Equal(t, want, object, path)
	}
}

func compare(t testing.TB, f forms, form, path string, got field.Value, why field.Reason, want interface{}, there bool) {
	value := "%s %s %q: %s"
	if !there || want == nil {
		if why == field.Found || got.Kind() != field.Absent {
			t.Fatalf(value, f.of, form, path, fmt.Sprintf("found %v %q", got.Kind(), got.String()))
		}
		return
	}
	if why != field.Found {
		t.Fatalf(value, f.of, form, path, fmt.Sprintf("not found (%d), want %v", why, want))
	}
	wrong := func() {
		t.Fatalf(value, f.of, form, path, fmt.Sprintf("%v %q, want %T %v", got.Kind(), got.String(), want, want))
	}
	switch want := want.(type) {
	case string:
		if got.Kind() != field.String || got.String() != want || string(got.Bytes()) != want {
			wrong()
		}
	case int64:
		if got.Kind() != field.Int || got.Int() != want || got.Float() != float64(want) || got.String() != fmt.Sprint(want) {
			wrong()
		}
	case float64:
		if text, _ := json.Marshal(want); got.Kind() != field.Float || got.Float() != want || got.String() != string(text) {
			wrong()
		}
	case bool:
		if got.Kind() != field.Bool || got.Bool() != want {
			wrong()
		}
	case map[string]interface{}:
		if got.Kind() != field.Object {
			wrong()
		}
	case []interface{}:
		if got.Kind() != field.Array {
			wrong()
		}
	default:
		t.Fatalf("%T", want)
	}
}

// checkAll checks every path that the map has, and every path of the Go type.
func (f forms) checkAll(t testing.TB, typed *field.Type) {
	f.present(t, typed, nil, f.decoded)
	f.known(t, typed, nil, f.of, f.decoded, true)
}

func (f forms) present(t testing.TB, typed *field.Type, names []string, value interface{}) {
	if len(names) > 0 {
		f.check(t, typed, fieldpath.Join(names), value, true)
	}
	switch value := value.(type) {
	case map[string]interface{}:
		for name, v := range value {
			if isKind := len(names) == 0 && (name == "kind" || name == "apiVersion"); !isKind && canBeWritten(name) {
				f.present(t, typed, append(names[:len(names):len(names)], name), v)
			}
		}
	case []interface{}:
		f.check(t, typed, fieldpath.Join(names)+".0", nil, false)
	default:
		f.check(t, typed, fieldpath.Join(names)+".x", nil, false)
	}
}

// canBeWritten reports whether a path can have the name.
func canBeWritten(name string) bool {
	return name != "" && !strings.HasSuffix(name, `\`) && !strings.Contains(name, `\.`)
}

// known checks the paths of a Go type that the map does not have.
func (f forms) known(t testing.TB, typed *field.Type, names []string, of reflect.Type, value interface{}, there bool) {
	of = gotype.Pointed(of)
	if of.Kind() != reflect.Struct || gotype.HasOwnJSON(of) || len(names) > 6 {
		return
	}
	object, _ := value.(map[string]interface{})
	for i := range of.NumField() {
		name, inlined := gotype.JSONName(of.Field(i))
		if inlined {
			f.known(t, typed, names, of.Field(i).Type, value, there)
			continue
		}
		if name == "-" {
			continue
		}
		path := append(names[:len(names):len(names)], name)
		within, ok := object[name]
		if !ok {
			f.check(t, typed, fieldpath.Join(path), nil, false)
		}
		if ok || len(names) < 3 {
			f.known(t, typed, path, of.Field(i).Type, within, ok)
		}
	}
}

// Each object of each type of client-go has the same fields in JSON, in protobuf, and decoded.
func TestFieldsOfAllTypes(t *testing.T) {
	rounds := 30
	if testing.Short() {
		rounds = 5
	}
	filler := fuzzer.FuzzerFor(metafuzzer.Funcs, source{rand.NewPCG(1, 1)}, serializer.NewCodecFactory(scheme.Scheme))
	types := 0
	for kind, of := range scheme.Scheme.AllKnownTypes() {
		obj, generated := reflect.New(of).Interface().(message)
		if _, hasMetadata := obj.(metav1.Object); !generated || !hasMetadata || kind.Version == runtime.APIVersionInternal {
			continue
		}
		types++
		typed := field.Of(reflect.PointerTo(of))
		for range rounds {
			obj = reflect.New(of).Interface().(message)
			filler.Fill(obj)
			f := formsOf(t, obj)
			f.checkAll(t, typed)
		}
	}
	require.Greater(t, types, 50)
}

type source struct{ *rand.PCG }

func (s source) Int63() int64 { return int64(s.Uint64() >> 1) }
func (s source) Seed(int64)   {}

var podType = reflect.TypeFor[*corev1.Pod]()
