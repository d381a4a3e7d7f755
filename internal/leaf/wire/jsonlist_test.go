package wire

import (
	"bytes"
	"context"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/rvinformer/informer/api"
)

// endless repeats a piece for ever, after a beginning.
type endless struct {
	begin, piece string
	read         int64
}

func (e *endless) Read(p []byte) (int, error) {
	n := copy(p, e.begin)
	e.begin = e.begin[n:]
	for n < len(p) {
		m := copy(p[n:], e.piece)
		e.piece = e.piece[m:] + e.piece[:m]
		n += m
	}
	e.read += int64(n)
	return n, nil
}

const good = `{"metadata":{"name":"good"}}`

func TestWrongJSONListBodies(t *testing.T) {
	for body, want := range map[string]error{
		"":       ErrEmptyBody,
		" \n":    ErrEmptyBody,
		"null":   api.ErrNotList,
		"[]":     api.ErrNotList,
		`"text"`: api.ErrNotList,
		"<!DOCTYPE html><html>502 Bad Gateway</html>": api.ErrNotList,
		"\xef\xbb\xbf{}":                         api.ErrNotList,
		"k8s\x00":                                api.ErrNotList,
		"{}":                                     api.ErrNotList,
		`{"kind":"Pod","metadata":{"name":"a"}}`: api.ErrNotList,
		`{"kind":"Status","code":500,"items":[]}`:  ErrStatus,
		`{"items":[` + good + `],"kind":"Status"}`: ErrStatus,
		`{"items":5}`:                           api.ErrMalformed,
		`{"items":[]`:                           io.ErrUnexpectedEOF,
		`{"items":[` + good:                     io.ErrUnexpectedEOF,
		`{"items":[` + good + `} `:              api.ErrMalformed,
		`{"items":[` + good + ` ` + good + `]}`: api.ErrMalformed,
		`{"items":[` + good + `,]}`:             api.ErrMalformed,
		`{"items":[` + good + `]}}`:             api.ErrMalformed,
		`{"items":[` + good + `],"items":[]}`:   api.ErrMalformed,
		`{"items":[` + good + `],"kind":7}`:     api.ErrMalformed,
		`{"metadata":[],"items":[]}`:            api.ErrMalformed,
	} {
		_, err := readAll(t, openList(JSON)(strings.NewReader(body), Options{}))
		require.ErrorIs(t, err, want, body)
		var fault *api.BodyError
		require.ErrorAs(t, err, &fault)
	}
}

// After an item that is lost, the next one is read all the same.
func TestLostJSONItems(t *testing.T) {
	deep := strings.Repeat("[", maxDepth) + strings.Repeat("]", maxDepth)
	for item, want := range map[string]error{
		`{}`:                         ErrNoName,
		`{"metadata":{"name":""}}`:   ErrNoName,
		`{"metadata":{"name":null}}`: ErrNoName,
		`{"metadata":null}`:          ErrNoName,
		`{"name":"a","a":{"metadata":{"name":"a"}}}`: ErrNoName,
		`null`:                                       api.ErrMalformed,
		`[{}]`:                                       api.ErrMalformed,
		`"a"`:                                        api.ErrMalformed,
		`nothing`:                                    api.ErrMalformed,
		`{"metadata":{"name":5}}`:                    api.ErrMalformed,
		`{"metadata":[]}`:                            api.ErrMalformed,
		`{"metadata":{"name":"\u12"}}`:               api.ErrMalformed,
		"{\"metadata\":{\"name\":\"a\nb\"}}":         api.ErrMalformed,
		`{"metadata":{"name":"a"},"b":tru}`:          api.ErrMalformed,
		`{"metadata":{"name":"a"},"b":{"c"}}`:        api.ErrMalformed,
		`{"metadata":{"name":"a"},"b":[1,{]}}`:       api.ErrMalformed,
		`{"metadata":{"name":"a"},"b":[1 2]}`:        api.ErrMalformed,
		`{"metadata":{"name":"a"},"b":` + deep + `}`: api.ErrMalformed,
		`{"metadata":{"name":"a"},"b":"` + strings.Repeat("x", 30000) + `"}`:                                api.ErrTooLarge,
		`{"b":"` + strings.Repeat(`\\`, 30000) + `","metadata":{"name":"a"}}`:                               api.ErrTooLarge,
		`{"metadata":{"name":"a"},"b":[` + strings.Repeat(`{"c":"}]\""},`, 3000) + `{}]}`:                   api.ErrTooLarge,
		`{"` + strings.Repeat("x", 30000) + `":1,"metadata":{"name":"` + strings.Repeat("x", 30000) + `"}}`: api.ErrTooLarge,
	} {
		before := `{"items":[` + good + ", "
		body := before + item + `,` + good + `]}`
		for _, size := range []int{64, 1 << 20} {
			all, err := readAll(t, openList(JSON)(strings.NewReader(body), Options{MaxItemBytes: 25000, BufferBytes: size}))
			require.Equal(t, io.EOF, err, "%.100s", item)
			require.Len(t, all, 3, "%.100s", item)
			var fault *ItemError
			require.ErrorAs(t, all[1].err, &fault)
			require.ErrorIs(t, fault, want, "%.100s", item)
			require.Equal(t, 1, fault.Index)
			require.EqualValues(t, len(before), fault.Offset)
			require.EqualValues(t, len(item), fault.Size)
			require.Equal(t, good, all[2].Bytes)
			require.Equal(t, 2, all[2].Index)
			if strings.HasPrefix(item, `{"metadata":{"name":"a"}`) {
				require.Equal(t, "a", fault.Name)
				require.Contains(t, fault.Error(), "item 1 at byte 40 (/a): ")
			}
		}
	}
}

func TestJSONDepthIsThatOfEncodingJSON(t *testing.T) {
	for _, depth := range []int{maxDepth - 3, maxDepth - 2} {
		checkJSONListOnce(t, `{"items":[{"metadata":{"name":"a"},"b":`+strings.Repeat("[", depth)+strings.Repeat("]", depth)+`}]}`, depth == maxDepth-3)
	}
}

func checkJSONListOnce(t *testing.T, body string, good bool) {
	all, err := readAll(t, openList(JSON)(strings.NewReader(body), Options{}))
	require.Equal(t, io.EOF, err)
	require.Equal(t, good, all[0].err == nil)
}

// Whatever never ends does end here, in memory of the order of the limit.
func TestEndlessJSON(t *testing.T) {
	const limit = 1 << 16
	for name, c := range map[string]struct {
		endless
		want error
	}{
		"white space":       {endless{"", " ", 0}, api.ErrTooLarge},
		"key":               {endless{`{"`, "x", 0}, api.ErrTooLarge},
		"escaped key":       {endless{`{"`, `\\`, 0}, api.ErrTooLarge},
		"keys":              {endless{`{"a":1`, `,"a":1`, 0}, api.ErrTooLarge},
		"value":             {endless{`{"a":`, `1`, 0}, api.ErrTooLarge},
		"nested value":      {endless{`{"a":`, `[`, 0}, api.ErrMalformed},
		"kind":              {endless{`{"kind":"`, `x`, 0}, api.ErrTooLarge},
		"continue":          {endless{`{"metadata":{"continue":"`, `x`, 0}, api.ErrTooLarge},
		"item":              {endless{`{"items":[{"a":"`, `x`, 0}, api.ErrEndless},
		"item of escapes":   {endless{`{"items":[{"a":"`, `\`, 0}, api.ErrEndless},
		"item of quotes":    {endless{`{"items":[{"a":"`, `\"`, 0}, api.ErrEndless},
		"item of keys":      {endless{`{"items":[{"a":{}`, `,"metadata":{"name":"x"}`, 0}, api.ErrEndless},
		"item of brackets":  {endless{`{"items":[`, `{"a":[`, 0}, api.ErrEndless},
		"item of space":     {endless{`{"items":[{`, "\n", 0}, api.ErrEndless},
		"item's name":       {endless{`{"items":[{"metadata":{"name":"`, "\\u00e9", 0}, api.ErrEndless},
		"number":            {endless{`{"items":[{"a":1.`, "0", 0}, api.ErrEndless},
		"behind the list":   {endless{`{"items":[]}`, "\t", 0}, api.ErrTooLarge},
		"between the items": {endless{`{"items":[{"metadata":{"name":"x"}}`, " ", 0}, api.ErrTooLarge},
	} {
		l := newJSONList(&c.endless, Options{MaxItemBytes: limit}.withDefaults())
		_, err := readAll(t, l)
		require.ErrorIs(t, err, c.want, name)
		require.LessOrEqual(t, len(l.buf), 8*limit, name)
		require.LessOrEqual(t, cap(l.scratch), 8*limit, name)
		require.LessOrEqual(t, c.read, int64((skipFactor+8)*limit), name)
	}
}

func TestReaderErrors(t *testing.T) {
	for format, begin := range map[Format]string{JSON: `{"items":[` + good, Protobuf: "k8s\x00"} {
		_, err := readAll(t, openList(format)(io.MultiReader(strings.NewReader(begin), iotest.ErrReader(context.Canceled)), Options{}))
		require.ErrorIs(t, err, context.Canceled)
		require.NotErrorIs(t, err, io.ErrUnexpectedEOF)
		_, err = readAll(t, openList(format)(neverReader{}, Options{}))
		require.ErrorIs(t, err, io.ErrNoProgress)
		_, err = readAll(t, openWatch(format)(iotest.ErrReader(context.Canceled), Options{}))
		require.ErrorIs(t, err, context.Canceled)
	}
}

type neverReader struct{}

func (neverReader) Read([]byte) (int, error) { return 0, nil }

// The error of a finished body is repeated.
func TestEndIsRepeated(t *testing.T) {
	for body, want := range map[string]error{`{"items":[]}`: io.EOF, `{"items":[`: io.ErrUnexpectedEOF} {
		l := NewListReader(strings.NewReader(body), JSON, Options{})
		for range 3 {
			_, err := l.Next()
			require.ErrorIs(t, err, want)
		}
	}
}

// Misuse shows: what Next lent is overwritten by the next call, unescaped strings included.
func TestLoansArePoisoned(t *testing.T) {
	l := newJSONList(strings.NewReader(`{"items":[{"metadata":{"name":"a\u0062"}},`+good+`]}`), Options{}.withDefaults())
	l.poison = true
	item, err := l.Next()
	require.NoError(t, err)
	require.Equal(t, "ab", string(item.Name))
	_, err = l.Next()
	require.NoError(t, err)
	require.Equal(t, bytes.Repeat([]byte{poisonByte}, len(item.Bytes)), item.Bytes)
	require.Equal(t, []byte{poisonByte, poisonByte}, item.Name)

	p := newProtoList(bytes.NewReader(encoded(t, protoCodec, generatedList(2))), Options{}.withDefaults())
	p.poison = true
	item, err = p.Next()
	require.NoError(t, err)
	_, err = p.Next()
	require.NoError(t, err)
	require.Equal(t, bytes.Repeat([]byte{poisonByte}, len(item.Name)), item.Name)
}

// A buffer blown up by one giant is given back.
func TestBufferShrinks(t *testing.T) {
	body := `{"items":[{"a":"` + strings.Repeat("x", 1<<20) + `","metadata":{"name":"giant"}}` + strings.Repeat(","+good, 10000) + `]}`
	l := newJSONList(strings.NewReader(body), Options{}.withDefaults())
	_, err := l.Next()
	require.NoError(t, err)
	require.Greater(t, len(l.buf), 1<<20)
	all, err := readAll(t, l)
	require.Equal(t, io.EOF, err)
	require.Len(t, all, 10000)
	require.Len(t, l.buf, defaultBufferBytes)
}

// AppendObject makes what the ordinary decoders take.
func TestAppendObject(t *testing.T) {
	want := generatedList(3)
	for format, body := range map[Format][]byte{JSON: encoded(t, jsonCodec, want), Protobuf: encoded(t, protoCodec, want)} {
		l := NewListReader(bytes.NewReader(body), format, Options{})
		for i := range want.Items {
			item, err := l.Next()
			require.NoError(t, err)
			meta := l.Meta() // both formats: before the items
			object := item.AppendObject(nil, meta.APIVersion, meta.ItemKind())
			codec := map[Format]runtime.Decoder{JSON: jsonCodec, Protobuf: protoCodec}[format]
			got, _, err := codec.Decode(object, nil, nil)
			require.NoError(t, err)
			pod := want.Items[i].DeepCopy()
			pod.APIVersion, pod.Kind = "v1", "Pod"
			require.Equal(t, string(encoded(t, jsonCodec, pod)), string(encoded(t, jsonCodec, got)))
			if format == Protobuf {
				require.Equal(t, encoded(t, protoCodec, pod), object)
			}
		}
	}
}

// FuzzAppendObject has all items but this one: only a bookmark can be empty.
func TestAppendObjectFillsAnEmptyObject(t *testing.T) {
	bare := Item{Bytes: []byte(`{ }`)}
	require.Equal(t, `{"kind":"a\"\u0001","apiVersion":"v1"}`, string(bare.AppendObject(nil, "v1", "a\"\x01")))
}

func TestItemKind(t *testing.T) {
	for list, want := range map[string]string{"PodList": "Pod", "List": "", "": "", "Pods": "", "ListList": "List"} {
		require.Equal(t, want, ListMeta{Kind: list}.ItemKind())
	}
}

func TestFormatOf(t *testing.T) {
	for contentType, want := range map[string]Format{
		"application/json": JSON,
		"application/json;as=Table;v=v1;g=meta.k8s.io":     JSON,
		"Application/JSON; charset=utf-8":                  JSON,
		"application/vnd.kubernetes.protobuf;stream=watch": Protobuf,
		"": Undeclared,
	} {
		f, err := FormatOf(contentType)
		require.NoError(t, err)
		require.Equal(t, want, f)
	}
	for _, contentType := range []string{" ", "text/html", "application/cbor", "nonsense;;"} {
		_, err := FormatOf(contentType)
		require.ErrorIs(t, err, api.ErrContentType)
	}
}

// Next does not allocate, Reset included.
func TestNothingIsAllocated(t *testing.T) {
	list := generatedList(50)
	for format, body := range map[Format][]byte{JSON: encoded(t, jsonCodec, list), Protobuf: encoded(t, protoCodec, list)} {
		source := bytes.NewReader(body)
		l := NewListReader(source, format, Options{})
		perList := testing.AllocsPerRun(20, func() {
			source.Reset(body)
			l.Reset(source)
			for {
				if _, err := l.Next(); err != nil {
					require.Equal(t, io.EOF, err)
					return
				}
			}
		})
		require.LessOrEqual(t, perList, 12.0, format) // the list's metadata
	}
}
