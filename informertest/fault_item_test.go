package informertest_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/rvinformer/informer/informertest"
)

// item is one item of a list, or the object of one event: nil where it is no object, else its size.
type item struct {
	name string
	size int
	err  error
}

// itemsOf reads every item of a page on its own, as a careful reader does.
func itemsOf(t *testing.T, text []byte) (items []item) {
	t.Helper()
	if !bytes.HasPrefix(text, []byte("k8s\x00")) {
		var page struct {
			Items []any `json:"items"`
		}
		require.NoError(t, utiljson.Unmarshal(text, &page))
		for _, v := range page.Items {
			items = append(items, jsonItem(v))
		}
		return items
	}
	var outer runtime.Unknown
	require.NoError(t, outer.Unmarshal(text[4:]))
	for raw := outer.Raw; len(raw) > 0; {
		tag, rest := raw[0], raw[1:]
		n, width := uvarint(rest)
		require.Positive(t, width)
		message := rest[width : width+n]
		raw = rest[width+n:]
		if tag == 2<<3|2 {
			var o metav1.PartialObjectMetadata
			err := o.Unmarshal(message)
			items = append(items, item{o.Name, len(message), err})
		}
	}
	return items
}

func uvarint(b []byte) (n, width int) {
	for i, c := range b {
		n |= int(c&0x7f) << (7 * i)
		if c < 0x80 {
			return n, i + 1
		}
	}
	return 0, 0
}

func jsonItem(v any) item {
	m, ok := v.(map[string]any)
	if !ok {
		return item{err: fmt.Errorf("it is a %T", v)}
	}
	if _, ok := m["metadata"].(map[string]any); !ok {
		return item{err: fmt.Errorf("its metadata are a %T", m["metadata"])}
	}
	u := unstructured.Unstructured{Object: m}
	return item{name: u.GetName(), size: len(fmt.Sprint(m))}
}

// eventsOf reads the objects of the events of a watch.
func eventsOf(t *testing.T, body io.ReadCloser, inProtobuf bool) (items []item) {
	t.Helper()
	if !inProtobuf {
		text, err := io.ReadAll(body)
		require.NoError(t, err)
		for line := range strings.Lines(string(text)) {
			var event struct {
				Object any `json:"object"`
			}
			require.NoError(t, utiljson.Unmarshal([]byte(line), &event))
			items = append(items, jsonItem(event.Object))
		}
		return items
	}
	frames := protobuf.LengthDelimitedFramer.NewFrameReader(body)
	envelope := protobuf.NewSerializer(scheme.Scheme, scheme.Scheme)
	buffer := make([]byte, 1<<20)
	for {
		n, err := frames.Read(buffer)
		if err == io.EOF {
			return items
		}
		require.NoError(t, err)
		var event metav1.WatchEvent
		require.NoError(t, event.Unmarshal(buffer[:n]))
		into := schema.GroupVersionKind{}
		obj, _, err := envelope.Decode(event.Object.Raw, &into, nil)
		it := item{size: len(event.Object.Raw), err: err}
		if err == nil {
			it.name = obj.(metav1.Object).GetName()
		}
		items = append(items, it)
	}
}

func TestFaultItems(t *testing.T) {
	const (
		proto         = "application/vnd.kubernetes.protobuf"
		protoMetadata = proto + ";as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
	)
	everyTransport(t, func(t *testing.T, s *informertest.Server, client *http.Client) {
		for i := range 5 {
			_, err := s.Create(widgets, widget("a", fmt.Sprint("w", i), 1))
			require.NoError(t, err)
		}
		get := func(path, accept, query string) *http.Response {
			req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL()+path+query, nil)
			require.NoError(t, err)
			req.Header.Set("Accept", accept)
			resp, err := client.Do(req)
			require.NoError(t, err)
			t.Cleanup(func() { resp.Body.Close() })
			require.Equal(t, http.StatusOK, resp.StatusCode)
			return resp
		}
		for _, path := range []string{configMapsPath, widgetsPath} {
			for _, accept := range []string{"application/json", proto, asMetadata, protoMetadata} {
				if accept == proto && path == widgetsPath {
					continue
				}
				lists := strings.Replace(accept, "PartialObjectMetadata", "PartialObjectMetadataList", 1)
				for _, watching := range []bool{false, true} {
					read := func() []item {
						if watching {
							return eventsOf(t, get(path, accept, "?watch=1&timeoutSeconds=1").Body, strings.HasPrefix(accept, proto))
						}
						text, err := io.ReadAll(get(path, lists, "").Body)
						require.NoError(t, err)
						return itemsOf(t, text)
					}
					if watching && s.URL()[len(s.URL())-9:] != "localhost" {
						continue // takes a second each
					}
					whole := read()
					require.Len(t, whole, 5)

					inject(t, s, "garbage=2")
					inject(t, s, "oversize=4,5000")
					for range 4 { // of the kinds of garbage
						spoiled := read()
						require.Len(t, spoiled, 5)
						require.Error(t, spoiled[1].err)
						require.Equal(t, whole[3].name, spoiled[3].name)
						require.Greater(t, spoiled[3].size, whole[3].size+5000)
						require.Less(t, spoiled[3].size, whole[3].size+5200)
						for _, i := range []int{0, 2, 4} {
							require.Equal(t, whole[i], spoiled[i])
						}
					}
					s.Heal()
				}
			}
		}
	})
}

func TestFaultGarbageMeetsWatchesUnderWay(t *testing.T) {
	inBubble(t, func(t *testing.T, s *informertest.Server) {
		w := follow(t, s, configMapsPath, "timeoutSeconds", "600")
		w.want(fiveAdded...)
		inject(t, s, "garbage=2")
		create(t, s, configMap("c", "1", "x"), configMap("c", "2", "x"), configMap("c", "3", "x"))
		w.want("ADDED 1 7")
		line, err := w.in.ReadString('\n')
		require.NoError(t, err)
		require.Regexp(t, `^{"type":"ADDED","object":("garbage"|\["garbage"\]|{"metadata":7})}`, line)
		w.want("ADDED 3 9")
	})
}

// What an unversioned event shows beside its version is the object as it is.
func TestFaultUnversioned(t *testing.T) {
	inBubble(t, func(t *testing.T, s *informertest.Server) {
		inject(t, s, "watch unversioned=1")
		w := follow(t, s, configMapsPath, "timeoutSeconds", "600")
		line, err := w.in.ReadString('\n')
		require.NoError(t, err)
		var event struct {
			Type   string
			Object metav1.PartialObjectMetadata
		}
		require.NoError(t, json.Unmarshal([]byte(line), &event))
		require.Equal(t, "ADDED", event.Type)
		require.Equal(t, "1", event.Object.Name)
		require.NotEmpty(t, event.Object.UID)
		require.Empty(t, event.Object.ResourceVersion)
	})
}
