package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestFleet runs a plan with few clusters, and holds what came out against what cannot be
// otherwise.
func TestFleet(t *testing.T) {
	p := newFleet()
	p.clusters, p.kinds, p.troubled, p.settle, p.runs, p.outage = 20, 10, 6, 0, 1, 2*time.Second
	document := measured(t, p)
	require.Contains(t, document, "## A fleet of 20 clusters")
	require.Contains(t, document, "| × the bare watches |")

	for _, c := range fleetCases {
		require.Len(t, p.heat.runs[c.name], 1, c.name)
	}
	all := p.clusters * p.kinds * p.pods
	healthy := p.heat.runs[fleetHealthy][0]
	require.Equal(t, all, healthy.Objects)
	require.Equal(t, p.clusters*p.kinds, healthy.Many.Informers)
	require.LessOrEqual(t, healthy.Goroutines, 3.0)
	require.GreaterOrEqual(t, healthy.Many.After.Watches, int64(p.clusters*p.kinds))
	require.LessOrEqual(t, healthy.Many.After.Accepted, int64(2*p.clusters), "a server has two connections at most")
	require.Greater(t, healthy.PeakRSS, healthy.Many.RSS)

	// All have told of the change, none has listed again.
	require.Positive(t, healthy.Many.Outage.Most)
	require.GreaterOrEqual(t, healthy.Many.Outage.All, healthy.Many.Outage.Most)
	require.Positive(t, healthy.Many.Outage.Usage.Attempts)
	require.Zero(t, healthy.Many.Outage.Listed)

	floor := p.heat.runs[fleetFloor][0]
	require.Equal(t, int64(p.clusters), floor.Many.After.Accepted, "one connection for each server")
	require.Greater(t, floor.Many.After.Bytes, int64(3000*all))
	require.InEpsilon(t, floor.Many.After.Bytes, healthy.Many.After.Bytes, 0.1, "the same bytes, but for events and bookmarks")
	require.InEpsilon(t, healthy.Many.After.Bytes-healthy.Many.Before.Bytes, healthy.Received, 0.1, "those bytes come off the sockets")
	require.InEpsilon(t, floor.Received, healthy.Received, 0.1)

	require.Positive(t, floor.Many.Outage.Most)
	require.GreaterOrEqual(t, floor.Many.Outage.All, floor.Many.Outage.Most)
	require.Equal(t, int64(p.clusters*p.kinds), floor.Many.Outage.After.Watches, "as many watches as informers")

	well := all * (p.clusters - p.troubled) / p.clusters
	require.Equal(t, well, p.heat.runs[fleetFewer][0].Objects)
	troubled := p.heat.runs[fleetTroubled][0]
	require.GreaterOrEqual(t, troubled.Objects, well, "the other clusters go on")
	require.Less(t, troubled.Objects, well+well/10)
	require.Less(t, troubled.Wall, 30*time.Second)
}
