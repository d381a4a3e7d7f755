package typedjson_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/apitesting/fuzzer"
	"k8s.io/apimachinery/pkg/api/resource"
	metafuzzer "k8s.io/apimachinery/pkg/apis/meta/fuzzer"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/rvinformer/informer/internal/leaf/typedjson"
	"github.com/rvinformer/informer/internal/leaf/typedjson/trial"
)

// builtIn are all types of client-go's scheme, in the same order each time.
func builtIn() (types []reflect.Type) {
	for _, of := range scheme.Scheme.AllKnownTypes() {
		types = append(types, of)
	}
	name := func(t reflect.Type) string { return t.PkgPath() + "." + t.Name() }
	slices.SortFunc(types, func(a, b reflect.Type) int { return strings.Compare(name(a), name(b)) })
	return slices.Compact(types)
}

func filler(seed int64) func(obj any) {
	f := fuzzer.FuzzerFor(metafuzzer.Funcs, rand.NewSource(seed), scheme.Codecs)
	return func(obj any) { f.Fill(obj) }
}

func TestDecodesBuiltInTypesAsApimachinery(t *testing.T) {
	trial.Types(t, builtIn(), filler(1), 1, 3)
}

func TestBuiltInTypesAreNotLeftToApimachinery(t *testing.T) {
	fill := filler(2)
	for _, of := range builtIn() {
		if of == reflect.TypeFor[metav1.InternalEvent]() { // which has an interface, and no server sends it
			require.False(t, typedjson.DecodesAlike(of))
			continue
		}
		require.True(t, typedjson.DecodesAlike(of), "%v", of)
		obj := reflect.New(of).Interface()
		fill(obj)
		text, err := json.Marshal(obj)
		require.NoError(t, err)
		require.NoError(t, typedjson.Refused(text, reflect.New(of).Interface()), "%v of %s", of, text)
	}
}

// inWords decodes itself from a string.
type inWords struct{ word string }

func (w *inWords) UnmarshalText(text []byte) error {
	if w.word = "<" + string(text) + ">"; w.word == "<1>" {
		return errors.New("no word")
	}
	return nil
}

// inJSON decodes itself.
type inJSON struct{ text string }

func (j *inJSON) UnmarshalJSON(text []byte) error { j.text = string(text); return nil }

// newer decodes itself in a way that apimachinery does not know.
type newer struct{ A int }

func (n *newer) UnmarshalJSONFrom(from *jsontext.Decoder) error { n.A = 7; return from.SkipValue() }

type length int

func (l *length) UnmarshalText(text []byte) error { *l = length(len(text)); return nil }

// inBoth decodes itself from JSON, and from a string.
type inBoth string

func (b *inBoth) UnmarshalText(text []byte) error { *b = inBoth("text " + string(text)); return nil }
func (b *inBoth) UnmarshalJSON(text []byte) error { *b = inBoth("json " + string(text)); return nil }

// inJSONOnly decodes itself, and is a string.
type inJSONOnly string

func (j *inJSONOnly) UnmarshalJSON(text []byte) error { *j = inJSONOnly(text); return nil }

// inCapitals decodes itself from a string, which it is.
type inCapitals string

func (c *inCapitals) UnmarshalText(text []byte) error {
	*c = inCapitals(strings.ToUpper(string(text)))
	return nil
}

// outOnly and outTextOnly encode themselves, and do not decode themselves.
type outOnly int

func (outOnly) MarshalJSON() ([]byte, error) { return []byte("1"), nil }

type outTextOnly bool

func (outTextOnly) MarshalText() ([]byte, error) { return []byte("yes"), nil }

type hidden struct{ A, B string }

type Shown struct {
	A string
	C int `json:"c"`
}

type letter byte

type empty interface{}

// fields have what fields of Go types may have. Each is tried in a struct of its own.
type fields struct {
	metav1.TypeMeta `json:",inline"`
	hidden
	*Shown
	Anything      any
	Named         empty          `json:"named"`
	Anythings     map[string]any `json:"anythings"`
	List          []any          `json:"list"`
	Inlined       map[string]int `json:",inline"`
	InlinedStruct Shown          `json:",inline"`
	QuotedString  string         `json:"quotedString,string"`
	QuotedInt     int            `json:"quotedInt,string"`
	QuotedPointer *int64         `json:"quotedPointer,string"`
	QuotedBool    bool           `json:"quotedBool,string"`
	QuotedFloat   float64        `json:"quotedFloat,string"`
	//lint:ignore SA5008 The tag is odd on purpose.
	QuotedSlice []int `json:"quotedSlice,string"`
	//lint:ignore SA5008 The tag is odd on purpose.
	QuotedWord inWords `json:"quotedWord,string"`
	//lint:ignore SA5008 The tag is odd on purpose.
	QuotedOwn      inJSON        `json:"quotedOwn,string"`
	QuotedLength   length        `json:"quotedLength,string"`
	QuotedLengths  *length       `json:"quotedLengths,string"`
	QuotedCapitals inCapitals    `json:"quotedCapitals,string"`
	QuotedBoth     inBoth        `json:"quotedBoth,string"`
	QuotedOnly     inJSONOnly    `json:"quotedOnly,string"`
	QuotedOut      outOnly       `json:"quotedOut,string"`
	QuotedOutText  outTextOnly   `json:"quotedOutText,string"`
	QuotedDuration time.Duration `json:"quotedDuration,string"`
	//lint:ignore SA5008 The tag is odd on purpose.
	QuotedPointers **int `json:"quotedPointers,string"`
	//lint:ignore SA5008 The tag is odd on purpose.
	QuotedMap map[string]int `json:"quotedMap,string"`
	//lint:ignore SA5008 The tag is odd on purpose.
	QuotedStruct   Shown                `json:"quotedStruct,string"`
	OfBoth         map[inBoth]string    `json:"ofBoth"`
	OfOwn          map[inJSONOnly]int   `json:"ofOwn"`
	OfCapitals     map[inCapitals]int   `json:"ofCapitals"`
	OfFloats       map[float64]string   `json:"ofFloats"`
	Bytes          []byte               `json:"bytes"`
	BytesOf        map[string][]byte    `json:"bytesOf"`
	Letters        []letter             `json:"letters"`
	Array          [2]int               `json:"array"`
	ByteArray      [4]byte              `json:"byteArray"`
	OfInts         map[int]string       `json:"ofInts"`
	OfBytes        map[uint8]bool       `json:"ofBytes"`
	OfLengths      map[length]string    `json:"ofLengths"`
	OfBools        map[bool]string      `json:"ofBools"`
	OfWords        map[inWords]string   `json:"ofWords"`
	Word           inWords              `json:"word"`
	WordPointer    *inWords             `json:"wordPointer"`
	Words          map[string]inWords   `json:"words"`
	Own            inJSON               `json:"own"`
	OwnPointer     *inJSON              `json:"ownPointer"`
	Owns           []inJSON             `json:"owns"`
	OwnPointers    map[string]*inJSON   `json:"ownPointers"`
	Newer          newer                `json:"newer"`
	Duration       time.Duration        `json:"duration"`
	Time           time.Time            `json:"time"`
	Raw            json.RawMessage      `json:"raw"`
	RawPointer     *json.RawMessage     `json:"rawPointer"`
	Number         json.Number          `json:"number"`
	Pointers       **int                `json:"pointers"`
	Int8           int8                 `json:"int8"`
	Uint16         uint16               `json:"uint16"`
	Float32        float32              `json:"float32"`
	Recursive      *recursive           `json:"recursive"`
	Strings        []string             `json:"strings"`
	StringPointers []*string            `json:"stringPointers"`
	StringsOf      map[string][]string  `json:"stringsOf"`
	Structs        map[string]Shown     `json:"structs"`
	Extension      runtime.RawExtension `json:"extension"`
	Port           *intstr.IntOrString  `json:"port"`
	Quantity       resource.Quantity    `json:"quantity"`
	MicroTime      *metav1.MicroTime    `json:"microTime"`
	Interval       metav1.Duration      `json:"interval"`
	Managed        *metav1.FieldsV1     `json:"managed"`
	Skipped        int                  `json:"-"`
	//lint:ignore SA5008 The tag is odd on purpose.
	Dash     int        `json:"-,"`
	Unnamed  int        `json:",omitempty"`
	Function func()     `json:"function"`
	Channel  chan int   `json:"channel"`
	Complex  complex128 `json:"complex"`
	Error    error      `json:"error"`
	Embedded Shown      `json:",embed"`
	AnyCase  int        `json:"anyCase,case:ignore"`
	Hex      []byte     `json:"hex,format:hex"`
	OmitZero int        `json:"omitZero,omitzero"`
}

type recursive struct {
	Self *recursive  `json:"self"`
	All  []recursive `json:"all"`
	A    string
}

func TestDecodesEachKindOfFieldAsApimachinery(t *testing.T) {
	values := trial.Values()
	all := reflect.TypeFor[fields]()
	for i := range all.NumField() {
		field := all.Field(i)
		of := field.Type
		if !field.Anonymous {
			field.Name = "Field" // a name for those without one
			of = reflect.StructOf([]reflect.StructField{field})
		}
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if name == "" {
			name = "Field"
		}
		for n, value := range values {
			for _, other := range []string{name, strings.ToUpper(name), strings.ToLower(name), "A", "a", "c", "kind", "-", "Extra"} {
				trial.RequireSame(t, of, fmt.Appendf(nil, `{"%s":%s}`, other, value))
			}
			for k := n % 7; k < len(values); k += 7 { // some of them
				trial.RequireSame(t, of, fmt.Appendf(nil, `{"%s":%s,"%s":%s}`, name, value, name, values[k]))
			}
		}
	}
}

// Struct types that are embedded are not those of reflect.StructOf, which cannot have their methods.
func TestDecodesEmbeddedStructsAsApimachinery(t *testing.T) {
	type clash struct {
		Shown
		hidden
	}
	type deep struct {
		*Shown
		clash
		B int `json:"c"`
	}
	type inline struct {
		metav1.TypeMeta   `json:",inline"`
		metav1.ObjectMeta `json:"metadata,omitempty"`
		*deep             `json:",inline"`
	}
	for _, of := range []reflect.Type{reflect.TypeFor[clash](), reflect.TypeFor[deep](), reflect.TypeFor[inline](), reflect.TypeFor[Shown](), reflect.TypeFor[fields](), reflect.TypeFor[*Shown](), reflect.TypeFor[map[string]Shown]()} {
		for _, value := range append(trial.Values(), "", " ") {
			trial.RequireSame(t, of, []byte(value))
			for _, name := range []string{"A", "B", "C", "a", "c", "Shown", "hidden", "clash", "deep", "metadata", "kind", "TypeMeta", "apiVersion"} {
				trial.RequireSame(t, of, fmt.Appendf(nil, `{"%s":%s}`, name, value))
			}
		}
	}
}

func TestRefusesTextsAsApimachinery(t *testing.T) {
	pod := reflect.TypeFor[corev1.Pod]()
	nested := func(name, open, closing string, n int) string {
		return `{"` + name + `":` + strings.Repeat(open, n) + "1" + strings.Repeat(closing, n) + `}`
	}
	texts := []string{"{}x", "{} {}", "{}\x00", "{},", " {} ", "\ufeff{}", "null", "[]", "", `{"metadata":{"name":"a"}`, `{"metadata":{"name":"a"}}}`, `{"metadata":{"name":"a",}}`, "{'kind':1}", "//\n{}", "{\f}"}
	for _, n := range []int{9998, 9999, 10000, 20000} {
		texts = append(texts, nested("unknown", "[", "]", n), nested("unknown", `{"a":`, "}", n), nested("spec", `{"a":`, "}", n))
	}
	for _, text := range texts {
		trial.RequireSame(t, pod, []byte(text))
	}
}

func TestDecodesIntoFilledValueAsApimachinery(t *testing.T) {
	fill, r := filler(3), rand.New(rand.NewSource(3))
	for range 30 {
		var a, b corev1.Pod
		fill(&a)
		fill(&b)
		first, err := json.Marshal(a)
		require.NoError(t, err)
		second, err := json.Marshal(b)
		require.NoError(t, err)
		require.True(t, trial.RequireSame(t, reflect.TypeFor[corev1.Pod](), first, second, []byte("{}")))
		trial.RequireSame(t, reflect.TypeFor[corev1.Pod](), first, trial.Mutated(r, second, 100))
	}
}

func TestDecodesOnlyIntoPointers(t *testing.T) {
	for _, into := range []any{nil, corev1.Pod{}, (*corev1.Pod)(nil), 7} {
		require.Error(t, typedjson.Decode([]byte("{}"), into))
	}
}

func FuzzDecode(f *testing.F) {
	types, fill := builtIn(), filler(4)
	for i := 0; i < len(types); i += 7 {
		obj := reflect.New(types[i]).Interface()
		fill(obj)
		text, err := json.Marshal(obj)
		require.NoError(f, err)
		f.Add(text, uint16(i))
	}
	odd := reflect.TypeFor[fields]()
	for i := range odd.NumField() {
		if field := odd.Field(i); !field.Anonymous {
			field.Name = "Field"
			types = append(types, reflect.StructOf([]reflect.StructField{field}))
			name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
			f.Add(fmt.Appendf(nil, `{"%s":{"null":"1"}}`, name), uint16(len(types)-1))
		}
	}
	f.Fuzz(func(t *testing.T, text []byte, n uint16) {
		trial.RequireSame(t, types[int(n)%len(types)], text)
	})
}
