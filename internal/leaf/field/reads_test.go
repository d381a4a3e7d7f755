package field_test

import (
	"encoding/json"
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/rvinformer/informer/internal/leaf/field"
)

// Parts of a message are messages of their own.
func TestBytesInProtobuf(t *testing.T) {
	pod := pod()
	encoded, err := pod.Marshal()
	require.NoError(t, err)
	other, err := (&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"more": "x"}, Annotations: map[string]string{"b": "c"}}, Spec: corev1.PodSpec{NodeName: "other"}}).Marshal()
	require.NoError(t, err)
	typed := field.Of(podType)
	for name, message := range map[string][]byte{"once": encoded, "in two parts": append(other, encoded...)} {
		t.Run(name, func(t *testing.T) {
			var want corev1.Pod
			require.NoError(t, want.Unmarshal(message))
			read := func(path string, into interface{ Unmarshal([]byte) error }) {
				value, why := typed.InProtobuf(message, path)
				require.Equal(t, field.Found, why, path)
				require.NoError(t, into.Unmarshal(value.Bytes()))
			}
			var labels, owners metav1.ObjectMeta
			read("metadata.labels", &labels)
			require.Equal(t, metav1.ObjectMeta{Labels: want.Labels}, labels)
			read("metadata.ownerReferences", &owners)
			require.Equal(t, metav1.ObjectMeta{OwnerReferences: want.OwnerReferences}, owners)
			var spec corev1.PodSpec
			read("spec", &spec)
			require.Equal(t, want.Spec, spec)
			require.Equal(t, want.Labels, field.Labels(message, true))
			require.Equal(t, want.OwnerReferences, field.Owners(message, true))
			text, err := json.Marshal(&want)
			require.NoError(t, err)
			require.Equal(t, want.Labels, field.Labels(text, false))
			require.Equal(t, want.OwnerReferences, field.Owners(text, false))
		})
	}
}

func TestLabelsAndOwnersThatCannotBeRead(t *testing.T) {
	for _, text := range []string{"", "null", "{}", `{"metadata":null}`, `{"metadata":{"labels":null,"ownerReferences":null}}`, `{"metadata":{"labels":{},"ownerReferences":[]}}`,
		`{"metadata":{"labels":[],"ownerReferences":{}}}`, `{"metadata":{"labels":{"a":1},"ownerReferences":[1]}}`, `{"metadata":{"labels":{"a":"\x"},"ownerReferences":[{"name":1}]}}`,
		`{"metadata":{"labels":{"a":"b"},"ownerReferences":[{}]}`} {
		require.Nil(t, field.Labels([]byte(text), false), text)
		require.Nil(t, field.Owners([]byte(text), false), text)
	}
	require.Equal(t, map[string]string{"a": "", "é\n": "\t"}, field.Labels([]byte(`{"metadata":{"labels": { "a" : null , "é\n":"x","\u00e9\n":"\t"} }}`), false))
	require.Nil(t, field.Labels([]byte{0x0a, 2, 0x5a, 9}, true))
	require.Nil(t, field.Owners([]byte{0x0a, 2, 0x6a, 9}, true))
}

func TestReasons(t *testing.T) {
	pod := pod()
	pod.Spec.NodeName = ""
	encoded, err := pod.Marshal()
	require.NoError(t, err)
	text, err := json.Marshal(pod)
	require.NoError(t, err)
	typed := field.Of(podType)
	for path, want := range map[string][2]field.Reason{ // in JSON, in protobuf
		"":                          {field.BadPath, field.BadPath},
		"spec..nodeName":            {field.BadPath, field.BadPath},
		"spec.":                     {field.BadPath, field.BadPath},
		"spec.nodeName":             {field.Missing, field.Missing},
		"spec.nodename":             {field.Missing, field.UnknownField},
		"spec.containers.0":         {field.Missing, field.UnknownField},
		"metadata.name.x":           {field.Missing, field.UnknownField},
		"metadata.annotations.none": {field.Missing, field.Missing},
		"metadata.name":             {field.Found, field.Found},
	} {
		_, inJSON := field.InJSON(text, path)
		_, inProtobuf := typed.InProtobuf(encoded, path)
		require.Equal(t, want, [2]field.Reason{inJSON, inProtobuf}, path)
	}
	_, why := field.InJSON(text[:len(text)-1], "metadata.name")
	require.Equal(t, field.Malformed, why)
	_, why = typed.InProtobuf(encoded[:len(encoded)-1], "metadata.name")
	require.Equal(t, field.Malformed, why)
	_, why = field.Metadata.InProtobuf(encoded, "spec.nodeName")
	require.Equal(t, field.UnknownField, why)
	_, why = field.Metadata.InProtobuf(encoded, "metadata.name")
	require.Equal(t, field.Found, why)
}

// A path leads through text that is kept in a message.
func TestTextInProtobuf(t *testing.T) {
	typed := field.Of(reflect.TypeFor[*appsv1.ControllerRevision]())
	for text, want := range map[string]field.Reason{`{"spec": {"a": "b"}}`: field.Found, `{"spec":`: field.Malformed, `null`: field.Missing, "": field.Missing} {
		encoded, err := (&appsv1.ControllerRevision{Data: runtime.RawExtension{Raw: []byte(text)}}).Marshal()
		require.NoError(t, err)
		value, why := typed.InProtobuf(encoded, "data.spec.a")
		require.Equal(t, want, why, text)
		if why == field.Found {
			require.Equal(t, "b", value.String())
			value, _ = typed.InProtobuf(encoded, "data")
			require.Equal(t, text, string(value.Bytes()))
		}
	}
}

// Fields whose order repeats do not take time by the square of their number.
func TestScatteredFields(t *testing.T) {
	var message []byte
	const n = 200_000
	for range n {
		message = append(message, 0x5a, 0, 0x62, 0) // a label, an annotation
	}
	object := append([]byte{0x0a, byte(len(message)&0x7F | 0x80), byte(len(message)>>7&0x7F | 0x80), byte(len(message) >> 14)}, message...)
	value, why := field.Metadata.InProtobuf(object, "metadata.labels")
	require.Equal(t, field.Found, why)
	require.Len(t, value.Bytes(), 2*n)
}

func TestFieldAllocatesNothing(t *testing.T) {
	encoded, err := pod().Marshal()
	require.NoError(t, err)
	text, err := json.Marshal(pod())
	require.NoError(t, err)
	typed := field.Of(podType)
	for _, path := range []string{"metadata.name", `metadata.labels.app\.kubernetes\.io/name`, "metadata.ownerReferences", "metadata.labels", "spec", "spec.nodeName",
		"spec.terminationGracePeriodSeconds", "spec.hostNetwork", "spec.securityContext.runAsUser", "spec.overhead.cpu", "status.phase", "status.none"} {
		sum := 0
		use := func(v field.Value, _ field.Reason) { sum += len(v.Bytes()) + int(v.Int()) }
		use(typed.InProtobuf(encoded, path)) // reads the Go types
		require.Zero(t, testing.AllocsPerRun(100, func() { use(field.InJSON(text, path)) }), path)
		require.Zero(t, testing.AllocsPerRun(100, func() { use(typed.InProtobuf(encoded, path)) }), path)
	}
}
