package wire_test

import (
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rvinformer/informer/internal/leaf/wire"
)

// The labels of an item are found wherever they stand, and only those of its metadata.
func TestLabelsOfItems(t *testing.T) {
	for object, want := range map[string]string{
		`{"metadata":{"name":"a","resourceVersion":"1","labels":{"a":"b"}}}`:                                                    "a=b",
		`{"metadata":{"labels":{"a":"b"},"name":"a","resourceVersion":"1"}}`:                                                    "a=b",
		`{"spec":{"labels":{"x":"y"}},"metadata":{"name":"a","labels":{ "a" : "b" , "c":"d\u0065"}}}`:                           "a=b,c=de",
		`{"metadata":{"name":"a","resourceVersion":"1"},"labels":{"x":"y"},"spec":{"metadata":{"labels":{"x":"y"}}}}`:           "",
		`{"metadata":{"name":"a","resourceVersion":"1","annotations":{"labels":"{\"x\":\"y\"}"},"labels":{"a":"b"}}}`:           "a=b",
		`{"metadata":{"name":"a","resourceVersion":"\u0031","labels":{"a":"b"}}}`:                                               "a=b",
		`{"metadata":{"name":"a","resourceVersion":"1","labels":null}}`:                                                         "",
		`{"metadata":{"name":"a","resourceVersion":"1","labels":{"a":1}}}`:                                                      "",
		`{"metadata":{"name":"a","resourceVersion":"1","labels":{}}}`:                                                           "",
		`{"metadata":{"name":"a","resourceVersion" : "1" , "labels" : {"a":"b","c":"d"},"managedFields":[{"labels":{"x":1}}]}}`: "a=b,c=d",
	} {
		list := wire.NewListReader(strings.NewReader(`{"kind":"PodList","items":[`+object+`]}`), wire.JSON, wire.Options{})
		item, err := list.Next()
		require.NoError(t, err, object)
		var m wire.Metadata
		for range 2 { // with what was found before
			encoded, ok := m.LabelsIn(&item, nil)
			require.True(t, ok)
			require.Equal(t, want, labelsOf(&m, encoded, wire.JSON), object)
			again, ok := m.LabelsIn(&item, encoded)
			require.True(t, ok)
			require.Equal(t, string(encoded), string(again))
			other, ok := m.LabelsIn(&item, []byte(`{"a":"b"}`))
			require.True(t, ok)
			require.Equal(t, string(encoded), string(other), object)
			item = item.Clone()
		}
		_, err = list.Next()
		require.ErrorIs(t, err, io.EOF)
	}
	for want, labels := range map[string]map[string]string{"": nil, "a=b": {"a": "b"}, "a=b,c=": {"a": "b", "c": ""}} {
		pod := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "a", ResourceVersion: "1", Labels: labels, Annotations: map[string]string{"x": "y"}}}
		message, err := pod.Marshal()
		require.NoError(t, err)
		var m wire.Metadata
		encoded, ok := m.LabelsIn(&wire.Item{Bytes: message, Format: wire.Protobuf}, nil)
		require.True(t, ok)
		require.Equal(t, want, labelsOf(&m, encoded, wire.Protobuf))
	}
}

func labelsOf(m *wire.Metadata, encoded []byte, format wire.Format) string {
	m.ReadLabels(encoded, format)
	var all []string
	for _, l := range m.Labels {
		all = append(all, string(l.Key)+"="+string(l.Value))
	}
	return strings.Join(all, ",")
}
