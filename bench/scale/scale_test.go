package main

import (
	"bytes"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// small is that of a test.
func small() model {
	m := full()
	m.clusters, m.replicas, m.objects = 100, 8, 1_000_000
	return m
}

// smallWorld has the units of a small fleet, in the layout with shards.
func smallWorld(t *testing.T) *world {
	w, err := newWorld(small().with(split))
	require.NoError(t, err)
	return w
}

// The document has the tables that this program writes: those that take seconds here, and all of
// them with -check.
func TestDocumentIsUpToDate(t *testing.T) {
	document, err := os.ReadFile("../../docs/scale.md")
	require.NoError(t, err)
	worlds, err := newWorlds(full())
	require.NoError(t, err)
	for name, write := range map[string]func(r report){
		"units":    func(r report) { r.units(worlds) },
		"region":   func(r report) { r.region(worlds) },
		"database": func(r report) { r.database(worlds[0]) },
	} {
		var table bytes.Buffer
		write(report{&table})
		require.Contains(t, string(document), table.String(), "%s: cd bench && go run ./scale", name)
	}
}

func TestSameSeedSameTables(t *testing.T) {
	var first, second, other bytes.Buffer
	require.NoError(t, write(&first, small()))
	require.NoError(t, write(&second, small()))
	require.Equal(t, first.String(), second.String())
	m := small()
	m.seed++
	require.NoError(t, write(&other, m))
	require.NotEqual(t, first.String(), other.String())
}

func TestWorldDividesEachClusterOnce(t *testing.T) {
	w := smallWorld(t)
	require.Len(t, w.units, 100*5)
	require.InDelta(t, 1_000_000, w.total, 500, "but for rounding")
	covered := map[string]uint64{}
	for i, u := range w.units {
		require.Equal(t, i, w.place[u])
		if u.Group == "pods" {
			covered[u.Cluster] += u.Shard.End - u.Shard.Start
		}
	}
	require.Len(t, covered, 100)
	for cluster, hashes := range covered {
		require.Zero(t, hashes, "%s: the ranges are 2^64 hashes together", cluster)
	}
}

// Whatever happens, in the end each unit is current, at the owner that the plan says.
func TestEachPlayEndsWithAllUnitsAtTheirOwners(t *testing.T) {
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			p := newPlay(smallWorld(t))
			c.do(p)
			p.run(p.now + time.Minute)
			require.Zero(t, p.uncovered())
			for _, l := range p.leases {
				require.True(t, l.holder.up)
				require.Equal(t, p.owners[l.unit], l.holder.identity)
			}
		})
	}
}

func TestCrashIsNoticedAfterTheLeaseDuration(t *testing.T) {
	p := newPlay(smallWorld(t))
	lost := 0
	for _, l := range p.leases {
		if l.holder == p.replicas[0] {
			lost++
		}
	}
	p.after15(func() { p.crash(1) })
	require.GreaterOrEqual(t, len(p.gaps), lost)
	late := 0
	for _, g := range p.gaps {
		if g.owned > p.times.LeaseDuration-p.times.RetryPeriod {
			late++
		}
		require.Less(t, g.owned, p.times.LeaseDuration+time.Second)
		require.Less(t, g.current, 30*time.Second, "the reach")
		require.GreaterOrEqual(t, g.current, g.owned)
	}
	require.GreaterOrEqual(t, late, lost)
}

func TestRollingUpdateHandsOverWithinThreeSeconds(t *testing.T) {
	p := newPlay(smallWorld(t))
	p.roll(1)
	require.Positive(t, p.moved)
	for _, g := range p.gaps {
		require.Less(t, g.owned, 3*time.Second, "the reach")
	}
	require.Equal(t, 2*p.started, len(p.server.writes)-p.server.members, "a release and a take")
}

func TestShortOutageOfCoordinatorStopsNothing(t *testing.T) {
	p := newPlay(smallWorld(t))
	p.coordinatorAway(5 * time.Second)
	p.run(p.now + time.Minute)
	require.Zero(t, p.started)
	require.Empty(t, p.gaps)

	p.coordinatorAway(time.Minute)
	p.run(p.now + 2*time.Minute)
	require.Equal(t, len(p.units), p.started, "each under a new epoch")
	require.Zero(t, p.moved)
	for _, g := range p.gaps {
		require.Greater(t, g.owned, 45*time.Second)
	}
}

func TestRenewalsAtRest(t *testing.T) {
	p := newPlay(smallWorld(t))
	p.run(p.now + time.Minute)
	require.InDelta(t, 8*30, len(p.server.writes), 1, "8 replicas, each 2 s")
	require.Equal(t, len(p.server.writes), p.server.members)
}

func TestReplaceTablesNeedsMarks(t *testing.T) {
	_, err := replaceTables([]byte("# Scale\n"), []byte("|"))
	require.Error(t, err)
	updated, err := replaceTables([]byte("a\n"+begin+"old\n"+end+"b\n"), []byte("new\n"))
	require.NoError(t, err)
	require.Equal(t, "a\n"+begin+"new\n"+end+"b\n", string(updated))
}
