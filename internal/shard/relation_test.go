package shard_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/rvinformer/informer/internal/shard"
)

// drawNear draws a shard whose bounds are few, so that two of them touch, overlap and contain each
// other often.
func drawNear(t *rapid.T, key shard.Key, name string) shard.Shard {
	const step = 1 << 61
	from := rapid.IntRange(0, 7).Draw(t, name+" from")
	to := rapid.IntRange(from+1, 8).Draw(t, name+" to")
	return shard.Shard{Key: key, Start: uint64(from) * step, End: uint64(to) * step} // 8 steps wrap around to 0
}

// TestRelations holds And, Meets and Contains against Includes, for objects with random UIDs.
func TestRelations(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := drawNear(t, shard.ByUID, "a"), drawNear(t, shard.ByUID, "b")
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
	all, half := shard.Shard{}, shard.Shard{Key: shard.ByUID, End: 1 << 63}
	other := shard.Shard{Key: shard.ByUID, Start: 1 << 63}
	named := shard.Shard{Key: shard.ByNamespace, End: 1 << 63}
	require.True(t, all.Contains(half))
	require.True(t, all.Contains(shard.Shard{Key: shard.ByUID}))
	require.True(t, shard.Shard{Key: shard.ByNamespace}.Contains(all))
	require.False(t, half.Contains(all))
	require.False(t, half.Contains(named))
	require.True(t, half.Meets(named), "an object may be in both")
	require.True(t, half.Meets(all))
	require.False(t, half.Meets(other))
}

// TestKnownForCertain asks for objects with and without a UID, which only shards by UID need.
func TestKnownForCertain(t *testing.T) {
	byUID, byNamespace := shard.Shard{Key: shard.ByUID, End: 1 << 63}, shard.Shard{Key: shard.ByNamespace, End: 1 << 63}
	require.True(t, shard.HasForCertain(shard.Shard{}, "a/b", ""))
	require.False(t, shard.LacksForCertain(shard.Shard{}, "a/b", ""))
	require.False(t, shard.HasForCertain(byUID, "a/b", ""))
	require.False(t, shard.LacksForCertain(byUID, "a/b", ""))
	for n := range 100 {
		name := fmt.Sprint(n)
		for _, uid := range []string{"", "u"} {
			in := byNamespace.Includes(name, "")
			require.Equal(t, in, shard.Has(byNamespace, name+"/b", uid))
			require.Equal(t, in, shard.HasForCertain(byNamespace, name+"/b", uid))
			require.Equal(t, !in, shard.LacksForCertain(byNamespace, name+"/b", uid))
		}
		in := byUID.Includes("", name)
		require.Equal(t, in, shard.HasForCertain(byUID, "b", name))
		require.Equal(t, !in, shard.LacksForCertain(byUID, "b", name))
	}
}
