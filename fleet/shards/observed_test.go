package shards

import (
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
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

// The first renewal of a member is news, and its return after it has expired. The others are not.
func TestReturnOfAMemberIsNews(t *testing.T) {
	seen, now := newObserved(time.Second, func() {}), time.Now()
	for i, step := range []struct {
		after time.Duration
		news  bool
	}{{0, true}, {time.Second, true}, {time.Second, false}, {time.Minute, true}} {
		now = now.Add(step.after)
		lease := &coordinationv1.Lease{
			ObjectMeta: metav1.ObjectMeta{Name: "test-member-a", UID: "u", ResourceVersion: strconv.Itoa(i + 1)},
			Spec:       coordinationv1.LeaseSpec{HolderIdentity: ptr.To("a"), LeaseDurationSeconds: ptr.To[int32](15)},
		}
		require.Equal(t, step.news, seen.noteMemberLocked(lease, now, fromWatch), i)
	}
}
