package objectcache

import (
	"bytes"
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/rvinformer/informer/internal/leaf/gotype"
	"github.com/rvinformer/informer/internal/testkit/samples"
)

func TestShapeFitsWhatItsTypeDecodes(t *testing.T) {
	require.Nil(t, shapeOf(reflect.TypeFor[*unstructured.Unstructured]()))
	pods := shapeOf(reflect.TypeFor[*corev1.Pod]())
	c := samples.Cluster{Seed: 1}
	for i := range 50 {
		encoded, err := c.Pod(i, i%3).Marshal()
		require.NoError(t, err)
		require.True(t, pods.fits(encoded))
	}
	metadata := shapeOf(reflect.TypeFor[*metav1.PartialObjectMetadata]())
	encoded, err := (&metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: "a"}}).Marshal()
	require.NoError(t, err)
	require.True(t, metadata.fits(encoded))
}

func TestShapeRefusesWhatItsTypeDoesNotDecode(t *testing.T) {
	pods := shapeOf(reflect.TypeFor[*corev1.Pod]())
	c := samples.Cluster{Seed: 1}
	encoded, err := c.Pod(7, 1).Marshal()
	require.NoError(t, err)
	for cut := range encoded {
		require.Equal(t, (&corev1.Pod{}).Unmarshal(encoded[:cut]) == nil, pods.fits(encoded[:cut]), cut)
	}
	const spec, nodeName = 2 << 3, 10 << 3
	mistyped := append(bytes.Clone(encoded), spec|gotype.Varint, 7)
	require.Error(t, (&corev1.Pod{}).Unmarshal(mistyped))
	require.False(t, pods.fits(mistyped))
	within := append(bytes.Clone(encoded), spec|gotype.Bytes, 2, nodeName|gotype.Varint, 7)
	require.Error(t, (&corev1.Pod{}).Unmarshal(within))
	require.False(t, pods.fits(within))
	const labels, key = 1<<3 | gotype.Bytes, 1<<3 | gotype.Bytes
	entry := append(bytes.Clone(encoded), labels, 5, 11<<3|gotype.Bytes, 3, key, 9, 'a') // its key is longer than the entry
	require.Error(t, (&corev1.Pod{}).Unmarshal(entry))
	require.False(t, pods.fits(entry))
	unknown := append(bytes.Clone(encoded), 15<<3|gotype.Varint, 7)
	require.NoError(t, (&corev1.Pod{}).Unmarshal(unknown))
	require.True(t, pods.fits(unknown))
}

// A decoder reads the value of an entry as bytes, whatever the entry says of it.
func TestShapeRefusesMistypedBytesOfMap(t *testing.T) {
	secrets := shapeOf(reflect.TypeFor[*corev1.Secret]())
	encoded, err := (&corev1.Secret{Data: map[string][]byte{"a": []byte("b")}}).Marshal()
	require.NoError(t, err)
	require.True(t, secrets.fits(encoded))
	const data, key, value = 2<<3 | gotype.Bytes, 1<<3 | gotype.Bytes, 2<<3 | gotype.Varint
	mistyped := append(bytes.Clone(encoded), data, 5, key, 1, 'a', value, 7)
	require.Error(t, (&corev1.Secret{}).Unmarshal(mistyped))
	require.False(t, secrets.fits(mistyped))
}

func BenchmarkShapeOfPod(b *testing.B) {
	pods := shapeOf(reflect.TypeFor[*corev1.Pod]())
	var encoded [][]byte
	for _, pod := range (samples.Cluster{Seed: 1}).Pods(0, 1000, 0) {
		message, err := pod.Marshal()
		require.NoError(b, err)
		encoded = append(encoded, message)
	}
	for i := 0; b.Loop(); i++ {
		pods.fits(encoded[i%len(encoded)])
	}
}

// chain is a message of a type that contains itself, as JSONSchemaProps does.
type chain struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata" protobuf:"bytes,1,opt,name=metadata"`
	Next              *chain `json:"next,omitempty" protobuf:"bytes,2,opt,name=next"`
}

func (c *chain) DeepCopyObject() runtime.Object { copied := *c; return &copied }
func (c *chain) Reset()                         { *c = chain{} }
func (c *chain) Marshal() ([]byte, error)       { return c.ObjectMeta.Marshal() }
func (c *chain) Unmarshal(b []byte) error       { return c.ObjectMeta.Unmarshal(b) }

func TestTypeThatContainsItself(t *testing.T) {
	s := NewStore(&chain{}, nil, StoreOptions{})
	require.NoError(t, s.Add(&chain{ObjectMeta: metav1.ObjectMeta{Name: "a"}}))
	_, exists, err := s.GetByKey("a")
	require.NoError(t, err)
	require.True(t, exists)
}

// numbered has the Go types whose fields have tags that name another wire type than their code writes, filled in.
func numbered() []message {
	policy, one, port, yes := corev1.PreemptNever, int32(1), int32(8080), true
	http := "http"
	return []message{
		&corev1.Pod{Spec: corev1.PodSpec{Priority: &one, PreemptionPolicy: &policy, EnableServiceLinks: &yes}},
		&corev1.Service{Spec: corev1.ServiceSpec{HealthCheckNodePort: 30100, PublishNotReadyAddresses: true, SessionAffinityConfig: &corev1.SessionAffinityConfig{ClientIP: &corev1.ClientIPConfig{TimeoutSeconds: &one}}}},
		&discoveryv1.EndpointSlice{Ports: []discoveryv1.EndpointPort{{Name: &http, Port: &port}}, Endpoints: []discoveryv1.Endpoint{{Conditions: discoveryv1.EndpointConditions{Ready: &yes, Serving: &yes}}}},
	}
}

func TestShapeFitsNumbersWhateverTheirTagsSay(t *testing.T) {
	for _, obj := range numbered() {
		encoded, err := obj.Marshal()
		require.NoError(t, err)
		require.True(t, shapeOf(reflect.TypeOf(obj)).fits(encoded), "%T", obj)
	}
}
