package shard_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/rvinformer/informer/internal/shard"
)

// TestExtentNeverClaimsTooMuch compares an Extent with a model that knows for single UIDs whether they were listed, and are followed, without a
// gap.
func TestExtentNeverClaimsTooMuch(t *testing.T) {
	const points = 64
	uids := make([]string, 0, points)
	for n := range points {
		uids = append(uids, string(rune('a'+n%26))+string(rune('a'+n/26)))
	}
	rapid.Check(t, func(t *rapid.T) {
		var x shard.Extent
		listed, listing := map[string]bool{}, map[string]bool{}
		restrict := func(known map[string]bool, to shard.Shard) {
			for uid := range known {
				if !to.Includes("", uid) {
					delete(known, uid)
				}
			}
		}
		t.Repeat(map[string]func(*rapid.T){
			"change": func(t *rapid.T) {
				to := drawNear(t, shard.ByUID, "to")
				if x.Change(to) {
					restrict(listed, to)
					restrict(listing, to)
				}
			},
			"begin": func(t *rapid.T) {
				current, number := x.Shard()
				require.True(t, x.Begin(number))
				require.False(t, x.Begin(number-1))
				clear(listing)
				for _, uid := range uids {
					if current.Includes("", uid) {
						listing[uid] = true
					}
				}
			},
			"end": func(t *rapid.T) {
				x.End()
				clear(listed)
				for uid := range listing {
					listed[uid] = true
				}
			},
			"forget": func(t *rapid.T) {
				x.Forget()
				clear(listed)
			},
			"": func(t *rapid.T) {
				current, _ := x.Shard()
				missing, none := x.Missing()
				for _, uid := range uids {
					in := current.Includes("", uid)
					require.Equal(t, !in, x.LeavesOut("a/b", uid))
					if in && !listed[uid] {
						require.True(t, missing.Includes("a/b", uid))
						require.False(t, x.Complete())
					}
					if !none && missing.Includes("a/b", uid) {
						require.True(t, in && !listed[uid])
					}
				}
				require.Equal(t, !none && len(missing) == 0, x.Complete())
			},
		})
	})
}

func TestExtentOfAnotherKey(t *testing.T) {
	var x shard.Extent
	_, number := x.Shard()
	require.True(t, x.Begin(number))
	x.End()
	require.True(t, x.Complete())
	require.True(t, x.Change(shard.Shard{Key: shard.ByUID, End: 1 << 63}))
	require.True(t, x.Complete(), "the whole was listed")
	require.False(t, x.Change(shard.Shard{Key: shard.ByUID, End: 1 << 63}))
	require.True(t, x.Change(shard.Shard{Key: shard.ByNamespace, End: 1 << 63}))
	missing, none := x.Missing()
	require.True(t, none)
	require.Equal(t, shard.Parts{{Key: shard.ByNamespace, End: 1 << 63}}, missing)
	require.True(t, x.Excludes("b", ""), "no UID is needed")
	require.True(t, x.Change(shard.Shard{Key: shard.ByUID, End: 1}))
	require.False(t, x.Excludes("b", ""), "it is not known")
	require.True(t, x.LeavesOut("b", ""))
	require.True(t, x.Change(shard.Shard{Key: shard.ByUID}))
	require.True(t, x.IsAll())
}
