package shards_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rvinformer/informer/fleet"
	"github.com/rvinformer/informer/fleet/shards"
)

func manyUnits(n int) (units []fleet.Unit) {
	for i := range n {
		units = append(units, fleet.Unit{Cluster: fmt.Sprintf("cluster-%05d", i), Group: "all"})
	}
	return units
}

func identities(n int) (all []string) {
	for i := range n {
		all = append(all, fmt.Sprintf("mirror-%d", i))
	}
	return all
}

func TestPlanMovesOnlyShareOfLostMember(t *testing.T) {
	units, members := manyUnits(1000), identities(10)
	before, after := shards.Plan(members, units, nil), shards.Plan(members[:9], units, nil)
	count, moved := map[string]int{}, 0
	for i := range units {
		count[before[i]]++
		if before[i] != members[9] && before[i] != after[i] {
			moved++
		}
		require.NotEqual(t, members[9], after[i])
		require.NotEmpty(t, after[i])
	}
	require.Len(t, count, 10)
	for member, n := range count {
		require.LessOrEqual(t, n, 125, member)
	}
	require.Less(t, moved, 50, "units of members that stay")
	require.Equal(t, make([]string, len(units)), shards.Plan(nil, units, nil))
}

func TestPlanRegardsWeights(t *testing.T) {
	units, members := manyUnits(100), identities(4)
	weight := func(u fleet.Unit) int64 {
		if u == units[0] {
			return 64
		}
		return 1
	}
	loads := map[string]int64{}
	for i, owner := range shards.Plan(members, units, weight) {
		loads[owner] += weight(units[i])
	}
	for member, load := range loads {
		require.LessOrEqual(t, load, int64(64), member)
	}
}

func TestTimesAreCompleteAndChecked(t *testing.T) {
	c, err := shards.Config{LeaseDuration: 30 * time.Second}.Times()
	require.NoError(t, err)
	require.Equal(t, [3]time.Duration{20 * time.Second, 4 * time.Second, 8 * time.Second}, [3]time.Duration{c.RenewDeadline, c.RetryPeriod, c.SettleTime})
	_, err = shards.Config{RenewDeadline: time.Minute}.Times()
	require.ErrorContains(t, err, "RenewDeadline")
}

func BenchmarkPlan(b *testing.B) {
	for _, units := range []int{5000, 25_000} {
		all, members := manyUnits(units), identities(200)
		b.Run(fmt.Sprintf("units=%d", units), func(b *testing.B) {
			for b.Loop() {
				shards.Plan(members, all, nil)
			}
		})
	}
}
