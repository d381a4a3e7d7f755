package fleet_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/fleet"
)

func TestUnit(t *testing.T) {
	halves := informer.Shard{}.Split(2)
	units := []fleet.Unit{
		{Cluster: "east", Group: "all"},
		{Cluster: "east", Group: "pods", Shard: halves[0]},
		{Cluster: "east", Group: "pods", Shard: halves[1]},
		{Cluster: "west", Group: "all"},
	}
	require.True(t, slices.IsSortedFunc(units, fleet.Unit.Compare))
	require.Equal(t, -1, units[1].Compare(units[2]))
	require.Zero(t, units[2].Compare(units[2]))
	require.Equal(t, "east/all", units[0].String())
	require.Equal(t, "east/pods/shardRange(object.metadata.uid, '0x8000000000000000', '0x10000000000000000')", units[2].String())
}
