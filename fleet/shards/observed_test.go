package shards

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A member without a Lease counts as dead while a unit names it. Later it is forgotten.
func TestMemberWithoutLeaseIsForgotten(t *testing.T) {
	seen := newObserved(time.Second, func() {})
	d := &decider{Replica: &Replica{config: Config{Name: "test", LeaseDuration: defaultLeaseDuration}, seen: seen}}
	name := memberName("test", "gone")
	seen.confirmGone(name, memberLease{})
	for _, holder := range []string{"gone", "other"} {
		unit := unitLease{holder: holder}
		members, _, _ := seen.snapshot()
		v := &view{now: time.Now(), fleetName: "test", members: members}
		d.discard(v, map[string]unitLease{"unit": unit})
		members, _, _ = seen.snapshot()
		if holder == "gone" {
			require.Equal(t, dead, v.standing(unit))
			require.Contains(t, members, name)
		} else {
			require.Empty(t, members)
		}
	}
}
