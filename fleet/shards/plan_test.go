package shards

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func manyMembers(n int) []string {
	members := make([]string, n)
	for i := range members {
		members[i] = fmt.Sprintf("mirror-%04d_x", i)
	}
	return members
}

func manyUnits(n int) []load {
	units := make([]load, n)
	for i := range units {
		units[i] = load{text: fmt.Sprintf("cluster-%04d/all", i), weight: 1}
	}
	return units
}

// drawUnits draws different units with weights that are powers of two, as published ones are.
func drawUnits(t *rapid.T) []load {
	n := rapid.IntRange(0, 80).Draw(t, "units")
	heavy := rapid.IntRange(0, 12).Draw(t, "heavy")
	units := manyUnits(n)
	for i := range units {
		units[i].weight = 1 << rapid.IntRange(0, heavy).Draw(t, "weight")
	}
	return units
}

func TestPlanIsBounded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		members := manyMembers(rapid.IntRange(1, 12).Draw(t, "members"))
		units := drawUnits(t)
		owners := share(members, units)
		loads := make([]int64, len(members))
		var total, heaviest int64
		for i, owner := range owners {
			require.NotEqual(t, nobody, owner)
			loads[owner] += units[i].weight
			total += units[i].weight
			heaviest = max(heaviest, units[i].weight)
		}
		n := int64(len(members))
		require.LessOrEqual(t, slices.Max(loads), max(quarterAbove(total, n), total/n+heaviest))
	})
}

func TestRoomIsAQuarterAboveTheAverage(t *testing.T) {
	require.EqualValues(t, 5, quarterAbove(8, 2))
	require.EqualValues(t, 6, quarterAbove(9, 2), "rounded up")
	require.EqualValues(t, 1, quarterAbove(1, 2))
}

// While a fleet is updated, replicas of two releases plan for the same members.
func TestPlanIsThatOfEarlierReleases(t *testing.T) {
	plan := func(members int, units []load) (owners string) {
		for _, owner := range share(manyMembers(members), units) {
			owners += strconv.FormatInt(int64(owner), 36)
		}
		return owners
	}
	units := manyUnits(36)
	require.Equal(t, "000222021111221222001010221210101210", plan(3, units))
	require.Equal(t, "958226a8b14968672ba46319537293b41714", plan(12, units))
	for i := range units {
		units[i].weight = 1 << (i % 12)
	}
	require.Equal(t, "0a8226a8b3a568672ba86319236273b36714", plan(12, units))
	for i := range units {
		units[i].weight = 8
	}
	require.Equal(t, "100", plan(2, units[:3]), "no member has room for the third unit")
}

func TestPlanDependsOnSetsAlone(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		members := manyMembers(rapid.IntRange(1, 8).Draw(t, "members"))
		units := drawUnits(t)
		owners := share(members, units)
		byText := map[string]string{}
		for i, owner := range owners {
			byText[units[i].text] = members[owner]
		}
		dice := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		dice.Shuffle(len(units), func(i, j int) { units[i], units[j] = units[j], units[i] })
		dice.Shuffle(len(members), func(i, j int) { members[i], members[j] = members[j], members[i] })
		for i, owner := range share(members, units) {
			require.Equal(t, byText[units[i].text], members[owner], units[i].text)
		}
	})
}

// The bound makes some units move between the members of before: those that had no room at their
// first choice, and now have.
func TestJoinMovesItsShare(t *testing.T) {
	for _, c := range []struct{ members, units int }{{1, 500}, {2, 500}, {3, 500}, {9, 500}, {3, 30}, {20, 5000}, {199, 25000}} {
		if testing.Short() && c.members > 100 {
			continue
		}
		members, units := manyMembers(c.members+1), manyUnits(c.units)
		before, after := share(members[:c.members], units), share(members, units)
		joined, between := 0, 0
		for i := range units {
			switch {
			case after[i] == c.members:
				joined++
			case after[i] != before[i]:
				between++
			}
		}
		fair := float64(c.units) / float64(c.members+1)
		t.Logf("%d members and one more, %d units: it gets %d (%.0f would be fair), %d move between others", c.members, c.units, joined, fair, between)
		require.LessOrEqual(t, float64(joined), 1.25*fair+1)
		require.GreaterOrEqual(t, float64(joined), fair/2)
		require.LessOrEqual(t, float64(between), fair/4, "moved between the members of before")

		// The same when it leaves: only its units move, and few others.
		require.Equal(t, before, share(members[:c.members], units))
	}
}

// Few units, or heavy ones, have no such bound: one that finds room, or none, moves others after it.
func TestJoinMovesFewOthersAmongManyEqualUnits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n, each := rapid.IntRange(1, 12).Draw(t, "members"), rapid.IntRange(30, 100).Draw(t, "units for each")
		name := rapid.StringMatching("[a-z]{1,8}").Draw(t, "name")
		weight := int64(1) << rapid.IntRange(0, 20).Draw(t, "weight")
		members, units := manyMembers(n+1), manyUnits(each*(n+1))
		for i := range members {
			members[i] = name + members[i]
		}
		for i := range units {
			units[i] = load{text: name + units[i].text, weight: weight}
		}
		before, after := share(members[:n], units), share(members, units)
		joined, between := 0, 0
		for i := range units {
			switch {
			case after[i] == n:
				joined++
			case after[i] != before[i]:
				between++
			}
		}
		require.LessOrEqual(t, joined, (5*each+3)/4)
		require.LessOrEqual(t, 4*between, each)
	})
}

func TestRestartedReplicaGetsTheSameUnits(t *testing.T) {
	units := manyUnits(100)
	require.Equal(t, share([]string{"a_1", "b_1", "c_1"}, units), share([]string{"a_1", "b_2", "c_1"}, units))
}

func TestWeightsAreRounded(t *testing.T) {
	for weight, want := range map[int64]int64{-1: 0, 0: 0, 1: 1, 2: 2, 3: 4, 1000: 1024, 1024: 1024, 1025: 2048, 1 << 50: maxWeight} {
		require.Equal(t, want, rounded(weight), weight)
	}
	for _, c := range []struct {
		weight, published int64
		want              bool
	}{{0, 1024, false}, {5, 0, true}, {1024, 1024, false}, {1500, 1024, false}, {1600, 1024, true}, {300, 1024, false}, {256, 1024, true}} {
		require.Equal(t, c.want, differs(c.weight, c.published), c)
	}
}
