package main

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rvinformer/informer/bench/race"
)

// TestReadcache runs a plan with few objects, and holds what came out against what cannot be
// otherwise.
func TestReadcache(t *testing.T) {
	t.Parallel()
	p := &readcachePlan{pods: 3000, stored: 1000, runs: 1, docs: t.TempDir()}
	path := filepath.Join(p.docs, more)
	require.NoError(t, os.WriteFile(path, []byte("# Performance\n"), 0o644))
	r, err := readcache(t.Context(), p)
	require.NoError(t, err)
	for figure, contestants := range r.readings {
		for name, all := range contestants {
			require.Len(t, all, 1)
			costs := all[0]
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
			for _, resident := range []int64{costs.Peaks.Start, costs.Peaks.Relist, costs.Peaks.Settled, costs.Peaks.SettledAgain} {
				require.Greater(t, resident, int64(10<<20), name)
			}
			require.Greater(t, costs.Peaks.StartReceived, int64(1000*p.pods), name)
			require.InEpsilon(t, costs.Peaks.StartReceived, costs.Peaks.RelistReceived, 0.2, name)
			require.Positive(t, costs.StartCPU, name)
			require.Positive(t, costs.StartWall, name)
		}
	}
	require.Len(t, r.readings[race.StoreMemory], len(race.Readables))
	client, ours := r.readings[race.StoreMemory][race.ClientGoTyped][0], r.readings[race.StoreMemory][race.OursTyped][0]
	require.Less(t, ours.Live, client.Live/2)
	document, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Contains(t, string(document), "## A cache that can be read")
}
