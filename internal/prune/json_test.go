package prune_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/rvinformer/informer/internal/prune"
)

func TestAppendJSON(t *testing.T) {
	for _, c := range []struct{ object, paths, want string }{
		{`{"a":1}`, "b", `{"a":1}`},
		{`{"a":1}`, "a", `{}`},
		{`{"a":1,"b":2,"c":3}`, "a", `{"b":2,"c":3}`},
		{`{"a":1,"b":2,"c":3}`, "b", `{"a":1,"c":3}`},
		{`{"a":1,"b":2,"c":3}`, "c", `{"a":1,"b":2}`},
		{`{"a":1,"b":2,"c":3}`, "a b", `{"c":3}`},
		{`{"a":1,"b":2,"c":3}`, "b c", `{"a":1}`},
		{`{"a":1,"b":2,"c":3}`, "c a", `{"b":2}`},
		{`{"a":1,"b":2,"c":3}`, "c b a", `{}`},
		{`{"a":{"b":1}}`, "a.b", `{"a":{}}`},
		{`{"a":{"b":1,"c":2}}`, "a.b a", `{}`},
		{`{"a":{"b":{"c":1}},"d":{"e":2,"f":3}}`, "a.b.c d.f a.x", `{"a":{"b":{}},"d":{"e":2}}`},
		{`{}`, "a", `{}`},
		{` { } `, "a", ` { } `},
		// What is around a member goes with it, all else stays.
		{"{\n  \"a\": 1,\n  \"b\": 2\n}\n", "a", "{\n  \"b\": 2\n}\n"},
		{"{\n  \"a\": 1,\n  \"b\": 2\n}\n", "b", "{\n  \"a\": 1}\n"},
		{"{\n  \"a\": 1\n}\n", "a", "{}\n"},
		{"{ \"a\" :\t{ \"b\" : 1 , \"c\" : 2 } }", "a.c", "{ \"a\" :\t{ \"b\" : 1 } }"},
		// Members that come twice.
		{`{"a":1,"a":2,"b":3,"a":4}`, "a", `{"b":3}`},
		{`{"a":{"b":1},"a":{"b":2,"c":3}}`, "a.b", `{"a":{},"a":{"c":3}}`},
		{`{"a":{"b":1,"b":2},"a":5}`, "a.b", `{"a":{},"a":5}`},
		// Paths through what is no object.
		{`{"a":[{"b":1}],"c":"x","d":null,"e":1,"f":true}`, "a.b c.b d.b e.b f.b", `{"a":[{"b":1}],"c":"x","d":null,"e":1,"f":true}`},
		{`{"a":{"b":null},"c":null}`, "a.b c", `{"a":{}}`},
		// Keys mean what they are unescaped, and case counts.
		{`{"\u0061":1,"A":2,"b":3}`, "a", `{"A":2,"b":3}`},
		{`{"a\"b":1,"c\\":2,"d":3}`, `a"b c\`, `{"d":3}`},
		{`{"é":1,"\u00e9":2,"d":3}`, `é`, `{"d":3}`},
		{"{\"\xff\":1,\"d\":3}", "\ufffd", `{"d":3}`},
		{"{\"\xff\":1,\"d\":3}", "\xff", "{\"\xff\":1,\"d\":3}"},
		{`{"a.b/c":1,"a":{"b/c":2}}`, `a\.b/c`, `{"a":{"b/c":2}}`},
		// Brackets and quotes within what is passed over.
		{`{"a":"}\"]\\","b":["}",{"c":"\\\"{"}],"d":1}`, "d", `{"a":"}\"]\\","b":["}",{"c":"\\\"{"}]}`},
		{`{"a":"}\"]\\","b":["}",{"c":"\\\"{"}],"d":1}`, "a b", `{"d":1}`},
		{`{"a":-1.5e+3,"b":1E5,"c":false}`, "b", `{"a":-1.5e+3,"c":false}`},
	} {
		got, err := parsed(t, strings.Fields(c.paths)...).AppendJSON([]byte("before"), []byte(c.object))
		require.NoError(t, err, c.object)
		require.Equal(t, "before"+c.want, string(got), "%s without %s", c.object, c.paths)
		checkJSON(t, []byte(c.object), parsed(t, strings.Fields(c.paths)...))
	}
}

// Quotes at every distance, behind escapes of every length.
func TestAppendJSONFindsTheEndOfStrings(t *testing.T) {
	paths := parsed(t, "b", "c.d")
	for n := range 70 {
		for slashes := range 6 {
			quoted, err := json.Marshal(strings.Repeat("x", n) + strings.Repeat(`\`, slashes/2) + strings.Repeat(`"`, slashes%2) + strings.Repeat("!", n%19) + strings.Repeat(`\`, slashes))
			require.NoError(t, err)
			text := fmt.Sprintf(`{"a":%s,"b":[%[1]s,{%[1]s:%[1]s}],"c":{%[1]s:{},"d":%[1]s}}`, quoted)
			got, err := paths.AppendJSON(nil, []byte(text))
			require.NoError(t, err)
			require.Equal(t, fmt.Sprintf(`{"a":%s,"c":{%[1]s:{}}}`, quoted), string(got))
		}
	}
}

func TestAppendJSONWithoutPaths(t *testing.T) {
	got, err := prune.Paths(nil).AppendJSON([]byte("before"), []byte("{"))
	require.NoError(t, err)
	require.Equal(t, "before{", string(got))
}

func TestAppendJSONRefuses(t *testing.T) {
	for text, want := range map[string]string{
		"":                 `byte 0: cut: an object expected`,
		"  ":               `byte 2: cut: an object expected`,
		"[]":               `byte 0: an object expected`,
		`null`:             `byte 0: an object expected`,
		`{`:                `byte 1: cut: a key expected`,
		`{a:1}`:            `byte 1: a key expected`,
		`{"a`:              `byte 3: cut: the end of a value expected`,
		`{"a\"`:            `byte 5: cut: the end of a value expected`,
		`{"\x":1}`:         `byte 1: an invalid key`,
		`{"a"}`:            `byte 4: ':' expected`,
		`{"a" 1}`:          `byte 5: ':' expected`,
		`{"a":`:            `byte 5: cut: a value expected`,
		`{"a":}`:           `byte 5: unexpected character in a number or value`,
		`{"a":,}`:          `byte 5: unexpected character in a number or value`,
		`{"a":"b}`:         `byte 8: cut: the end of a value expected`,
		`{"a":[{}`:         `byte 8: cut: the end of a value expected`,
		`{"a":["}`:         `byte 8: cut: the end of a value expected`,
		`{"a":1`:           `byte 6: cut: the end of a value expected`,
		`{"a":true`:        `byte 9: cut: ',' or '}' expected`,
		`{"b":{"d":[1,]}}`: `byte 13: unexpected character in a number or value`,
		`{"d":01}`:         `byte 6: ',' or '}' expected`,
		`{"a":1]`:          `byte 6: ',' or '}' expected`,
		`{"a":1 2}`:        `byte 7: ',' or '}' expected`,
		`{"a":1,}`:         `byte 7: a key expected`,
		`{"a":1,,"b":2}`:   `byte 7: a key expected`,
		`{,"a":1}`:         `byte 1: a key expected`,
		`{"b":{"c":1,}}`:   `byte 12: a key expected`,
		`{"a":1}}`:         `byte 7: more behind the object`,
		`{"a":1}` + "\x00": `byte 7: more behind the object`,
		"{\"a\":\x001}":    `byte 5: unexpected character in a number or value`,
	} {
		got, err := parsed(t, "a", "b.c").AppendJSON([]byte("before"), []byte(text))
		require.EqualError(t, err, "prune: malformed object at "+want, text)
		require.Equal(t, "before", string(got))
	}
}

func TestAppendJSONAllocatesNothing(t *testing.T) {
	text, err := json.Marshal(bigPod(1))
	require.NoError(t, err)
	paths := parsed(t, managedFields, lastApplied, "spec.volumes")
	dst := make([]byte, 0, len(text))
	require.Zero(t, testing.AllocsPerRun(10, func() { dst, err = paths.AppendJSON(dst[:0], text) }))
	require.NoError(t, err)
}

// checkJSON holds AppendJSON against decoding and RemoveNestedField.
func checkJSON(t *testing.T, object []byte, paths prune.Paths) {
	before := string(object)
	text, err := paths.AppendJSON(nil, object)
	require.Equal(t, before, string(object))
	var want, got map[string]interface{}
	if utiljson.Unmarshal(object, &want) != nil || want == nil {
		return
	}
	require.NoError(t, err, "%s", object)
	require.NoError(t, utiljson.Unmarshal(text, &got), "%s without %q became %s", object, paths, text)
	for _, fields := range paths {
		unstructured.RemoveNestedField(want, fields...)
	}
	require.Equal(t, want, got, "%s without %q became %s", object, paths, text)
}

// randomJSON writes objects of few names, so that they come twice and paths
// meet them: with white space, escapes and brackets in strings.
type randomJSON struct {
	*rand.Rand
	strings.Builder
}

var jsonNames = []string{"a", "b", "c", "A", `\`, `"`, "é", "a.b", "a longer name, with a comma"}

func (r *randomJSON) one(of ...string) string { return of[r.IntN(len(of))] }

func (r *randomJSON) token(token string) {
	r.WriteString(r.one("", "", "", " ", "\n\t", "\r "))
	r.WriteString(token)
	r.WriteString(r.one("", "", "", " ", "\n"))
}

func (r *randomJSON) name() string {
	name := jsonNames[r.IntN(len(jsonNames))]
	if r.IntN(4) > 0 {
		quoted, _ := json.Marshal(name)
		return string(quoted)
	}
	quoted := `"`
	for _, c := range name {
		quoted += fmt.Sprintf(`\u%04x`, c)
	}
	return quoted + `"`
}

func (r *randomJSON) value(depth int) {
	switch kind := r.IntN(6); {
	case depth > 4 || kind == 0:
		r.token(r.one("1", "-0.5e-3", "true", "false", "null", `""`, `"}"`, `"{\"["`, `"\\"`, `"\\\",\""`))
	case kind == 1:
		r.token("[")
		for i := range r.IntN(3) {
			if i > 0 {
				r.token(",")
			}
			r.value(depth + 1)
		}
		r.token("]")
	default:
		r.object(depth)
	}
}

func (r *randomJSON) object(depth int) {
	r.token("{")
	for i := range r.IntN(6) {
		if i > 0 {
			r.token(",")
		}
		r.token(r.name())
		r.token(":")
		r.value(depth + 1)
	}
	r.token("}")
}

func (r *randomJSON) paths() (paths []string) {
	for range 1 + r.IntN(8) {
		var fields []string
		for range 1 + r.IntN(4) {
			fields = append(fields, strings.ReplaceAll(jsonNames[r.IntN(len(jsonNames))], ".", `\.`))
		}
		paths = append(paths, strings.Join(fields, "."))
	}
	return paths
}

func TestAppendJSONOfRandomObjects(t *testing.T) {
	for seed := range seeds(5000) {
		r := &randomJSON{Rand: rand.New(rand.NewPCG(seed, 2))}
		r.object(0)
		checkJSON(t, []byte(r.String()), parsed(t, r.paths()...))
	}
}

// seeds is how many random objects a test makes.
func seeds(n uint64) uint64 {
	if raced {
		return n / 20
	}
	return n
}

// Whatever is cut out of an object, or put into it, is no panic.
func TestAppendJSONOfBrokenObjects(t *testing.T) {
	for seed := range seeds(2000) {
		r := &randomJSON{Rand: rand.New(rand.NewPCG(seed, 3))}
		r.object(0)
		text, paths := []byte(strings.TrimSpace(r.String())), parsed(t, r.paths()...)
		for range 10 {
			at := r.IntN(len(text))
			_, err := paths.AppendJSON(nil, text[:at:at])
			require.Error(t, err)
			put := r.one(`"`, `\`, "{", "}", "[", "]", ",", ":", "\x00", "\xff")
			checkJSON(t, slices.Concat(text[:at], []byte(put), text[at+r.IntN(2):]), paths)
		}
	}
}

func FuzzAppendJSON(f *testing.F) {
	whole, err := json.Marshal(bigPod(1))
	require.NoError(f, err)
	f.Add(whole, managedFields+"\n"+lastApplied+"\nspec.containers.image\nstatus")
	for seed := range uint64(20) {
		r := &randomJSON{Rand: rand.New(rand.NewPCG(seed, 4))}
		r.object(0)
		f.Add([]byte(r.String()), strings.Join(r.paths(), "\n"))
	}
	f.Fuzz(func(t *testing.T, object []byte, paths string) {
		p, err := prune.Parse(strings.Split(paths, "\n"))
		if err == nil && len(object) < 1<<14 {
			checkJSON(t, object, p)
		}
	})
}
