package main

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rvinformer/informer/bench/podserver"
	"github.com/rvinformer/informer/bench/race"
)

// TestFactoriesListAgain measures both factories with 5,000 pods: each loses its watch and lists,
// and ours decodes nothing that it has.
func TestFactoriesListAgain(t *testing.T) {
	t.Parallel()
	programs, err := buildPrograms(t.Context())
	require.NoError(t, err)
	const pods = 5000
	s, err := startServer(t.Context(), podserver.Options{Pods: pods})
	require.NoError(t, err)
	defer func() { require.NoError(t, s.stop()) }()
	measured := map[factoryKind][]race.Peaks{}
	for _, k := range factoryKinds {
		var p race.Peaks
		order := race.FactoryOrder{Ours: k.ours, Protobuf: k.protobuf, Target: s.target}
		require.NoError(t, tell(t.Context(), filepath.Join(programs.dir, "factories"), order, &p))
		t.Logf("%v: %+v", k, p)
		for _, resident := range []int64{p.Start, p.Relist, p.Settled, p.SettledAgain} {
			require.Greater(t, resident, int64(10<<20))
		}
		require.Greater(t, p.StartReceived, int64(2000*pods))
		require.InEpsilon(t, p.StartReceived, p.RelistReceived, 0.1, "the same set")
		if k.ours {
			require.Less(t, p.RelistBytes, uint64(3<<10*pods))
		} else {
			require.Greater(t, p.RelistBytes, uint64(8<<10*pods))
		}
		measured[k] = []race.Peaks{p}
	}
	var table bytes.Buffer
	peaksTable(&table, measured, pods)
	require.Equal(t, 2+len(factoryKinds), strings.Count(table.String(), "\n"))
}
