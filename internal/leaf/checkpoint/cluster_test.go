package checkpoint_test

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rvinformer/informer/api"
	"github.com/rvinformer/informer/internal/leaf/checkpoint"
	"github.com/rvinformer/informer/internal/leaf/keytable"
)

// The source of a checkpoint is in its beginning, and a checkpoint of the cluster alone is one of any
// set of objects there.
func TestCheckpointOfACluster(t *testing.T) {
	pods := checkpoint.Source{Server: "https://east", Resource: "v1/pods", Namespace: "a", Cluster: "1"}
	var whole bytes.Buffer
	w := checkpoint.NewWriter(&whole)
	require.NoError(t, w.AllMetadata(pods.Metadata()))
	for i := range 10_000 {
		require.NoError(t, w.Entry(fmt.Sprint(i), &keytable.Binary{}))
	}
	require.NoError(t, w.Close())
	require.Equal(t, pods, checkpoint.SourceOfHead(whole.Bytes()[:checkpoint.MaxHead]))
	require.Empty(t, checkpoint.SourceOfHead(whole.Bytes()[:20]))
	require.Empty(t, checkpoint.SourceOfHead([]byte("text")))

	var alone bytes.Buffer
	require.NoError(t, checkpoint.WriteOf(pods.OfCluster(), &alone))
	cluster := checkpoint.SourceOfHead(alone.Bytes())
	require.Equal(t, checkpoint.Source{Server: "https://east", Cluster: "1"}, cluster)
	require.NoError(t, pods.Check(cluster))
	for _, other := range []checkpoint.Source{{Server: "https://east", Resource: "v1/pods", Cluster: "2"}, {Server: "https://west", Resource: "v1/pods"}} {
		require.ErrorIs(t, other.Check(cluster), api.ErrCheckpointSource)
	}
}
