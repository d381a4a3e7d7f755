package objectcache_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/rvinformer/informer/internal/testkit/samples"
	"github.com/rvinformer/informer/objectcache"
)

func TestExplainCountsEachField(t *testing.T) {
	s := objectcache.NewStore(nil, nil, objectcache.StoreOptions{})
	objects := []string{
		`{"apiVersion":"g/v1","kind":"K","metadata":{"annotations":{"a.b/c":"a \"note\""},"name":"a"},"spec":{"l":[{"x":1},{"x":22}],"m":{}}}`,
		`{"apiVersion":"g/v1","kind":"K","metadata":{"name":"b"},"spec":{"l":[],"t":true}}`,
	}
	total := 0
	for _, text := range objects {
		u := &unstructured.Unstructured{}
		require.NoError(t, json.Unmarshal([]byte(text), u))
		require.NoError(t, s.Add(u))
		total += len(text)
	}
	e := s.Explain(0)
	require.Equal(t, 2, e.Objects)
	require.Equal(t, 2, e.Sampled)
	require.Equal(t, s.SizeBytes(), e.SizeBytes)
	require.Equal(t, int64(total), e.JSON)
	require.Equal(t, int64(total), e.Encoded)
	sizes := map[string]objectcache.PathSize{}
	for _, p := range e.Paths {
		sizes[p.Path] = p
	}
	require.Equal(t, objectcache.PathSize{Path: "apiVersion", Values: 2, Bytes: 2 * int64(len(`"apiVersion":"g/v1"`))}, sizes["apiVersion"])
	require.Equal(t, objectcache.PathSize{Path: `metadata.annotations.a\.b/c`, Values: 1, Bytes: int64(len(`"a.b/c":"a \"note\""`))}, sizes[`metadata.annotations.a\.b/c`])
	require.Equal(t, objectcache.PathSize{Path: "spec.l[].x", Values: 2, Bytes: int64(len(`"x":1"x":22`))}, sizes["spec.l[].x"])
	require.Equal(t, objectcache.PathSize{Path: "spec.l", Values: 2, Bytes: int64(len(`"l":[{"x":1},{"x":22}]"l":[]`))}, sizes["spec.l"])
	require.Contains(t, e.String(), "spec.l[].x")
	for i := 1; i < len(e.Paths); i++ {
		require.GreaterOrEqual(t, e.Paths[i-1].Bytes, e.Paths[i].Bytes)
	}
}

func TestExplainSamples(t *testing.T) {
	s := objectcache.NewStore(&corev1.Pod{}, nil, objectcache.StoreOptions{})
	require.Empty(t, s.Explain(10).Paths)
	for _, pod := range (samples.Cluster{Seed: 1}).Pods(0, 100, 0) {
		require.NoError(t, s.Add(pod))
	}
	before := s.Decoded()
	e := s.Explain(10)
	require.Equal(t, int64(10), s.Decoded()-before)
	require.Equal(t, 100, e.Objects)
	require.Equal(t, 10, e.Sampled)
	require.Greater(t, e.JSON, e.Encoded, "protobuf is shorter")
	require.Equal(t, 100, s.Explain(1000).Sampled)
	for _, p := range e.Paths {
		require.GreaterOrEqual(t, p.Bytes*1000, e.JSON, "what takes less is left out")
	}
}
