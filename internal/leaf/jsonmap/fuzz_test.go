package jsonmap_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	utiljson "k8s.io/apimachinery/pkg/util/json"
	"pgregory.net/rapid"

	"github.com/rvinformer/informer/internal/leaf/jsonmap"
)

// FuzzDecode compares a new Decoder, and one that knows siblings of the object, with apimachinery.
func FuzzDecode(f *testing.F) {
	for i, text := range bodies(f) {
		f.Add(text, uint64(i))
	}
	for i, text := range texts() {
		if i%6 == 2 { // one of the ways in which each value is put
			f.Add([]byte(text), uint64(i))
		}
	}
	f.Fuzz(func(t *testing.T, text []byte, seed uint64) {
		var pool jsonmap.Pool
		requireSameObject(t, &pool, text)
		requireSame(t, &jsonmap.Decoder{}, text)
		var object map[string]interface{}
		if utiljson.Unmarshal(text, &object) != nil {
			return
		}
		var d jsonmap.Decoder
		w := writer{rand.New(rand.NewPCG(seed, 0))}
		for range 4 {
			sibling := w.sibling(object).(map[string]interface{})
			requireSame(t, &d, w.append(nil, sibling))
			requireSame(t, &d, text)
		}
		broken := w.broken(text)
		requireSame(t, &d, broken)
		requireSameObject(t, &pool, broken)
		requireSame(t, &d, text)
	})
}

// TestRandomObjectsDecodeAsApimachinery is FuzzDecode for objects that have nothing to do with each
// other.
func TestRandomObjectsDecodeAsApimachinery(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var d jsonmap.Decoder
		w := writer{rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))}
		for range rapid.IntRange(1, 8).Draw(t, "objects") {
			object := rapid.MapOf(names, values(3)).Draw(t, "object")
			text := w.append(nil, object)
			requireSame(t, &d, text)
			if rapid.Bool().Draw(t, "break") {
				requireSame(t, &d, w.broken(text))
			}
		}
	})
}

var (
	names   = rapid.OneOf(rapid.SampledFrom([]string{"", "a", "b", "name", "value", "f:status", `k:{"type":"Ready"}`, "π"}), rapid.String())
	scalars = rapid.OneOf(
		rapid.Just[interface{}](nil), rapid.Bool().AsAny(), rapid.Int64().AsAny(), rapid.Float64().AsAny(), rapid.String().AsAny(),
		rapid.SampledFrom([]string{"", "True", "False", "Running", "ns/name"}).AsAny(), rapid.Int64Range(-3, 300).AsAny(),
	)
)

// values returns values that are nested so deep at most.
func values(depth int) *rapid.Generator[interface{}] {
	if depth == 0 {
		return scalars
	}
	return rapid.OneOf(scalars, scalars, rapid.SliceOfN(values(depth-1), 0, 4).AsAny(), rapid.MapOfN(names, values(depth-1), 0, 4).AsAny())
}

// writer writes values in all the ways in which they can be written, at random.
type writer struct{ *rand.Rand }

// sibling returns a copy of v in which some values differ, some members are gone and others are
// new.
func (w writer) sibling(v interface{}) interface{} {
	switch v := v.(type) {
	case map[string]interface{}:
		m := map[string]interface{}{}
		for name, value := range v {
			if w.IntN(20) > 0 {
				m[name] = w.sibling(value)
			}
		}
		for w.IntN(10) == 0 {
			m[fmt.Sprintf("new-%d", w.IntN(3))] = w.scalar()
		}
		return m
	case []interface{}:
		l := []interface{}{}
		for _, value := range v {
			for w.IntN(20) == 0 {
				l = append(l, w.scalar())
			}
			if w.IntN(20) > 0 {
				l = append(l, w.sibling(value))
			}
		}
		return l
	}
	if w.IntN(10) > 0 {
		return v
	}
	if w.IntN(4) == 0 {
		return map[string]interface{}{"was": v}
	}
	return w.scalar()
}

func (w writer) scalar() interface{} {
	return []interface{}{nil, true, "text", "", "tex", "text\"", "\x7fé\n", int64(7), int64(300), int64(-1), 0.5, []interface{}{}, map[string]interface{}{}}[w.IntN(13)]
}

func (w writer) append(dst []byte, v interface{}) []byte {
	dst = w.space(dst)
	switch v := v.(type) {
	case map[string]interface{}:
		names := make([]string, 0, len(v))
		for name := range v {
			names = append(names, name)
		}
		slices.Sort(names)
		if w.IntN(4) == 0 {
			w.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
		}
		if len(names) > 0 && w.IntN(8) == 0 {
			names = append(names, names[w.IntN(len(names))])
		}
		dst = append(dst, '{')
		for i, name := range names {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = w.space(append(w.space(w.text(w.space(dst), name)), ':'))
			dst = w.append(dst, v[name])
		}
		dst = append(w.space(dst), '}')
	case []interface{}:
		dst = append(dst, '[')
		for i, value := range v {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = w.append(dst, value)
		}
		dst = append(w.space(dst), ']')
	case string:
		dst = w.text(dst, v)
	default:
		scalar, err := json.Marshal(v)
		if err != nil {
			panic(err)
		}
		dst = append(dst, scalar...)
	}
	return w.space(dst)
}

func (w writer) space(dst []byte) []byte {
	for w.IntN(50) == 0 {
		dst = append(dst, " \n\r\t"[w.IntN(4)])
	}
	return dst
}

// text writes some characters as escapes, and seldom a byte that is no UTF-8.
func (w writer) text(dst []byte, text string) []byte {
	dst = append(dst, '"')
	for _, r := range text {
		switch {
		case r < ' ' || r == '"' || r == '\\' || r < 0x10000 && w.IntN(200) == 0:
			dst = fmt.Appendf(dst, `\u%04x`, r)
		default:
			dst = append(dst, string(r)...)
		}
		if w.IntN(1000) == 0 {
			dst = append(dst, 0xff)
		}
	}
	return append(dst, '"')
}

// broken returns a copy of text with something cut out, doubled or overwritten.
func (w writer) broken(text []byte) []byte {
	if len(text) == 0 {
		return text
	}
	at := w.IntN(len(text))
	to := min(len(text), at+1+w.IntN(8))
	switch w.IntN(4) {
	case 0:
		return slices.Concat(text[:at], text[to:])
	case 1:
		return slices.Concat(text[:to], text[at:])
	case 2:
		return slices.Concat(text[:at], []byte{`{}[],:"\0-.eEtn `[w.IntN(16)]}, text[at+1:])
	default:
		return slices.Concat(text[:at], []byte{byte(w.IntN(256))}, text[at+1:])
	}
}
