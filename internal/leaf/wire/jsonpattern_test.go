package wire

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
)

// alikeBody is a list in which an object is often enough for a pattern, with others between.
func alikeBody(alike string, others ...string) []byte {
	var b bytes.Buffer
	b.WriteString(`{"kind":"L","apiVersion":"v1","metadata":{"resourceVersion":"1"},"items":[`)
	for range patternAfter + 2 {
		b.WriteString(alike + ",")
	}
	for _, other := range others {
		b.WriteString(other + "," + alike + "," + other + ",")
	}
	b.WriteString(alike + "]}")
	return b.Bytes()
}

// alikeFrames is alikeBody as a watch.
func alikeFrames(alike string, others ...string) []byte {
	var b bytes.Buffer
	frame := func(object string) { fmt.Fprintf(&b, "{\"type\":\"ADDED\",\"object\":%s}\n", object) }
	for range patternAfter + 2 {
		frame(alike)
	}
	for _, other := range others {
		frame(other)
		frame(alike)
		frame(other)
	}
	return b.Bytes()
}

const patternObject = `{"kind":"X","apiVersion":"x/v1","metadata":{"name":"a","namespace":"n","uid":"u","resourceVersion":"5","labels":{"app":"x"}},` +
	`"spec":{"n":1,"f":true,"s":"text","list":[1,{"a":[]},"b"],"empty":{},"nothing":null},"status":{"t":"2026-01-01"}}`

// patternVariants differ from patternObject, each in another way.
var patternVariants = []string{
	`"name":"a"|"name":"another"`, `"name":"a"|"name":""`, `"name":"a"|"name":null`, `"name":"a"|"name":5`, `"name":"a"|"name":"a","name":"b"`,
	`"name":"a"|"n\u0061me":"b"`, `"name":"a"|"nome":"a"`, `"name":"a"|"name":"bad \x"`, `"name":"a"|"name":"\u00e9\"\\"`, `"uid":"u"|"uid":["u"]`, `"uid":"u",|`,
	`"namespace":"n",|`, `"metadata":{|"metadata":{"name":"first"},"metadata":{`, `"metadata"|"data"`, `"kind":"X"|"kind":"Longer"`, `"kind":"X"|"kind":null`, `"kind":"X",|`,
	`"n":1|"n":12`, `"n":1|"n":-1.5e3`, `"n":1|"n":01`, `"n":1|"n":1x`, `"n":1|"n":"1"`, `"n":1|"n":{"deep":[[[{"er":1}]]]}`, `"n":1|"n": 1`, `"n":1|"n":1 `, `"n":1|"m":1`,
	`"n":1|"n":`, `"n":1|"n"`, `"n":1|"n":]`, `"n":1|"n":1,"o":2`, `"n":1,|`, `"f":true|"f":false`, `"f":true|"f":tru`, `"f":true|"f":truer`, `"s":"text"|"s":""`,
	`"s":"text"|"s":"tex\"t"`, `"s":"text"|"s":"text\\"`, `"s":"text"|"s":"text\\\""`, `"s":"text"|"s":"]}{["`, `"s":"text"|"s":{"a":"]}"}`, `"s":"text"|"s":"te` + "\n" + `xt"`,
	`[1,{"a":[]},"b"]|[]`, `[1,{"a":[]},"b"]|[1]`, `[1,{"a":[]},"b"]|[1,{"a":[]},"b",{}]`, `[1,{"a":[]},"b"]|[1,{"a":[}]},"b"]`, `[1,{"a":[]},"b"]|{}`, `[1,{"a":[]},"b"]|[[],[]]`,
	`"empty":{}|"empty":{"full":true}`, `"empty":{}|"empty":[]`, `"nothing":null|"nothing":nil`, `,"status":{"t":"2026-01-01"}|`, `"2026-01-01"}|"2026-01-02"},"more":1`,
	`"status":{|"status":{ `, `"labels":{"app":"x"}|"labels":{"app":"y","tier":"z"}`, `"labels":{"app":"x"}|"labels":null`, `"labels":{"app"|"labels":{"bpp"`, `{"kind"| { "kind"`,
}

// variantsOf are the variants of an object.
func variantsOf(t testing.TB) (all []string) {
	for _, v := range patternVariants {
		from, to, _ := strings.Cut(v, "|")
		other := strings.Replace(patternObject, from, to, 1)
		require.NotEqual(t, patternObject, other, v)
		all = append(all, other)
	}
	return all
}

// Objects read by a pattern are those that a scan finds, with the same faults.
func TestPatternReadsWhatTheScanReads(t *testing.T) {
	all := variantsOf(t)
	for i, other := range all {
		checkPattern(t, patternObject, other)
		checkPattern(t, other, patternObject)
		if i%8 == 0 {
			checkJSONList(t, alikeBody(patternObject, other))
			checkJSONWatch(t, alikeFrames(patternObject, other))
		}
	}
	for i := range 200 {
		r := rand.New(rand.NewPCG(uint64(i), 7))
		var others []string
		for range 8 {
			others = append(others, all[r.IntN(len(all))])
		}
		checkPattern(t, patternObject, others...)
	}
}

// checkPattern reads a list and a watch of objects without patterns, and with them, from pieces of
// the body.
func checkPattern(t testing.TB, alike string, others ...string) {
	for _, c := range []struct {
		body []byte
		open open
	}{
		{alikeBody(alike, others...), openList(JSON)},
		{alikeFrames(alike, others...), openWatch(JSON)},
	} {
		all, end := readAll(t, c.open(bytes.NewReader(c.body), Options{BufferBytes: minBufferBytes}))
		again, endAgain := readAll(t, c.open(&chunks{c.body, rand.New(rand.NewPCG(1, 1))}, Options{}))
		require.Equal(t, errText(end), errText(endAgain))
		require.Equal(t, texts(all), texts(again))
	}
}

// FuzzJSONPattern reads an object between many of another one.
func FuzzJSONPattern(f *testing.F) {
	for _, other := range variantsOf(f) {
		f.Add(patternObject, other)
	}
	f.Fuzz(func(t *testing.T, alike, other string) {
		if len(alike)+len(other) < 1<<12 {
			checkPattern(t, alike, other)
		}
	})
}

// Random changes of pods, at any byte, are read in the same way with a pattern and without.
func TestPatternOfChangedPods(t *testing.T) {
	const pods = 40
	for seed := range uint64(40) {
		r := rand.New(rand.NewPCG(seed, 3))
		var items []string
		for i := range pods {
			pod := generatedPod(i / 3)
			if i%5 == 4 {
				pod.Spec.Containers = append(pod.Spec.Containers, corev1.Container{Name: "more"})
			}
			items = append(items, changed(r, strings.TrimSpace(string(encoded(t, jsonCodec, &pod)))))
		}
		body := `{"kind":"PodList","apiVersion":"v1","items":[` + strings.Join(items, ",") + `]}`
		all, end := readAll(t, openList(JSON)(strings.NewReader(body), Options{BufferBytes: minBufferBytes}))
		for range 3 {
			source := &chunks{[]byte(body), rand.New(rand.NewPCG(seed, 5))}
			again, endAgain := readAll(t, openList(JSON)(source, Options{}))
			require.Equal(t, errText(end), errText(endAgain), seed)
			require.Equal(t, texts(all), texts(again), seed)
		}
	}
}

// changed changes a text a little, mostly.
func changed(r *rand.Rand, text string) string {
	for range r.IntN(4) {
		at, to := r.IntN(len(text)), r.IntN(len(text))
		switch r.IntN(12) {
		case 0:
			text = text[:at] + text[at+1:]
		case 1:
			text = text[:at] + string(`{}[]",:0a\ `[r.IntN(11)]) + text[at:]
		case 2, 3, 4, 5:
			text = text[:at] + string(rune('a'+r.IntN(26))) + text[at+1:]
		case 6:
			text = text[:min(at, to)] + text[max(at, to):]
		}
	}
	return text
}

// Most objects of a list of pods are compared with one of them, and nothing is kept for a watch
// that rests.
func TestPatternIsLearnt(t *testing.T) {
	l := newJSONList(bytes.NewReader(encoded(t, jsonCodec, generatedList(200))), Options{}.withDefaults())
	all, end := readAll(t, l)
	require.Equal(t, io.EOF, end)
	require.Len(t, all, 200)
	require.NotNil(t, l.pattern)
	require.Greater(t, l.pattern.matches, 150)
	require.Less(t, len(l.pattern.holes), 60)

	var body bytes.Buffer
	for i := range 200 {
		pod := generatedPod(i)
		fmt.Fprintf(&body, "{\"type\":\"ADDED\",\"object\":%s}\n", encoded(t, jsonCodec, &pod))
	}
	body.WriteString(`{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"9"}}}`)
	w := newJSONWatch(&body, Options{BufferBytes: 128}.withDefaults())
	for range 200 {
		_, err := w.Next()
		require.NoError(t, err)
	}
	require.Greater(t, w.pattern.matches, 100)
	_, err := w.Next()
	require.NoError(t, err)
	require.Nil(t, w.pattern)
}

// An object of very many values does not become a text, because each value takes memory.
func TestPatternOfManyValues(t *testing.T) {
	for values, learnt := range map[int]bool{patternNodes / 2: true, patternNodes: false} {
		object := strings.Replace(patternObject, `"empty":{}`, `"many":[`+strings.Repeat("1,", values)+`1]`, 1)
		l := newJSONList(bytes.NewReader(alikeBody(object)), Options{}.withDefaults())
		all, end := readAll(t, l)
		require.Equal(t, io.EOF, end)
		require.Len(t, all, patternAfter+3)
		require.Equal(t, learnt, len(l.pattern.text) > 0)
	}
}

// frameByFrame has as many frames to read as were asked for.
type frameByFrame struct {
	t      *testing.T
	frames [][]byte
	asked  int
}

func (f *frameByFrame) Read(p []byte) (int, error) {
	require.Positive(f.t, f.asked, "a read behind the end of an event that has come")
	f.asked--
	n := copy(p, f.frames[0])
	require.Len(f.t, f.frames[0], n)
	f.frames = f.frames[1:]
	return n, nil
}

// An event is handed over when it has come, however much longer the text of the pattern is.
func TestPatternReadsNothingBehindAnObject(t *testing.T) {
	source := &frameByFrame{t: t}
	for _, object := range append(variantsOf(t), patternObject) {
		if !json.Valid([]byte(object)) {
			continue // its end may be unknown
		}
		for range patternAfter + 2 {
			source.frames = append(source.frames, []byte(`{"type":"ADDED","object":`+strings.Replace(patternObject, `"text"`, `"`+strings.Repeat("x", 3000)+`"`, 1)+`}`))
		}
		source.frames = append(source.frames, []byte(`{"type":"ADDED","object":`+object+`}`))
	}
	r := NewWatchReader(source, JSON, Options{})
	for frames := len(source.frames); frames > 0; frames-- {
		source.asked++
		_, err := r.Next()
		require.True(t, err == nil || recoverable(err), "%v", err)
		require.Len(t, source.frames, frames-1)
	}
}
