package informertest_test

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"

	"github.com/rvinformer/informer/informertest"
)

// wireForm is one way to ask for all objects of a resource.
type wireForm struct {
	path, accept string
	watching     bool
}

// everyForm returns all ways to ask for the objects at some paths. It leaves watches out where they
// take real time.
func everyForm(s *informertest.Server, paths ...string) (all []wireForm) {
	for _, path := range paths {
		for _, accept := range []string{runtime.ContentTypeJSON, protobufType, asMetadata, protobufAsMetadata} {
			if accept == protobufType && path == widgetsPath {
				continue
			}
			all = append(all, wireForm{path, accept, false})
			if strings.HasSuffix(s.URL(), "localhost") { // time is virtual
				all = append(all, wireForm{path, accept, true})
			}
		}
	}
	return all
}

func (f wireForm) String() string { return fmt.Sprintf("%s %s %v", f.path, f.accept, f.watching) }

func (f wireForm) isProtobuf() bool { return strings.HasPrefix(f.accept, protobufType) }

func (f wireForm) isMetadata() bool { return strings.Contains(f.accept, "as=PartialObjectMetadata") }

// read returns the objects of a list, or of the ADDED events of a watch, each as it came.
func (f wireForm) read(t *testing.T, s *informertest.Server, client *http.Client) [][]byte {
	t.Helper()
	accept, query := strings.Replace(f.accept, "Metadata;", "MetadataList;", 1), ""
	if f.watching {
		accept, query = f.accept, "?watch=1&timeoutSeconds=1"
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL()+f.path+query, nil)
	require.NoError(t, err)
	req.Header.Set("Accept", accept)
	resp, err := client.Do(req)
	require.NoError(t, err)
	defer resp.Body.Close()
	require.Equal(t, http.StatusOK, resp.StatusCode)
	switch {
	case f.isProtobuf() && f.watching:
		return watchedMessages(t, resp.Body)
	case f.isProtobuf():
		return listedMessages(t, resp.Body)
	case f.watching:
		return watchedTexts(t, resp.Body)
	}
	var list struct{ Items []json.RawMessage }
	require.NoError(t, json.NewDecoder(resp.Body).Decode(&list))
	texts := make([][]byte, len(list.Items))
	for i, text := range list.Items {
		texts[i] = text
	}
	return texts
}

// watchedTexts returns the objects of the events of a watch in JSON.
func watchedTexts(t *testing.T, body io.Reader) (texts [][]byte) {
	t.Helper()
	for decoder := json.NewDecoder(body); ; {
		var event struct{ Object json.RawMessage }
		err := decoder.Decode(&event)
		if err == io.EOF {
			return texts
		}
		require.NoError(t, err)
		texts = append(texts, event.Object)
	}
}

// watchedMessages returns the objects of the events of a watch in protobuf.
func watchedMessages(t *testing.T, body io.ReadCloser) (messages [][]byte) {
	t.Helper()
	frames := protobuf.LengthDelimitedFramer.NewFrameReader(body)
	buffer := make([]byte, 1<<20)
	for {
		n, err := frames.Read(buffer)
		if err == io.EOF {
			return messages
		}
		require.NoError(t, err)
		var event metav1.WatchEvent
		var inner runtime.Unknown
		require.NoError(t, event.Unmarshal(buffer[:n]))
		require.NoError(t, inner.Unmarshal(event.Object.Raw[4:]))
		messages = append(messages, slices.Clone(inner.Raw))
	}
}

// listedMessages returns the items of a list in protobuf.
func listedMessages(t *testing.T, body io.Reader) (messages [][]byte) {
	t.Helper()
	text, err := io.ReadAll(body)
	require.NoError(t, err)
	var outer runtime.Unknown
	require.NoError(t, outer.Unmarshal(text[4:]))
	for raw := outer.Raw; len(raw) > 0; {
		field, rest := nextField(t, raw)
		if raw[0] == 2<<3|2 {
			messages = append(messages, field)
		}
		raw = rest
	}
	return messages
}

// nextField returns what the first field of a message holds, which has a length, and the other
// fields.
func nextField(t *testing.T, message []byte) (field, rest []byte) {
	t.Helper()
	n, width := binary.Uvarint(message[1:])
	require.Positive(t, width)
	rest = message[1+width:]
	return rest[:n], rest[n:]
}
