package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestFactoriesListAgain measures both factories with 5,000 pods: each loses its watch and lists,
// and ours decodes nothing that it has.
func TestFactoriesListAgain(t *testing.T) {
	t.Parallel()
	p := newPeaks()
	p.pods, p.runs = 5000, 1
	document := measured(t, p)
	require.Len(t, p.heat.variants, 4)
	for _, v := range p.heat.variants {
		got := p.heat.runs[v.Name][0].Peaks
		t.Logf("%s: %+v", v.Name, got)
		for _, resident := range []int64{got.Start, got.Relist, got.Settled, got.SettledAgain} {
			require.Greater(t, resident, int64(10<<20))
		}
		require.Greater(t, got.StartReceived, int64(2000*p.pods))
		require.InEpsilon(t, got.StartReceived, got.RelistReceived, 0.1, "the same set")
		if strings.HasPrefix(v.Name, "client-go") {
			require.Greater(t, got.RelistBytes, uint64(8<<10*p.pods))
		} else {
			require.Less(t, got.RelistBytes, uint64(3<<10*p.pods))
		}
		require.Contains(t, document, "| "+v.Name+" |")
	}
}
