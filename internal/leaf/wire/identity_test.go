package wire_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rvinformer/informer/internal/leaf/wire"
)

// Of a repeated metadata the last one counts, with all that it lacks.
func TestRepeatedMetadata(t *testing.T) {
	const body = `{"kind":"PodList","items":[{"metadata":{"name":"a","namespace":"n","uid":"u","resourceVersion":"3"},"metadata":{"name":"b"}}]}`
	r := wire.NewListReader(strings.NewReader(body), wire.JSON, wire.Options{})
	item, err := r.Next()
	require.NoError(t, err)
	require.Equal(t, "b", string(item.Name))
	require.Empty(t, string(item.Namespace)+string(item.UID)+string(item.ResourceVersion))
}
