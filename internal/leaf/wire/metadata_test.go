package wire_test

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/rvinformer/informer/internal/leaf/wire"
)

// requireMetadata compares what was read with what a decoder reads.
func requireMetadata(t *testing.T, want metav1.Object, got *wire.Metadata) {
	require.Equal(t, want.GetName(), string(got.Name))
	require.Equal(t, want.GetNamespace(), string(got.Namespace))
	require.Equal(t, string(want.GetUID()), string(got.UID))
	require.Equal(t, want.GetResourceVersion(), string(got.ResourceVersion))
	labels := map[string]string{}
	for _, l := range got.Labels {
		labels[string(l.Key)] = string(l.Value)
	}
	require.Equal(t, len(want.GetLabels()), len(labels))
	for key, value := range want.GetLabels() {
		require.Equal(t, value, labels[key])
	}
	controller := ""
	for _, owner := range want.GetOwnerReferences() {
		if owner.Controller != nil && *owner.Controller {
			controller = string(owner.UID)
		}
	}
	require.Equal(t, controller, string(got.Controller))
}

func exampleMetadata() *metav1.PartialObjectMetadata {
	yes, no := true, false
	return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Name: "n", Namespace: "ns", UID: "u", ResourceVersion: "17", Labels: map[string]string{"a": "1", "b\"\u00e9": "", "": "x"},
		Annotations: map[string]string{"labels": "{"}, Finalizers: []string{"f"},
		OwnerReferences: []metav1.OwnerReference{{UID: "o1", Controller: &no}, {UID: "o2", Controller: &yes}, {UID: "o3"}},
	}}
}

func TestMetadataIsReadAsDecoded(t *testing.T) {
	var m wire.Metadata
	for _, obj := range []*metav1.PartialObjectMetadata{exampleMetadata(), {}, exampleMetadata()} {
		message, err := obj.Marshal()
		require.NoError(t, err)
		require.NoError(t, m.ReadProtobuf(message))
		requireMetadata(t, obj, &m)
		text, err := json.Marshal(obj)
		require.NoError(t, err)
		require.NoError(t, m.ReadJSON(text))
		requireMetadata(t, obj, &m)
		text, err = json.MarshalIndent(obj, " ", "\t")
		require.NoError(t, err)
		require.NoError(t, m.ReadJSON(text))
		requireMetadata(t, obj, &m)
	}
}

func TestMetadataOfAnotherTypeIsAbsent(t *testing.T) {
	for _, text := range []string{
		`{"metadata":{"name":7,"labels":{"a":"b","c":1},"ownerReferences":{"uid":"u"}}}`,
		`{"metadata":[{"name":"a"}],"spec":{}}`,
		`{"metadata":{"labels":null,"name":null,"ownerReferences":[1,[],{"controller":"true","uid":"a"}]}}`,
		`{}`, `{"metadata":{"labels":{"a":"b"}},"metadata":{}}`, `{"Metadata":{"name":"a"},"metadata":{"Name":"a"}}`,
	} {
		var m wire.Metadata
		require.NoError(t, m.ReadJSON([]byte(text)), text)
		u := &unstructured.Unstructured{}
		require.NoError(t, utiljson.Unmarshal([]byte(text), &u.Object))
		m.Controller = nil
		u.SetOwnerReferences(nil)
		requireMetadata(t, u, &m)
	}
}

func TestMetadataOfCutObjects(t *testing.T) {
	message, err := exampleMetadata().Marshal()
	require.NoError(t, err)
	text, err := json.Marshal(exampleMetadata())
	require.NoError(t, err)
	var m wire.Metadata
	for i := range text {
		require.Error(t, m.ReadJSON(text[:i]), "%s", text[:i])
	}
	for i := range message {
		want := (&metav1.PartialObjectMetadata{}).Unmarshal(slices.Clone(message[:i]))
		require.Equal(t, want == nil, m.ReadProtobuf(message[:i]) == nil, "%d", i)
	}
}

// FuzzMetadata holds what is read against the decoders. They accept entries of a map that no
// encoder writes.
func FuzzMetadata(f *testing.F) {
	message, err := exampleMetadata().Marshal()
	require.NoError(f, err)
	text, err := json.Marshal(exampleMetadata())
	require.NoError(f, err)
	f.Add(message)
	f.Add(text)
	f.Add([]byte(`{"metadata":{"name":"a","name":null,"labels":{"a":"b","a":"c"},"x":[{},[]]}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		var m wire.Metadata
		var obj metav1.PartialObjectMetadata
		if obj.Unmarshal(data) == nil && m.ReadProtobuf(data) == nil {
			requireMetadata(t, &obj, &m)
		}
		u := &unstructured.Unstructured{}
		if utiljson.Unmarshal(data, &u.Object) == nil && u.Object != nil && m.ReadJSON(data) == nil {
			u.SetOwnerReferences(nil)
			m.Controller = nil
			requireMetadata(t, u, &m)
		}
	})
}
