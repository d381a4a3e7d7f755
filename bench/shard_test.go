package main

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestShard runs a plan with few pods, and holds what came out against what cannot be otherwise.
func TestShard(t *testing.T) {
	p := newShard()
	p.pods, p.runs = 10_000, 1
	document := measured(t, p)
	require.Contains(t, document, "## Half of a set")
	require.Contains(t, document, "<!-- end of bench-shard -->")

	for _, c := range shardCases {
		require.Len(t, p.heat.runs[c.name], 1, c.name)
		require.Positive(t, p.heat.runs[c.name][0].CPU, c.name)
	}
	require.InEpsilon(t, p.pods/2, p.half, 0.05)
	whole, served, filtered := p.heat.runs[shardWhole][0], p.heat.runs[shardServed][0], p.heat.runs[shardFiltered][0]
	require.Equal(t, p.pods, whole.Delivered)
	require.Equal(t, p.half, served.Delivered)
	require.Equal(t, p.half, filtered.Delivered)
	require.InEpsilon(t, float64(p.half)/float64(p.pods), float64(served.ServerBytes)/float64(whole.ServerBytes), 0.01, "the server sends no more than the shard")
	require.InEpsilon(t, whole.ServerBytes, filtered.ServerBytes, 0.01, "the server sends everything")
	require.InEpsilon(t, whole.ServerBytes, p.heat.runs[shardFloor][0].ServerBytes, 0.01)
}
