package main

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestClusters runs a plan with few clusters, and holds what came out against what cannot be
// otherwise.
func TestClusters(t *testing.T) {
	p := defaultClustersPlan()
	p.clusters, p.pods, p.hugePods, p.times, p.runs, p.idles = 10, 20, 500, 400, 1, p.idles[:2]
	p.docs = t.TempDir()
	path := filepath.Join(p.docs, more)
	require.NoError(t, os.WriteFile(path, []byte("# Performance\n"), 0o644))
	r, err := clusters(t.Context(), p)
	require.NoError(t, err)

	objects := int64(p.clusters * p.pods * len(clusterResources))
	for _, s := range clustersStarts {
		require.Len(t, r.start[s.name], 1, s.name)
		got := r.start[s.name][0]
		t.Logf("%s: %+v", s.name, got)
		require.Less(t, got.Wall, 30*time.Second, s.name)
		require.Greater(t, got.PeakRSS, int64(5<<20), s.name)
		require.Greater(t, got.Received, 100*got.Objects, s.name)
		switch {
		case len(s.last) > 0: // those in trouble tell of little
			require.GreaterOrEqual(t, got.Objects, objects*7/10, s.name)
			require.LessOrEqual(t, got.Objects, objects*8/10, s.name)
		case s.huge:
			require.GreaterOrEqual(t, got.Objects, objects*9/10, s.name)
		default:
			require.Equal(t, objects, got.Objects, s.name)
		}
	}
	for _, i := range p.idles {
		got := r.idle[i.name][0]
		t.Logf("%s: %+v", i.name, got)
		require.LessOrEqual(t, got.Goroutines, 3.0, i.name)
		require.InDelta(t, 50<<10, got.InUseBytes, 50<<10, i.name)
	}
	require.Zero(t, r.churn[0].GoroutinesLeft)
	// What pools and caches have varies by 200 KiB; an informer takes 20.
	require.Less(t, r.churn[0].BytesLeft, int64(p.times)<<10, "a KiB for each informer that was added and removed")
	document, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Contains(t, string(document), "## Many clusters")
}
