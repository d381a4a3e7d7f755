package jsonmap_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/rvinformer/informer/internal/leaf/jsonmap"
	"github.com/rvinformer/informer/internal/leaf/wire"
	"github.com/rvinformer/informer/internal/testkit/samplepod"
	"github.com/rvinformer/informer/internal/testkit/samples"
)

// requireSame decodes a text as apimachinery does and with d, and compares what comes of it.
func requireSame(t require.TestingT, d *jsonmap.Decoder, text []byte) {
	var want map[string]interface{}
	wantErr := utiljson.Unmarshal(text, &want)
	given := slices.Clone(text)
	got, err := d.Decode(given)
	clear(given) // no string may be of the text
	if wantErr != nil {
		require.Error(t, err, "%q: apimachinery says %v", text, wantErr)
		require.Nil(t, got)
		fault, ok := errors.AsType[*wire.MalformedError](err)
		require.True(t, ok)
		require.LessOrEqual(t, fault.Offset, len(text))
		require.GreaterOrEqual(t, fault.Offset, 0)
		return
	}
	require.NoError(t, err, "%q", text)
	require.Equal(t, want, got, "%q", text)
}

// requireSameObject compares Pool.Object with UnstructuredJSONScheme.
func requireSameObject(t require.TestingT, pool *jsonmap.Pool, text []byte) {
	want, _, wantErr := unstructured.UnstructuredJSONScheme.Decode(text, nil, &unstructured.Unstructured{})
	got, err := pool.Object(text)
	if wantErr != nil {
		require.Error(t, err, "%q: apimachinery says %v", text, wantErr)
		require.Equal(t, runtime.IsMissingKind(wantErr), errors.Is(err, jsonmap.ErrNoKind), "%q: %v", text, err)
		return
	}
	require.NoError(t, err, "%q", text)
	require.Equal(t, want, got, "%q", text)
}

func marshal(t testing.TB, v interface{}) []byte {
	text, err := json.Marshal(v)
	require.NoError(t, err)
	return text
}

// pods are texts of siblings with the entropy of real ones.
func pods(t testing.TB, n int) (texts [][]byte) {
	for _, pod := range (samples.Cluster{}).Pods(0, n, 2) {
		pod.APIVersion, pod.Kind = "v1", "Pod"
		texts = append(texts, marshal(t, pod))
	}
	return texts
}

// smallPods are those of the benchmarks' server.
func smallPods(t testing.TB, n int) (texts [][]byte) {
	for i := range n {
		app := fmt.Sprintf("app-%d", i%40)
		pod := samplepod.New(samplepod.Identity{
			App: app, Namespace: fmt.Sprintf("ns-%d", i%7), Node: fmt.Sprintf("node-%d", i%100), ReplicaSet: app + "-12345", Suffix: fmt.Sprint(10000 + i),
			Hash: fmt.Sprintf("%08x", i*7654321), UID: "7a5b", OwnerUID: "0c4d", ResourceVersion: fmt.Sprint(1000 + i), Created: time.Unix(int64(1e9+i*100), 0),
		})
		pod.APIVersion, pod.Kind = "v1", "Pod"
		texts = append(texts, marshal(t, pod))
	}
	return texts
}

// bodies are texts of objects as servers send them.
func bodies(t testing.TB) (texts [][]byte) {
	var c samples.Cluster
	for i := range 3 {
		texts = append(texts, marshal(t, c.Release(i, i).Object))
	}
	texts = append(texts, pods(t, 3)...)
	texts = append(texts, smallPods(t, 2)...)
	for _, text := range []string{
		`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web","namespace":"shop","uid":"1b4e28ba-2fa1-11d2-883f-0016d3cca427","resourceVersion":"1203","generation":3,"creationTimestamp":"2024-05-01T10:00:00Z","annotations":{"deployment.kubernetes.io/revision":"3"}},"spec":{"replicas":3,"selector":{"matchLabels":{"app":"web"}},"strategy":{"type":"RollingUpdate","rollingUpdate":{"maxUnavailable":"25%","maxSurge":1}},"template":{"metadata":{"creationTimestamp":null,"labels":{"app":"web"}},"spec":{"containers":[{"name":"web","image":"nginx:1.27","ports":[{"containerPort":8080,"protocol":"TCP"}],"resources":{},"args":[]}]}}},"status":{"observedGeneration":3,"replicas":3,"conditions":[{"type":"Available","status":"True","lastUpdateTime":"2024-05-01T10:01:00Z"}]}}`,
		`{"apiVersion":"v1","kind":"Event","metadata":{"name":"web.17a","namespace":"shop"},"involvedObject":{"kind":"Pod","name":"web"},"reason":"BackOff","message":"Back-off restarting failed container \"web\" in pod <web>\n\u00fcber 5\u00a0min","count":1247,"firstTimestamp":null,"eventTime":"2024-05-01T10:00:00.123456Z","series":null}`,
		`{"apiVersion":"example.com/v1","kind":"Sample","metadata":{"name":"π"},"spec":{"ratio":0.25,"big":12345678901234567890,"small":-1e-7,"exact":9007199254740993,"items":[[1,2.0],[],{}],"":"","nothing":null,"yes":true,"no":false}}`,
		`{"kind":"List","apiVersion":"v1","items":[{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a"}}]}`,
	} {
		texts = append(texts, []byte(text))
	}
	return texts
}
