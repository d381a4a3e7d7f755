package prune_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/rvinformer/informer/internal/leaf/prune"
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
		got, err := pruned(t, strings.Fields(c.paths)...).AppendJSON([]byte("before"), []byte(c.object))
		require.NoError(t, err, c.object)
		require.Equal(t, "before"+c.want, string(got), "%s without %s", c.object, c.paths)
		checkJSON(t, []byte(c.object), nil, strings.Fields(c.paths))
	}
}

func TestAppendJSONKeeps(t *testing.T) {
	for _, c := range []struct{ object, keep, drop, want string }{
		{`{"a":1,"b":2,"c":3}`, "b", "", `{"b":2}`},
		{`{"a":1,"b":2,"c":3}`, "c a", "", `{"a":1,"c":3}`},
		{`{"a":{"b":1,"c":2},"d":3}`, "a.b", "", `{"a":{"b":1}}`},
		{`{"a":{"b":1,"c":2},"d":3}`, "a.b a", "", `{"a":{"b":1,"c":2}}`},
		{`{"a":{"b":1,"c":2},"d":3}`, "a a.b", "", `{"a":{"b":1,"c":2}}`},
		{`{"a":{"c":2},"d":3}`, "a.b", "", `{"a":{}}`},
		{`{"a":{"b":{"c":{"d":1,"e":2},"f":3},"g":4}}`, "a.b.c.d", "", `{"a":{"b":{"c":{"d":1}}}}`},
		// Always, what identifies an object; and naming it changes nothing.
		{`{"apiVersion":"v1","kind":"K","metadata":{"a":1,"name":"n","namespace":"s","uid":"u","resourceVersion":"1","labels":{}},"spec":{}}`, "status metadata.name kind", "",
			`{"apiVersion":"v1","kind":"K","metadata":{"name":"n","namespace":"s","uid":"u","resourceVersion":"1"}}`},
		{`{"metadata":{"a":1,"name":"n"},"kind":"K","b":2}`, "metadata", "", `{"metadata":{"a":1,"name":"n"},"kind":"K"}`},
		// Each object in an array, and the nulls.
		{`{"a":[{"b":1,"c":2},{"c":3},{"b":4}],"d":[]}`, "a.b d.x", "", `{"a":[{"b":1},{},{"b":4}],"d":[]}`},
		{`{"a":[ 1 , {"b":1,"c":2} , "x",null,[{"b":1}] ]}`, "a.b", "", `{"a":[ {"b":1} ,null]}`},
		{`{"a":[{"b":[{"c":1,"d":2}],"d":3}]}`, "a.b.c", "", `{"a":[{"b":[{"c":1}]}]}`},
		{`{"a":[1,[2],{"b":3}]}`, "a", "", `{"a":[1,[2],{"b":3}]}`},
		// What is on the way and is neither object, array nor null.
		{`{"a":null,"b":1,"c":"x","d":true,"e":{"f":null}}`, "a.x b.x c.x d.x e.f.x", "", `{"a":null,"e":{"f":null}}`},
		// Prune, within what is kept.
		{`{"a":{"b":1,"c":2},"d":{"b":3}}`, "a d.b", "a.b", `{"a":{"c":2},"d":{"b":3}}`},
		{`{"a":{"b":1,"c":2},"d":{"b":3}}`, "a d.b", "d.b a", `{"d":{}}`},
		{`{"a":[{"b":1,"c":2}]}`, "a.b", "a.b", `{"a":[{"b":1}]}`},
		{`{"a":[{"b":1,"c":2}]}`, "a.b", "a", `{}`},
		{`{"a":{"b":1}}`, "c", "a.b", `{}`},
		{`{"a":{"b":{"c":1,"d":2,"e":3}}}`, "a.b.c a.b.d", "a.b.d", `{"a":{"b":{"c":1}}}`},
		{"{\n  \"a\": 1,\n  \"b\": 2\n}\n", "b", "", "{\n  \"b\": 2\n}\n"},
	} {
		keep, drop := strings.Fields(c.keep), strings.Fields(c.drop)
		got, err := stay(t, keep, drop).AppendJSON([]byte("before"), []byte(c.object))
		require.NoError(t, err, c.object)
		require.Equal(t, "before"+c.want, string(got), "%s with %s without %s", c.object, c.keep, c.drop)
		checkJSON(t, []byte(c.object), keep, drop)
	}
	deep := func(n int) []byte { return []byte(`{"a":` + strings.Repeat("[", n) + strings.Repeat("]", n) + `}`) }
	got, err := kept(t, "a.b").AppendJSON(nil, deep(5000))
	require.NoError(t, err)
	require.Equal(t, `{"a":[]}`, string(got))
	_, err = kept(t, "a.b").AppendJSON(nil, deep(1<<20))
	require.ErrorContains(t, err, "nested too deep")
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
		for _, fields := range []*prune.Fields{pruned(t, "a", "b.c"), stay(t, []string{"a", "b", "c"}, []string{"a", "b.c"})} {
			got, err := fields.AppendJSON([]byte("before"), []byte(text))
			require.EqualError(t, err, "prune: malformed object at "+want, text)
			require.Equal(t, "before", string(got))
		}
	}
}

func TestAppendJSONAllocatesNothing(t *testing.T) {
	text, err := json.Marshal(bigPod(1))
	require.NoError(t, err)
	dst := make([]byte, 0, len(text))
	for _, fields := range []*prune.Fields{pruned(t, managedFields, lastApplied, "spec.volumes"), kept(t, fewFields...)} {
		require.Zero(t, testing.AllocsPerRun(10, func() { dst, err = fields.AppendJSON(dst[:0], text) }))
		require.NoError(t, err)
	}
}

// checkJSON holds AppendJSON, and Apply, against decoding and what the paths mean.
func checkJSON(t *testing.T, object []byte, keep, drop []string) {
	fields, err := prune.Parse(keep, drop)
	require.NoError(t, err)
	before := string(object)
	text, err := fields.AppendJSON(nil, object)
	require.Equal(t, before, string(object))
	var want, got, applied map[string]interface{}
	if utiljson.Unmarshal(object, &want) != nil || want == nil {
		return
	}
	require.NoError(t, err, "%s", object)
	require.NoError(t, utiljson.Unmarshal(text, &got), "%s with %q without %q became %s", object, keep, drop, text)
	require.NoError(t, utiljson.Unmarshal(object, &applied))
	if len(keep) > 0 {
		if hasTwins(object) {
			return // the last one counts, and it may be a value on the way that does not stay
		}
		want = keptOf(want, named(append(slices.Clone(keep), identity...))).(map[string]interface{})
	}
	for _, names := range named(drop) {
		unstructured.RemoveNestedField(want, names...)
	}
	require.Equal(t, want, got, "%s with %q without %q became %s", object, keep, drop, text)
	fields.Apply(&unstructured.Unstructured{Object: applied})
	require.Equal(t, want, applied)
}

var identity = []string{"apiVersion", "kind", "metadata.name", "metadata.namespace", "metadata.uid", "metadata.resourceVersion"}

// named are the names of paths.
func named(paths []string) (all [][]string) {
	for _, path := range paths {
		names := strings.Split(strings.ReplaceAll(path, `\.`, "\x00"), ".")
		for i := range names {
			names[i] = strings.ReplaceAll(names[i], "\x00", ".")
		}
		all = append(all, names)
	}
	return all
}

// keptOf is what stays of an object, an array or null to which some paths lead.
func keptOf(value interface{}, paths [][]string) interface{} {
	m, ok := value.(map[string]interface{})
	if !ok {
		return nil
	}
	left := map[string]interface{}{}
	for name, v := range m {
		var within [][]string
		whole := false
		for _, names := range paths {
			if names[0] == name {
				within = append(within, names[1:])
				whole = whole || len(names) == 1
			}
		}
		switch v := v.(type) {
		case map[string]interface{}:
			if whole {
				left[name] = v
			} else if within != nil {
				left[name] = keptOf(v, within)
			}
		case []interface{}:
			if whole {
				left[name] = v
			} else if within != nil {
				elements := []interface{}{}
				for _, e := range v {
					if _, ok := e.(map[string]interface{}); ok || e == nil {
						elements = append(elements, keptOf(e, within))
					}
				}
				left[name] = elements
			}
		default:
			if whole || within != nil && v == nil {
				left[name] = v
			}
		}
	}
	return left
}

// hasTwins says whether an object of the text has two members of one name.
func hasTwins(text []byte) bool {
	tokens := json.NewDecoder(bytes.NewReader(text))
	tokens.UseNumber()
	type open struct {
		names map[string]bool
		value bool // comes next, behind a name
	}
	stack := []open{{}}
	for {
		token, err := tokens.Token()
		if err != nil {
			return false
		}
		in := &stack[len(stack)-1]
		switch name, isName := token.(string); {
		case token == json.Delim('{'):
			in.value = false
			stack = append(stack, open{names: map[string]bool{}})
		case token == json.Delim('['):
			in.value = false
			stack = append(stack, open{})
		case token == json.Delim('}'), token == json.Delim(']'):
			stack = stack[:len(stack)-1]
		case in.names != nil && !in.value && isName:
			if in.names[name] {
				return true
			}
			in.names[name], in.value = true, true
		default:
			in.value = false
		}
	}
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
		checkJSON(t, []byte(r.String()), nil, r.paths())
		checkJSON(t, []byte(r.String()), r.paths(), nil)
		checkJSON(t, []byte(r.String()), r.paths(), r.paths())
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
		text, paths := []byte(strings.TrimSpace(r.String())), r.paths()
		keep, drop := paths[:r.IntN(len(paths)+1)], paths
		if len(keep) > 0 {
			drop = nil
		}
		fields := stay(t, keep, drop)
		for range 10 {
			at := r.IntN(len(text))
			_, err := fields.AppendJSON(nil, text[:at:at])
			require.Error(t, err)
			put := r.one(`"`, `\`, "{", "}", "[", "]", ",", ":", "\x00", "\xff")
			checkJSON(t, slices.Concat(text[:at], []byte(put), text[at+r.IntN(2):]), keep, drop)
		}
	}
}

func FuzzAppendJSON(f *testing.F) {
	whole, err := json.Marshal(bigPod(1))
	require.NoError(f, err)
	f.Add(whole, "", managedFields+"\n"+lastApplied+"\nspec.containers.image\nstatus")
	f.Add(whole, strings.Join(fewFields, "\n"), "metadata.labels.tier")
	for seed := range uint64(20) {
		r := &randomJSON{Rand: rand.New(rand.NewPCG(seed, 4))}
		r.object(0)
		f.Add([]byte(r.String()), "", strings.Join(r.paths(), "\n"))
		f.Add([]byte(r.String()), strings.Join(r.paths(), "\n"), "")
	}
	f.Fuzz(func(t *testing.T, object []byte, keep, drop string) {
		kept, pruned := lines(keep), lines(drop)
		// A NUL is a dot within the reference.
		if _, err := prune.Parse(kept, pruned); err == nil && len(object) < 1<<14 && !strings.Contains(keep+drop, "\x00") {
			checkJSON(t, object, kept, pruned)
		}
	})
}

// lines are those of a text, none if it is empty.
func lines(text string) []string {
	if text == "" {
		return nil
	}
	return strings.Split(text, "\n")
}
