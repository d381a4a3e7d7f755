package wire

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"encoding/json"
	goruntime "runtime"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/rvinformer/informer/api"
)

// FuzzJSONString reads the content of a JSON string as encoding/json does, and writes a text as one
// that it reads.
func FuzzJSONString(f *testing.F) {
	for _, seed := range []string{``, `plain`, `\u00e9`, `\ud83d\ude00`, `\ud83d`, `\ud83d\ud83d\ude00`, `\ude00x`, `\uD83D\uDE00`, `\u12`, `\u12g4`, `\x`, `\`,
		`\"\\\/\b\f\n\r\t`, "é\xff\xc3(", "tab\tin it", "eight bytes and then \x7f\x80", "\xed\xa0\x80", "\xf4\x90\x80\x80"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, content string) {
		if len(content) > 1<<12 {
			return
		}
		checkUnescaped(t, content)
		if utf8.ValidString(content) {
			var again string
			require.NoError(t, json.Unmarshal(appendQuoted(nil, content), &again))
			require.Equal(t, content, again)
		}
	})
}

func checkUnescaped(t *testing.T, content string) {
	var want string
	err := json.Unmarshal([]byte(`"`+content+`"`), &want)
	if err != nil && strings.Contains(content, `"`) {
		return // the scanners have ended the string there
	}
	got, ok := AppendUnescaped([]byte("before"), []byte(content))
	require.Equal(t, err == nil, ok, "%q", content)
	if ok {
		require.Equal(t, "before"+want, string(got), "%q", content)
	}
	if isPlain([]byte(content)) {
		require.NoError(t, err)
		require.Equal(t, want, content)
	}
}

// FuzzProtoObject finds in one message what the generated decoder of metadata finds in it.
func FuzzProtoObject(f *testing.F) {
	for _, p := range smallPods().Items {
		message, err := p.Marshal()
		require.NoError(f, err)
		f.Add(message)
	}
	end := metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{ResourceVersion: "9", Annotations: map[string]string{metav1.InitialEventsAnnotationKey: "true", "a": "b"}}}
	message, err := end.Marshal()
	require.NoError(f, err)
	f.Add(message)
	for _, seed := range []string{
		"", "\x0a", "\x0a\x7f", "\x0a\x03\x0a\x01a\x0a\x03\x0a\x01b", // metadata cut, too long, twice
		"\x08\x01", "\x0a\x02\x08\x01", // metadata, then a name, as a varint
		"\x0a\x03\x0a\x01a\x13\x0b\x0c\x14", "\x0a\x03\x0a\x01a\x13", // groups
		"\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01a", "\x0a\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01", "\x00\x00", "\x07",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, message []byte) {
		if len(message) > 1<<13 {
			return
		}
		var item, part Item
		err := protoIdentity(&item, message, false)
		ends, endsErr := protoEndsInitialEvents(message)
		var want metav1.PartialObjectMetadata
		if wrong := want.Unmarshal(message); wrong != nil {
			return // it looks at more fields than those of an identity
		}
		require.NoError(t, err)
		require.Equal(t, []string{want.Namespace, want.Name, string(want.UID), want.ResourceVersion},
			[]string{string(item.Namespace), string(item.Name), string(item.UID), string(item.ResourceVersion)})
		wantEnds := want.Annotations[metav1.InitialEventsAnnotationKey] == "true"
		if endsErr == nil { // the generated decoder lets the key of an annotation run over the end of its entry; we do not
			require.Equal(t, wantEnds, ends)
		}
		again, err := want.Marshal()
		require.NoError(t, err)
		ends, err = protoEndsInitialEvents(again)
		require.NoError(t, err)
		require.Equal(t, wantEnds, ends)
		require.NoError(t, protoIdentity(&part, message, true), "the beginning of a message may be all of it")
		require.Equal(t, item, part)
	})
}

// FuzzAppendObject makes objects of their own of the items of a list, which a decoder reads as it
// reads the item, with the kind of the list where the item has none.
func FuzzAppendObject(f *testing.F) {
	for _, seed := range []string{
		`{"metadata":{"name":"a"}}`, `{"kind":"","apiVersion":null,"metadata":{"name":"a"}}`, ` { "metadata" : { "name" : "a" } } `,
		`{"kind":"Own","kind":null,"metadata":{"name":"a"}}`, `{"kind":"Own","metadata":{"name":"a"},"apiVersion":"own/v1"}`, `{"k\u0069nd":"Own","metadata":{"name":"a"}}`,
		`{"metadata":{"name":"a"},"ki\u006ed":"","apiVersion":"q\"\\/1"}`, `{"metadata":{"name":"a"},"kind":"X"}`,
		`{"Kind":"another field","metadata":{"name":"a"}}`, `{"kind":null,"kind":"","metadata":{"name":"a"}}`,
	} {
		f.Add([]byte(seed), "v1", "Pod")
		f.Add([]byte(seed), "", "")
		f.Add([]byte(seed), "é\"\\\x01/v1", "\n\u2028")
	}
	f.Fuzz(func(t *testing.T, object []byte, apiVersion, kind string) {
		if len(object) > 1<<13 || !utf8.ValidString(apiVersion) || !utf8.ValidString(kind) {
			return
		}
		var want map[string]any
		if utiljson.Unmarshal(object, &want) != nil {
			return
		}
		item, err := NewListReader(bytes.NewReader(joined(`{"items":[`, object, `]}`)), JSON, Options{}).Next()
		if err != nil {
			return // FuzzJSONList tells when that is right
		}
		// Into a struct, null leaves what a key of that name before it has said; into a map, it
		// does not.
		var typed, typedOwn objectMeta
		require.NoError(t, utiljson.Unmarshal(object, &typed))
		typed.Kind, typed.APIVersion = cmp.Or(typed.Kind, kind), cmp.Or(typed.APIVersion, apiVersion)
		require.Equal(t, string(item.Bytes), string(item.AppendObject(nil, "", "")))
		own := item.AppendObject(nil, apiVersion, kind)
		require.NoError(t, utiljson.Unmarshal(own, &typedOwn), "%s", own)
		require.Equal(t, typed, typedOwn, "%s", own)
		var got map[string]any
		require.NoError(t, utiljson.Unmarshal(own, &got), "%s", own)
		for _, field := range []string{"kind", "apiVersion"} {
			delete(want, field)
			delete(got, field)
		}
		require.Equal(t, want, got, "%s", own)
	})
}

func joined(before string, middle []byte, behind string) []byte {
	return append(append([]byte(before), middle...), behind...)
}

// FuzzWatchStatus reads the Status of an ERROR event as the decoder reads it on its own.
func FuzzWatchStatus(f *testing.F) {
	for _, seed := range []string{
		`{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"too old","reason":"Expired","code":410}`,
		`{"code":429,"details":{"retryAfterSeconds":-5,"causes":[{"reason":"x"}]}}`, `{}`, `{"code":"410"}`, `null`, `"text"`, `{"code":1e400}`, `{"CODE":410}`,
	} {
		f.Add([]byte(seed), false)
	}
	status := metav1.Status{Status: "Failure", Code: 410, Reason: "Expired", Details: &metav1.StatusDetails{RetryAfterSeconds: 3}}
	message, err := status.Marshal()
	require.NoError(f, err)
	for _, seed := range []string{string(message), "", "\x0a", "\x08\x01", "\n\x06000\x80\xff0"} {
		f.Add([]byte(seed), true)
	}
	f.Fuzz(func(t *testing.T, text []byte, inProtobuf bool) {
		if len(text) > 1<<13 {
			return
		}
		var want metav1.Status
		var body []byte
		var format Format
		if inProtobuf {
			if want.Unmarshal(text) != nil {
				return
			}
			unknown := runtime.Unknown{TypeMeta: runtime.TypeMeta{APIVersion: "v1", Kind: "Status"}, Raw: text}
			envelope, err := unknown.Marshal()
			require.NoError(t, err)
			format, body = Protobuf, protoFrame(t, "ERROR", append(bytes.Clone(protoPrefix), envelope...))
		} else {
			if json.Unmarshal(text, &want) != nil {
				return
			}
			body = joined(`{"type":"ERROR","object":`, text, "}\n")
		}
		event, err := NewWatchReader(bytes.NewReader(body), format, Options{}).Next()
		if err != nil {
			var identity objectMeta
			require.True(t, !inProtobuf && (utiljson.Unmarshal(text, &identity) != nil || !bytes.HasPrefix(bytes.TrimSpace(text), []byte("{"))), "%v of %q", err, text)
			return
		}
		got, err := event.Status()
		require.NoError(t, err)
		require.Equal(t, &want, got)
	})
}

// FuzzFormatOf takes for JSON and protobuf what begins so, up to the parameters, in any case of
// letters.
func FuzzFormatOf(f *testing.F) {
	for _, seed := range []string{"application/json", "application/vnd.kubernetes.protobuf;stream=watch", "Application/JSON ; charset=utf-8", "application/json;as=Table;v=v1;g=meta.k8s.io",
		"", ";", "text/html", "application/json;charset", "application/json,text/html", "application/jsonx", "application/json; a=\"\\", "application/json;a=1;a=2", "\x00"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, contentType string) {
		format, err := FormatOf(contentType)
		media, parameters, _ := strings.Cut(contentType, ";")
		media = strings.ToLower(strings.TrimSpace(media))
		known := map[string]Format{runtime.ContentTypeJSON: JSON, runtime.ContentTypeProtobuf: Protobuf}
		want, ok := known[media]
		if contentType == "" {
			want, ok = Undeclared, true
		}
		switch {
		case err == nil:
			require.True(t, ok, "%q", contentType)
			require.Equal(t, want, format)
		case parameters == "":
			require.False(t, ok, "%q", contentType)
		}
		if err != nil {
			require.ErrorIs(t, err, api.ErrContentType)
		}
	})
}

// FuzzReaderMemory reads anything with every reader, in memory that what came pays for: a length in
// it asks for none.
func FuzzReaderMemory(f *testing.F) {
	for _, seed := range jsonListSeeds {
		f.Add([]byte(seed))
	}
	for _, seed := range append(protoListSeeds(f), protoWatchSeeds(f)...) {
		f.Add(seed)
	}
	f.Add(binary.BigEndian.AppendUint32(nil, 1<<24))             // a frame of 16 MiB
	f.Add([]byte("k8s\x00\x12\xff\xff\xff\x7f\x12\xff\xff\xff")) // a list of 256 MiB
	f.Add([]byte(`{"items":[` + strings.Repeat("7,", 2000)))
	f.Add([]byte(strings.Repeat("[", 4000)))
	f.Fuzz(func(t *testing.T, body []byte) {
		if len(body) > 1<<14 {
			return
		}
		for format := range Formats {
			for _, open := range []open{openList(format), openWatch(format)} {
				before := allocated()
				switch r := open(bytes.NewReader(body), Options{BufferBytes: minBufferBytes}).(type) {
				case ListReader:
					for end := error(nil); end == nil || recoverable(end); {
						_, end = r.Next()
					}
				case WatchReader:
					for end := error(nil); end == nil || recoverable(end); {
						_, end = r.Next()
					}
				}
				require.Less(t, allocated()-before, uint64(512<<10+1000*len(body)), "format %v", format)
			}
		}
	})
}

// allocated is how many bytes the process has allocated so far. The metrics of the runtime count
// small objects late, some at the next collection of garbage.
func allocated() uint64 {
	var m goruntime.MemStats
	goruntime.ReadMemStats(&m)
	return m.TotalAlloc
}
