package api_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/rvinformer/informer/api"
)

// drawNear draws a shard whose bounds are few, so that two of them touch, overlap and contain each
// other often.
func drawNear(t *rapid.T, key api.ShardKey, name string) api.Shard {
	const step = 1 << 61
	from := rapid.IntRange(0, 7).Draw(t, name+" from")
	to := rapid.IntRange(from+1, 8).Draw(t, name+" to")
	return api.Shard{Key: key, Start: uint64(from) * step, End: uint64(to) * step} // 8 steps wrap around to 0
}

// TestRelations holds And, Meets and Contains against Includes, for objects with random UIDs.
func TestRelations(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := drawNear(t, api.ShardByUID, "a"), drawNear(t, api.ShardByUID, "b")
		common, overlap := a.And(b)
		require.Equal(t, overlap, a.Meets(b))
		if overlap {
			require.NoError(t, common.Validate())
		}
		all, outside := true, false
		for range 200 {
			uid := rapid.StringN(8, 8, -1).Draw(t, "uid")
			inA, inB := a.Includes("", uid), b.Includes("", uid)
			require.Equal(t, inA && inB, overlap && common.Includes("", uid))
			all = all && (!inB || inA)
			outside = outside || inB && !inA
		}
		if a.Contains(b) {
			require.True(t, all)
		}
		if outside {
			require.False(t, a.Contains(b))
		}
	})
}

func TestRelationsOfTheWholeSet(t *testing.T) {
	all, half := api.Shard{}, api.Shard{Key: api.ShardByUID, End: 1 << 63}
	other := api.Shard{Key: api.ShardByUID, Start: 1 << 63}
	named := api.Shard{Key: api.ShardByNamespace, End: 1 << 63}
	require.True(t, all.Contains(half))
	require.True(t, all.Contains(api.Shard{Key: api.ShardByUID}))
	require.True(t, api.Shard{Key: api.ShardByNamespace}.Contains(all))
	require.False(t, half.Contains(all))
	require.False(t, half.Contains(named))
	require.True(t, half.Meets(named), "an object may be in both")
	require.True(t, half.Meets(all))
	require.False(t, half.Meets(other))
}
