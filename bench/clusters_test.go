package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestClusters runs a plan with few clusters, and holds what came out against what cannot be
// otherwise.
func TestClusters(t *testing.T) {
	p := newClusters()
	p.clusters, p.pods, p.hugePods, p.times, p.runs, p.idles = 10, 20, 500, 400, 1, p.idles[:2]
	require.Contains(t, measured(t, p), "## Many clusters")

	objects := p.clusters * p.pods * len(clusterResources)
	for _, s := range clustersStarts {
		require.Len(t, p.start.runs[s.name], 1, s.name)
		got := p.start.runs[s.name][0]
		t.Logf("%s: %+v", s.name, got)
		require.Less(t, got.Wall, 30*time.Second, s.name)
		require.Greater(t, got.PeakRSS, int64(5<<20), s.name)
		require.Greater(t, got.Received, int64(100*got.Objects), s.name)
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
		got := p.idle.runs["idle, "+i.name][0]
		t.Logf("%s: %+v", i.name, got)
		require.LessOrEqual(t, got.Goroutines, 3.0, i.name)
		require.InDelta(t, 50<<10, got.InUseBytes, 50<<10, i.name)
	}
	churn := p.churn.runs["churn"][0].Many
	require.Zero(t, churn.GoroutinesLeft)
	// What pools and caches have varies by 200 KiB; an informer takes 20.
	require.Less(t, churn.BytesLeft, int64(p.times)<<10, "a KiB for each informer that was added and removed")
}
