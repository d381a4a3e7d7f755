package shard_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/rvinformer/informer/internal/shard"
)

// drawNear draws a shard whose bounds are few, so that two of them touch, overlap and contain each other often.
func drawNear(t *rapid.T, key shard.Key, name string) shard.Shard {
	const step = 1 << 61
	from := rapid.IntRange(0, 7).Draw(t, name+" from")
	to := rapid.IntRange(from+1, 8).Draw(t, name+" to")
	return shard.Shard{Key: key, Start: uint64(from) * step, End: uint64(to) * step} // 8 steps wrap around to 0
}

// TestArithmetic holds And, Without and Contains against Includes, for objects with random UIDs.
func TestArithmetic(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := drawNear(t, shard.ByUID, "a"), drawNear(t, shard.ByUID, "b")
		common, overlap := a.And(b)
		rest := a.Without(b)
		if overlap {
			require.NoError(t, common.Validate())
		}
		all, outside := true, false
		for range 200 {
			uid := rapid.StringN(8, 8, -1).Draw(t, "uid")
			inA, inB := a.Includes("", uid), b.Includes("", uid)
			require.Equal(t, inA && inB, overlap && common.Includes("", uid))
			require.Equal(t, inA && !inB, rest != nil && rest.Has("", uid))
			all = all && (!inB || inA)
			outside = outside || inB && !inA
		}
		if a.Contains(b) {
			require.True(t, all)
			require.Empty(t, b.Without(a))
		}
		if outside {
			require.False(t, a.Contains(b))
		}
		for _, part := range rest {
			require.NoError(t, part.Validate())
			require.True(t, a.Contains(part))
			_, touches := part.And(b)
			require.False(t, touches)
		}
	})
}

func TestArithmeticOfTheWholeSet(t *testing.T) {
	all, half := shard.Shard{}, shard.Shard{Key: shard.ByUID, End: 1 << 63}
	other := shard.Shard{Key: shard.ByUID, Start: 1 << 63}
	named := shard.Shard{Key: shard.ByNamespace, End: 1 << 63}
	require.True(t, all.Contains(half))
	require.True(t, all.Contains(shard.Shard{Key: shard.ByUID}))
	require.True(t, shard.Shard{Key: shard.ByNamespace}.Contains(all))
	require.False(t, half.Contains(all))
	require.Equal(t, shard.Parts{other}, all.Without(half))
	require.Equal(t, shard.Parts{}, half.Without(all))
	require.Equal(t, shard.Parts{}, all.Without(all))
	require.Equal(t, shard.Parts{half}, half.Without(other))
	require.Equal(t, shard.Parts{half}, half.Without(named), "two keys have no range in common")
	require.False(t, half.Contains(named))
	require.True(t, half.Meets(named), "an object may be in both")
	require.True(t, half.Meets(all))
	require.False(t, half.Meets(other))

	require.Nil(t, shard.Of(shard.Shard{Key: shard.ByUID}))
	require.True(t, shard.Of(all).Has("n", "u"))
	require.Empty(t, shard.Of(all).String())
	require.False(t, shard.Parts{}.Has("n", "u"))
	parts := shard.Parts{half, {Key: shard.ByUID, Start: 3 << 62}}
	require.Equal(t, half.String()+" || "+parts[1].String(), parts.String())
}
