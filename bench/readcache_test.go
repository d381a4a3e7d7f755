package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rvinformer/informer/bench/race"
)

// TestReadcache runs a plan with few objects, and holds what came out against what cannot be
// otherwise.
func TestReadcache(t *testing.T) {
	t.Parallel()
	p := newReadcache()
	p.pods, p.stored, p.runs = 3000, 1000, 1
	document := measured(t, p)
	require.Len(t, p.heats, 4)
	for _, h := range p.heats {
		figure := h.scenario
		require.Len(t, h.runs, len(h.variants), figure)
		for name, all := range h.runs {
			require.Len(t, all, 1)
			costs, peaks := all[0].Read, all[0].Peaks
			if figure == race.Reading {
				require.InDelta(t, p.pods/100, costs.Matched, float64(p.pods/100), name)
				for _, took := range []time.Duration{costs.Get, costs.DeepCopy, costs.ListMatching, costs.Namespace} {
					require.Positive(t, took, name)
				}
				continue
			}
			require.Greater(t, costs.Live, 100.0, "%s, %s", figure, name)
			require.Less(t, costs.Live, 20_000.0, "%s, %s", figure, name)
			if figure == race.StoreMemory {
				require.Greater(t, costs.LiveUpdated, 100.0, name)
				require.Positive(t, costs.Update, name)
				continue
			}
			for _, resident := range []int64{peaks.Start, peaks.Relist, peaks.Settled, peaks.SettledAgain} {
				require.Greater(t, resident, int64(10<<20), name)
			}
			require.Greater(t, peaks.StartReceived, int64(1000*p.pods), name)
			require.InEpsilon(t, peaks.StartReceived, peaks.RelistReceived, 0.2, name)
			require.Positive(t, all[0].CPU, name)
			require.Positive(t, all[0].Wall, name)
		}
	}
	stores := p.heats[0].runs
	require.Len(t, stores, 5)
	require.Less(t, stores[race.OursTyped][0].Read.Live, stores[race.ClientGoTyped][0].Read.Live/2)
	require.Contains(t, document, "## A cache that can be read")
	require.Contains(t, document, "### Under a controller")
}
