package field_test

import (
	"bytes"
	"encoding/json"
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/rvinformer/informer/internal/leaf/field"
	"github.com/rvinformer/informer/internal/leaf/fieldpath"
)

var fuzzedPaths = []string{"metadata.name", `metadata.labels.app\.kubernetes\.io/name`, "metadata.ownerReferences", "metadata.creationTimestamp", "spec.nodeName",
	"spec.terminationGracePeriodSeconds", "spec.hostNetwork", "spec.securityContext.runAsUser", "spec.overhead.cpu", "spec", "status.phase", "status.startTime", "metadata.labels", "a.b", ""}

// nested returns what a path leads to.
func nested(object map[string]interface{}, path string) (value interface{}, there bool) {
	value, there = object, true
	for _, name := range fieldpath.Split(path) {
		within, _ := value.(map[string]interface{})
		value, there = within[name]
	}
	return value, there && fieldpath.Valid(path)
}

func FuzzInJSON(f *testing.F) {
	text, err := json.Marshal(pod())
	require.NoError(f, err)
	for _, path := range fuzzedPaths {
		f.Add(text, path)
	}
	f.Add([]byte(`{"a":{"b":1,"b":[],"b":"\u00e9\ud800"},"a":null,"\u0061":{"b":-0}}`), "a.b")
	f.Add([]byte(` { "a" : { "b" : 1e400 } } `), "a.b")
	f.Add([]byte("{\"a\":{\"b\":\"\xff\\n\"}}"), "a.b")
	f.Add([]byte(`{"a":{"b":"`), "a.b")
	f.Fuzz(func(t *testing.T, text []byte, path string) {
		before := bytes.Clone(text)
		// There is nothing to read behind the text.
		got, why := field.InJSON(text[:len(text):len(text)], path)
		require.Equal(t, before, text)
		var object map[string]interface{}
		if utiljson.Unmarshal(text, &object) != nil || object == nil {
			return
		}
		want, there := nested(object, path)
		compare(t, forms{}, "JSON", path, got, why, want, there)
	})
}

func FuzzInProtobuf(f *testing.F) {
	encoded, err := pod().Marshal()
	require.NoError(f, err)
	for _, path := range fuzzedPaths {
		f.Add(encoded, path)
		f.Add(append(bytes.Clone(encoded), encoded...), path)
		f.Add(encoded[:len(encoded)-7], path)
	}
	f.Add([]byte{}, "spec")
	typed := field.Of(podType)
	// An encoder writes the metadata, the spec, and the status of each pod. Encoded bytes may lack
	// them, and a decoded pod has them nevertheless.
	empty := formsOf(f, &corev1.Pod{}).decoded
	f.Fuzz(func(t *testing.T, encoded []byte, path string) {
		before := bytes.Clone(encoded)
		got, why := typed.InProtobuf(encoded[:len(encoded):len(encoded)], path)
		require.Equal(t, before, encoded)
		var decoded corev1.Pod
		if decoded.Unmarshal(encoded) != nil {
			return
		}
		text, err := json.Marshal(&decoded)
		if err != nil || why == field.Malformed { // the generated code lets the key of a map run over the end of its entry
			return
		}
		var object map[string]interface{}
		require.NoError(t, utiljson.Unmarshal(text, &object))
		want, there := nested(object, path)
		if ofEmpty, has := nested(empty, path); has && why == field.Missing && reflect.DeepEqual(ofEmpty, want) {
			return
		}
		compare(t, forms{}, "protobuf", path, got, why, want, there)
	})
}
