package jsonmap_test

import (
	"encoding/json"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rvinformer/informer/internal/leaf/intern"
	"github.com/rvinformer/informer/internal/leaf/jsonmap"
)

// texts are where decoders differ from each other.
func texts() []string {
	values := []string{
		// Numbers.
		"0", "-0", "1", "-1", "10", "01", "-01", "00", "-", "+1", ".5", "1.", "1.0", "-0.0", "0.5", "1e3", "1E+3", "1e-3", "1e", "1e+", "1.5e300", "1e400", "-1e400", "1e-400", "0e0",
		"255", "256", "257", "8080", "9007199254740993", "123456789012345678", "999999999999999999", "1234567890123456789", "9223372036854775807", "9223372036854775808",
		"-9223372036854775808", "-9223372036854775809", "12345678901234567890123", "1x", "0x10", "1_000", "NaN", "Infinity",
		// Strings.
		`""`, `"a"`, `"1234567"`, `"12345678"`, `"123456789"`, `"` + strings.Repeat("x", 64) + `"`, `"` + strings.Repeat("x", 65) + `"`, `"a\"b"`, `"\\"`, `"\""`, `"\/\b\f\n\r\t"`, `"\'"`, `"\x"`, `"\u00e9"`,
		`"\u00E9"`, `"\u12"`, `"\u12g4"`, `"\ud83d\ude00"`, `"\ud83d"`, `"\ude00"`, `"\ud83d\u0041"`, `"\ud83d\ud83d\ude00"`, `"\ud83dx"`, `"\u0000"`, `"é"`, "\"\xff\"", "\"a\xc3\"", "\"\xed\xa0\x80\"", "\"\xf0\x9f\x98\"", "\"\x7f\"",
		"\"\t\"", "\"1234567\n\"", "\"\x00\"", `"`, `"abc`, `"abc\`, `"abc\"`, `"\u2028<&>"`, `'a'`, "\"\\\n\"",
		// Literals.
		"true", "false", "null", "True", "tru", "truex", "nul", "nulll", "fals e", "n", "undefined",
		// Arrays and objects.
		"[]", "[ ]", "{}", "{ }", "[1,2]", "[ 1 , 2 ]", "[,]", "[1,]", "[,1]", "[1 2]", "[1", "[", "[1}", "{", `{"a"`, `{"a":`, `{"a":1`, `{"a":1,`, `{"a":1,}`, `{,}`, `{"a" 1}`, `{"a"::1}`, `{a:1}`, `{1:1}`, `{"a":1]`,
		`{"a":1 "b":2}`, `[[[[]]]]`, `[null,true,"x",{}]`, `{"a":{"b":{"c":{}}}}`, "[1]]", "{}}", "//", "/**/1", "[1]//",
		// Keys.
		`{"a":1,"a":2}`, `{"a":{"x":1},"a":{"y":2}}`, `{"a":{"x":1},"a":null}`, `{"a":1,"A":2}`, `{"":1}`, `{"a\u0062":1,"ab":2}`, `{"ab":1,"a\u0062":2}`, "{\"\xff\":1,\"\xfe\":2}", `{"a" : 1}`, "{\n\t\"a\"\r\n:\t1\n}",
		`{"k:{\"type\":\"Ready\"}":{".":{}}}`, "{\"a\x01\":1}", `{"a\q":1}`,
		// White space.
		"\f1", "\v1", "\u00a01", "\ufeff1", " \t\r\n1 \t\r\n",
	}
	var all []string
	for _, v := range values {
		all = append(all, v, `{"v":`+v+`}`, `{"v":`+v+`,"w":`+v+`}`, `{"l":[`+v+`,`+v+`]}`, `{"o":{"v":`+v+`}}`, `{"v":`+v)
	}
	return append(all, "", " ", "{}", " {} ", "{}x", "{} {}", "{}\x00", "null", " null ", "nullx", "null null", "[]", "true", `"a"`, "1", "\ufeff{}")
}

func TestDecodesAsApimachinery(t *testing.T) {
	var warm jsonmap.Decoder
	for range 3 {
		for _, text := range texts() {
			requireSame(t, &jsonmap.Decoder{}, []byte(text))
			requireSame(t, &warm, []byte(text))
		}
	}
}

func TestDecodesBodiesAsApimachinery(t *testing.T) {
	var warm jsonmap.Decoder
	for range 3 {
		for _, text := range append(append(bodies(t), pods(t, 50)...), smallPods(t, 50)...) {
			requireSame(t, &warm, text)
		}
	}
}

func TestCutTextIsRefused(t *testing.T) {
	var warm jsonmap.Decoder
	for _, text := range bodies(t)[8:] {
		requireSame(t, &warm, text)
		for n := range text {
			_, err := warm.Decode(text[:n])
			require.Error(t, err, "%s", text[:n])
		}
		requireSame(t, &warm, text)
	}
}

func TestObjectHasKind(t *testing.T) {
	var pool jsonmap.Pool
	for _, text := range []string{
		`{"kind":"Pod","apiVersion":"v1"}`, `{"kind":"Pod"}`, `{"apiVersion":"v1"}`, `{"kind":""}`, `{"kind":null}`, `{"kind":1}`, `{"Kind":"Pod"}`, `{"kind":"Pod","apiVersion":"a/b/c"}`, `{"kind":"Pod","apiVersion":7}`,
		`{}`, `null`, ``, `{"kind":"Pod"`, `{"kind":"PodList","items":[{}]}`, `{"kind":"Pod","items":null}`, `{"kind":"Pod","items":{}}`, `{"kind":"A","kind":""}`, `{"kind":"","kind":"A"}`,
	} {
		requireSameObject(t, &pool, []byte(text))
		requireSameObject(t, nil, []byte(text))
	}
}

func TestDepthIsBounded(t *testing.T) {
	nested := func(open, closing string, n int) string {
		return `{"a":` + strings.Repeat(open, n) + "1" + strings.Repeat(closing, n) + `}`
	}
	var d jsonmap.Decoder
	for _, level := range []struct {
		open, closing string
		deepest       int // in one object
	}{{"[", "]", 9999}, {`{"b":`, "}", 9999}, {`[{"b":`, "}]", 4999}} {
		for range 3 {
			for _, n := range []int{1, level.deepest, level.deepest + 1, 20000} {
				requireSame(t, &d, []byte(nested(level.open, level.closing, n)))
			}
		}
	}
}

func TestErrorNamesOffset(t *testing.T) {
	for text, want := range map[string]string{
		`{"a":1,"b":tru}`:        "malformed object at byte 14: 'true' expected",
		`{"a":1,"b":"x\qy"}`:     "malformed object at byte 11: an invalid escape in this string",
		`{"a":1 "b":2}`:          "malformed object at byte 7: ',' or '}' expected",
		`{"a":[1 2]}`:            "malformed object at byte 8: ',' or ']' expected",
		`{"a":1e999}`:            "malformed object at byte 5: a number out of range",
		`{"a":1}}`:               "malformed object at byte 7: more behind the object",
		`[]`:                     "malformed object at byte 0: an object expected",
		`{"a":1`:                 "malformed object at byte 6: cut: ',' or '}' expected",
		`{"a":"x`:                "malformed object at byte 7: cut: the end of a string expected",
		"{\"a\":\"12345678\n\"}": "malformed object at byte 14: a control character in a string",
		`{"a":-}`:                "malformed object at byte 6: a value expected",
		`{"a":1.}`:               "malformed object at byte 7: a digit expected",
		`{"a"=1}`:                "malformed object at byte 4: ':' expected",
		`{"a":1,}`:               "malformed object at byte 7: a key expected",
		``:                       "malformed object at byte 0: cut: an object expected",
	} {
		_, err := new(jsonmap.Decoder).Decode([]byte(text))
		assert.EqualError(t, err, want, text)
	}
}

func TestObjectsShareNoMapsOrSlices(t *testing.T) {
	var d jsonmap.Decoder
	for _, text := range bodies(t) {
		for range 4 {
			requireSame(t, &d, text)
			object, err := d.Decode(text)
			require.NoError(t, err)
			overwrite(object)
		}
		requireSame(t, &d, text)
	}
}

// overwrite changes all maps and slices of v, within their capacity.
func overwrite(v interface{}) {
	switch v := v.(type) {
	case map[string]interface{}:
		for name, value := range v {
			overwrite(value)
			v[name] = "overwritten"
		}
		v["added"] = "added"
	case []interface{}:
		for i, value := range v {
			overwrite(value)
			v[i] = "overwritten"
		}
		_ = append(v, "added")
	}
}

func TestRememberedIsBounded(t *testing.T) {
	var d jsonmap.Decoder
	bounded := func() {
		places, bytes := d.Remembered()
		require.LessOrEqual(t, places, jsonmap.MaxPlaces)
		require.LessOrEqual(t, bytes, jsonmap.MaxPlaces*(3*intern.MaxLength+16))
	}
	for i := range 40 {
		object, inner := map[string]interface{}{}, map[string]interface{}{}
		for k := range 100 {
			text := fmt.Sprintf("%d-%s", i*100+k, strings.Repeat("é", k/3))
			inner[text], object[text] = text, []interface{}{text, text, text, map[string]interface{}{text: text}}
		}
		object["constant"] = inner
		text, err := json.Marshal(object)
		require.NoError(t, err)
		for range 2 {
			requireSame(t, &d, text)
		}
		bounded()
	}
	long := strings.Repeat("x", 1<<20)
	text := []byte(`{"` + long + `":"` + long + `"}`)
	for range 4 {
		requireSame(t, &d, text)
	}
	bounded()
}

// TestLongKeyIsNotRemembered decodes objects whose names are too long for a place, and one that is
// not.
func TestLongKeyIsNotRemembered(t *testing.T) {
	long := strings.Repeat("x", 1<<10)
	var d jsonmap.Decoder
	for range 5 {
		requireSame(t, &d, []byte(`{"`+long+`":{"name":"a"},"spec":{"`+long+`":[]}}`))
	}
	places, bytes := d.Remembered()
	require.Equal(t, 1, places)
	require.Less(t, bytes, 100)
}

// TestMapsAreNotMuchTooLarge has a place whose objects become smaller: what an object takes must
// not depend on those before it.
func TestMapsAreNotMuchTooLarge(t *testing.T) {
	large := map[string]interface{}{}
	for k := range 1000 {
		large[fmt.Sprint(k)] = int64(k)
	}
	texts := [][]byte{marshal(t, map[string]interface{}{"labels": large}), []byte(`{"labels":{"a":"b"}}`)}
	var d jsonmap.Decoder
	var objects [100]map[string]interface{}
	before := liveBytes()
	for k := range objects {
		for _, text := range texts {
			requireSame(t, &d, text)
		}
		if k%2 == 0 { // the place has had a large one only now
			requireSame(t, &d, texts[0])
		}
		var err error
		objects[k], err = d.Decode(texts[1])
		require.NoError(t, err)
	}
	require.Less(t, liveBytes()-before, int64(len(objects)*4<<10))
	runtime.KeepAlive(objects)
}

func liveBytes() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

func TestLongValueIsNotRemembered(t *testing.T) {
	for _, secret := range []string{strings.Repeat("s", 65), strings.Repeat("s", 64) + `\n`, strings.Repeat("s", intern.MaxLength+1)} {
		var d jsonmap.Decoder
		text, at := []byte(`{"data":{"password":"`+secret+`"}}`), map[*byte]bool{}
		for range 5 {
			requireSame(t, &d, text)
			object, err := d.Decode(text)
			require.NoError(t, err)
			at[unsafe.StringData(object["data"].(map[string]interface{})["password"].(string))] = true
		}
		require.Len(t, at, 5, "each is of one object")
		_, bytes := d.Remembered()
		require.Less(t, bytes, 100)
	}
}

func TestAllocations(t *testing.T) {
	var d jsonmap.Decoder
	// What it has learned of other objects does not stay in the way.
	for i := range 40 {
		object := map[string]interface{}{}
		for k := range 32 {
			object[fmt.Sprintf("of-%d", k)] = map[string]interface{}{fmt.Sprint(i): map[string]interface{}{fmt.Sprint(i): "", fmt.Sprint(k): ""}}
		}
		_, err := d.Decode(marshal(t, object))
		require.NoError(t, err)
	}
	texts := smallPods(t, 200)
	decode := func() {
		for _, text := range texts {
			if _, err := d.Decode(text); err != nil {
				t.Error(err)
			}
		}
	}
	for range 6 {
		decode()
	}
	require.LessOrEqual(t, testing.AllocsPerRun(2, decode)/float64(len(texts)), 192.0, "for a pod, where encoding/json makes 594")
}
