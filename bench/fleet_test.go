package main

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestFleet runs a plan with few clusters, and holds what came out against what cannot be
// otherwise.
func TestFleet(t *testing.T) {
	p := defaultFleetPlan()
	p.quicken()
	p.outage = 2 * time.Second
	p.docs = t.TempDir()
	path := filepath.Join(p.docs, more)
	require.NoError(t, os.WriteFile(path, []byte("# Performance\n"), 0o644))
	r, err := fleet(t.Context(), p)
	require.NoError(t, err)

	for _, c := range fleetCases {
		require.Len(t, r.runs[c.name], 1, c.name)
	}
	all := int64(p.clusters * p.kinds * p.pods)
	healthy := r.runs[fleetHealthy][0]
	require.Equal(t, all, healthy.Objects)
	require.Equal(t, p.clusters*p.kinds, healthy.Informers)
	require.LessOrEqual(t, healthy.Goroutines, 3.0)
	require.GreaterOrEqual(t, healthy.After.Watches, int64(p.clusters*p.kinds))
	require.LessOrEqual(t, healthy.After.Accepted, int64(2*p.clusters), "a server has two connections at most")
	require.Greater(t, healthy.PeakRSS, healthy.RSS)

	// All have told of the change, none has listed again.
	require.Positive(t, healthy.Outage.Most)
	require.GreaterOrEqual(t, healthy.Outage.All, healthy.Outage.Most)
	require.Positive(t, healthy.Outage.Usage.Attempts)
	require.Zero(t, healthy.Outage.Listed)

	floor := r.runs[fleetFloor][0]
	require.Equal(t, int64(p.clusters), floor.After.Accepted, "one connection for each server")
	require.Greater(t, floor.After.Bytes, 3000*all)
	require.InEpsilon(t, floor.After.Bytes, healthy.After.Bytes, 0.1, "the same bytes, but for events and bookmarks")
	require.InEpsilon(t, healthy.After.Bytes-healthy.Before.Bytes, healthy.Received, 0.1, "those bytes come off the sockets")
	require.InEpsilon(t, floor.Received, healthy.Received, 0.1)

	require.Positive(t, floor.Outage.Most)
	require.GreaterOrEqual(t, floor.Outage.All, floor.Outage.Most)
	require.Equal(t, int64(p.clusters*p.kinds), floor.Outage.After.Watches, "as many watches as informers")

	well := all * int64(p.clusters-p.troubled) / int64(p.clusters)
	require.Equal(t, well, r.runs[fleetFewer][0].Objects)
	troubled := r.runs[fleetTroubled][0]
	require.GreaterOrEqual(t, troubled.Objects, well, "the other clusters go on")
	require.Less(t, troubled.Objects, well+well/10)
	require.Less(t, troubled.Wall, 30*time.Second)

	document, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Contains(t, string(document), "## A fleet of 20 clusters")
	require.Contains(t, string(document), "| × the bare watches |")
}
