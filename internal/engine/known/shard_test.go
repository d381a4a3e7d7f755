package known

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rvinformer/informer/api"
	"github.com/rvinformer/informer/internal/engine/object"
)

// TestKnownForCertain asks for objects with and without a UID, which only shards by UID need.
func TestKnownForCertain(t *testing.T) {
	byUID, byNamespace := api.Shard{Key: api.ShardByUID, End: 1 << 63}, api.Shard{Key: api.ShardByNamespace, End: 1 << 63}
	require.True(t, surelyInShard(api.Shard{}, "a/b", ""))
	require.False(t, surelyOutside(api.Shard{}, "a/b", ""))
	require.False(t, surelyInShard(byUID, "a/b", ""))
	require.False(t, surelyOutside(byUID, "a/b", ""))
	for n := range 100 {
		name := fmt.Sprint(n)
		for _, uid := range []string{"", "u"} {
			in := byNamespace.Includes(name, "")
			require.Equal(t, in, object.InShard(byNamespace, name+"/b", uid))
			require.Equal(t, in, surelyInShard(byNamespace, name+"/b", uid))
			require.Equal(t, !in, surelyOutside(byNamespace, name+"/b", uid))
		}
		in := byUID.Includes("", name)
		require.Equal(t, in, surelyInShard(byUID, "b", name))
		require.Equal(t, !in, surelyOutside(byUID, "b", name))
	}
}
