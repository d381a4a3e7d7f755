package api_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/sharding"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/rvinformer/informer/api"
)

func drawShard(t *rapid.T) api.Shard {
	s := api.Shard{
		Key:   rapid.SampledFrom([]api.ShardKey{api.ShardByUID, api.ShardByNamespace}).Draw(t, "key"),
		Start: rapid.Uint64().Draw(t, "start"),
		End:   rapid.Uint64().Draw(t, "end"),
	}
	if s.End != 0 && s.Start >= s.End {
		s.Start, s.End = s.End-1, s.Start
		if s.End <= s.Start {
			s.End = 0
		}
	}
	return s
}

// TestIncludesAsApimachineryDoes compares a Shard with the selector of apimachinery that it is on
// the wire.
func TestIncludesAsApimachineryDoes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawShard(t)
		require.NoError(t, s.Validate())
		parsed, err := api.ParseShard(s.String())
		require.NoError(t, err)
		if s.IsAll() {
			require.Empty(t, s.String())
			return
		}
		require.Equal(t, s, parsed)

		object := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
			Namespace: rapid.String().Draw(t, "namespace"),
			UID:       types.UID(rapid.String().Draw(t, "uid")),
		}}
		end := "0x10000000000000000"
		if s.End != 0 {
			end = s.String()[len(s.String())-20 : len(s.String())-2]
		}
		theirs := sharding.NewSelector(sharding.ShardRangeRequirement{Key: string(s.Key), Start: s.String()[len("shardRange(")+len(s.Key)+3:][:18], End: end})
		require.Equal(t, theirs.String(), s.String())
		want, err := theirs.Matches(object)
		require.NoError(t, err)
		require.Equal(t, want, s.Includes(object.Namespace, string(object.UID)))
	})
}

// TestSplit splits random shards: the parts lie one behind the other, cover the shard, and are as
// long as each other.
func TestSplit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawShard(t)
		length := s.End - s.Start // 0 is 2^64
		most := uint64(300)
		if length != 0 {
			most = min(most, length)
		}
		n := rapid.IntRange(1, int(most)).Draw(t, "n")
		parts := s.Split(n)
		require.Len(t, parts, n)
		require.Equal(t, s.Start, parts[0].Start)
		require.Equal(t, s.End, parts[n-1].End)
		for i, p := range parts {
			require.NoError(t, p.Validate())
			if i > 0 {
				require.Equal(t, parts[i-1].End, p.Start)
				require.LessOrEqual(t, max(p.End-p.Start, parts[0].End-parts[0].Start)-min(p.End-p.Start, parts[0].End-parts[0].Start), uint64(1))
			}
		}
	})
	require.Equal(t, []api.Shard{{}}, api.Shard{}.Split(1))
	require.Equal(t, []api.Shard{{Key: api.ShardByUID, End: 1 << 63}, {Key: api.ShardByUID, Start: 1 << 63}}, api.Shard{}.Split(2))
	require.Panics(t, func() { api.Shard{}.Split(0) })
}

func TestRefuses(t *testing.T) {
	for _, s := range []api.Shard{
		{Start: 1},
		{Key: "object.metadata.name", End: 1},
		{Key: api.ShardByUID, Start: 2, End: 2},
		{Key: api.ShardByUID, Start: 3, End: 2},
	} {
		require.Error(t, s.Validate(), "%v", s)
	}
	for _, text := range []string{
		"x",
		"shardRange(object.metadata.name, '0x0000000000000000', '0x8000000000000000')",
		"shardRange(object.metadata.uid, '0x0', '0x8000000000000000')",
		"shardRange(object.metadata.uid, '0x0000000000000000', '0x0000000000000000')",
		"shardRange(object.metadata.uid, '0x8000000000000000', '0x8000000000000000')",
		"shardRange(object.metadata.uid, '0x0000000000000000', '0x20000000000000000')",
	} {
		_, err := api.ParseShard(text)
		require.ErrorContains(t, err, text)
	}
	whole, err := api.ParseShard("shardRange(object.metadata.uid, '0x0000000000000000', '0x10000000000000000')")
	require.NoError(t, err)
	require.True(t, whole.IsAll())
}
