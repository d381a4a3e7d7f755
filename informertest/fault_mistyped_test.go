package informertest_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/rvinformer/informer/informertest"
)

// decoded is what decoders of both kinds make of an object.
type decoded struct {
	name, uid, version string
	typed              error // of its Go type
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
	_, rest := nextField(t, message)
	return message[:len(message)-len(rest)]
}

// widgetType is the Go type of a custom resource.
type widgetType struct {
	corev1.ConfigMap
	Spec struct {
		Size int `json:"size"`
	} `json:"spec"`
}

const podsPath = "/api/v1/pods"

func TestFaultMistyped(t *testing.T) {
	everyTransport(t, func(t *testing.T, s *informertest.Server, client *http.Client) {
		for i := range 3 {
			_, err := s.Create(widgets, widget("a", fmt.Sprint("w", i), 1))
			require.NoError(t, err)
			_, err = s.Create(pods, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: fmt.Sprint("p", i)}})
			require.NoError(t, err)
		}
		kinds := map[string]schema.GroupVersionKind{
			podsPath:    {Version: "v1", Kind: "Pod"},
			widgetsPath: {Group: "example.com", Version: "v1", Kind: "Widget"},
		}
		for _, form := range everyForm(s, podsPath, widgetsPath) {
			read := func() (all []decoded) {
				for _, text := range form.read(t, s, client) {
					all = append(all, decode(t, text, kinds[form.path], form.isProtobuf()))
				}
				return all
			}
			whole := read()
			require.Len(t, whole, 3)
			for _, d := range whole {
				require.NoError(t, d.typed)
			}
			heal := inject(t, s, "mistyped=2")
			got := read()
			heal()
			if !form.isMetadata() {
				require.Error(t, got[1].typed)
				got[1].typed = nil
			}
			require.Equal(t, whole, got, form)
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
