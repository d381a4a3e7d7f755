package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestShard runs a plan with few pods, and holds what came out against what cannot be otherwise.
func TestShard(t *testing.T) {
	p := defaultShardPlan()
	p.quicken()
	p.docs = t.TempDir()
	path := filepath.Join(p.docs, more)
	require.NoError(t, os.WriteFile(path, []byte("# Performance\n"), 0o644))
	r, err := shards(t.Context(), p)
	require.NoError(t, err)

	for _, c := range shardCases {
		require.Len(t, r.runs[c.name], 1, c.name)
		require.Positive(t, r.runs[c.name][0].CPU, c.name)
	}
	require.InEpsilon(t, p.pods/2, r.half, 0.05)
	whole, served, filtered := r.runs[shardWhole][0], r.runs[shardServed][0], r.runs[shardFiltered][0]
	require.Equal(t, p.pods, whole.Delivered)
	require.Equal(t, r.half, served.Delivered)
	require.Equal(t, r.half, filtered.Delivered)
	require.InEpsilon(t, float64(r.half)/float64(p.pods), float64(served.ServerBytes)/float64(whole.ServerBytes), 0.01, "the server sends no more than the shard")
	require.InEpsilon(t, whole.ServerBytes, filtered.ServerBytes, 0.01, "the server sends everything")
	require.InEpsilon(t, whole.ServerBytes, r.runs[shardFloor][0].ServerBytes, 0.01)

	document, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Contains(t, string(document), "## Half of a set")
	require.Contains(t, string(document), "<!-- end of bench-shard -->")
}
