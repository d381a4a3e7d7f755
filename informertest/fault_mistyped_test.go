package informertest_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/rvinformer/informer/informertest"
)

// decoded is what decoders of both kinds make of an object.
type decoded struct {
	name, uid, version string
	typed              error // of its Go type
}

const (
	acceptProtobuf         = "application/vnd.kubernetes.protobuf"
	acceptProtobufMetadata = acceptProtobuf + ";as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
)

// objectsOf are the objects of a list, or of the ADDED events of a watch, each on its own.
func objectsOf(t *testing.T, body io.Reader, accept string, watching bool) (objects [][]byte) {
	t.Helper()
	switch accept {
	case acceptProtobuf, acceptProtobufMetadata:
		if watching {
			frames := protobuf.LengthDelimitedFramer.NewFrameReader(io.NopCloser(body))
			buffer := make([]byte, 1<<20)
			for {
				n, err := frames.Read(buffer)
				if err == io.EOF {
					return objects
				}
				require.NoError(t, err)
				var event metav1.WatchEvent
				var inner runtime.Unknown
				require.NoError(t, event.Unmarshal(buffer[:n]))
				require.NoError(t, inner.Unmarshal(event.Object.Raw[4:]))
				objects = append(objects, slices.Clone(inner.Raw))
			}
		}
		text, err := io.ReadAll(body)
		require.NoError(t, err)
		var outer runtime.Unknown
		require.NoError(t, outer.Unmarshal(text[4:]))
		for raw := outer.Raw; len(raw) > 0; {
			n, width := uvarint(raw[1:])
			if raw[0] == 2<<3|2 {
				objects = append(objects, raw[1+width:1+width+n])
			}
			raw = raw[1+width+n:]
		}
		return objects
	}
	decoder := json.NewDecoder(body)
	if !watching {
		var list struct{ Items []json.RawMessage }
		require.NoError(t, decoder.Decode(&list))
		for _, text := range list.Items {
			objects = append(objects, text)
		}
		return objects
	}
	for {
		var event struct{ Object json.RawMessage }
		err := decoder.Decode(&event)
		if err == io.EOF {
			return objects
		}
		require.NoError(t, err)
		objects = append(objects, event.Object)
	}
}

// decode reads an object as metadata, and as what its Go type says.
func decode(t *testing.T, text []byte, kind schema.GroupVersionKind, isProtobuf bool) (d decoded) {
	t.Helper()
	var metadata metav1.PartialObjectMetadata
	var into runtime.Object = &widgetType{}
	if kind.Group == "" {
		var err error
		into, err = scheme.Scheme.New(kind)
		require.NoError(t, err)
	}
	if isProtobuf {
		require.NoError(t, metadata.Unmarshal(onlyMetadata(t, text)))
		d.typed = into.(interface{ Unmarshal([]byte) error }).Unmarshal(text)
	} else {
		u := unstructured.Unstructured{Object: map[string]any{}}
		require.NoError(t, utiljson.Unmarshal(text, &u.Object))
		require.NoError(t, runtime.DefaultUnstructuredConverter.FromUnstructured(map[string]any{"metadata": u.Object["metadata"]}, &metadata))
		d.typed = utiljson.Unmarshal(text, into)
	}
	d.name, d.uid, d.version = metadata.Name, string(metadata.UID), metadata.ResourceVersion
	return d
}

// onlyMetadata is a message that ends after its first field.
func onlyMetadata(t *testing.T, message []byte) []byte {
	t.Helper()
	require.Equal(t, byte(1<<3|2), message[0])
	n, width := uvarint(message[1:])
	return message[:1+width+n]
}

// widgetType is the Go type of a custom resource.
type widgetType struct {
	corev1.ConfigMap
	Spec struct {
		Size int `json:"size"`
	} `json:"spec"`
}

func TestFaultMistyped(t *testing.T) {
	everyTransport(t, func(t *testing.T, s *informertest.Server, client *http.Client) {
		for i := range 3 {
			_, err := s.Create(widgets, widget("a", fmt.Sprint("w", i), 1))
			require.NoError(t, err)
			_, err = s.Create(pods, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: fmt.Sprint("p", i)}})
			require.NoError(t, err)
		}
		for path, kind := range map[string]schema.GroupVersionKind{
			"/api/v1/pods": {Version: "v1", Kind: "Pod"},
			widgetsPath:    {Group: "example.com", Version: "v1", Kind: "Widget"},
		} {
			for _, accept := range []string{"application/json", acceptProtobuf, asMetadata, acceptProtobufMetadata} {
				if accept == acceptProtobuf && path == widgetsPath {
					continue
				}
				for _, watching := range []bool{false, true} {
					read := func() (all []decoded) {
						asked, query := strings.Replace(accept, "Metadata;", "MetadataList;", 1), ""
						if watching {
							asked, query = accept, "?watch=1&timeoutSeconds=1"
						}
						req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL()+path+query, nil)
						require.NoError(t, err)
						req.Header.Set("Accept", asked)
						resp, err := client.Do(req)
						require.NoError(t, err)
						defer resp.Body.Close()
						require.Equal(t, http.StatusOK, resp.StatusCode)
						for _, text := range objectsOf(t, resp.Body, accept, watching) {
							all = append(all, decode(t, text, kind, accept == acceptProtobuf || accept == acceptProtobufMetadata))
						}
						return all
					}
					if watching && !strings.HasSuffix(s.URL(), "localhost") {
						continue // takes a second each
					}
					whole := read()
					require.Len(t, whole, 3)
					for _, d := range whole {
						require.NoError(t, d.typed)
					}
					heal := inject(t, s, "mistyped=2")
					got := read()
					heal()
					if accept == "application/json" || accept == acceptProtobuf {
						require.Error(t, got[1].typed)
						got[1].typed = nil
					}
					require.Equal(t, whole, got, "%s %s %v", path, accept, watching)
				}
			}
		}
	})
}

// Whatever an object has, no Go type of it can be decoded; its own may be another one than that of
// the scheme.
func TestFaultMistypesAllFields(t *testing.T) {
	inBubble(t, func(t *testing.T, s *informertest.Server) {
		inject(t, s, "watch mistyped=1")
		w := follow(t, s, configMapsPath, "timeoutSeconds", "600")
		line, err := w.in.ReadString('\n')
		require.NoError(t, err)
		var event struct {
			Type   string
			Object map[string]any
		}
		require.NoError(t, json.Unmarshal([]byte(line), &event))
		require.Equal(t, "ADDED", event.Type)
		require.Equal(t, "1", event.Object["metadata"].(map[string]any)["name"])
		delete(event.Object, "metadata")
		require.Equal(t, map[string]any{"kind": "ConfigMap", "apiVersion": "v1", "data": []any{true}, "immutable": []any{true}}, event.Object)
	})
}
