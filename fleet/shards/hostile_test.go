package shards_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/fleet"
	"github.com/rvinformer/informer/fleet/shards"
)

// edit changes a Lease as somebody with kubectl does.
func (w *world) edit(name string, change func(*coordinationv1.Lease)) {
	w.t.Helper()
	lease := w.lease(name)
	change(lease)
	_, err := clientset(w.t, w.server.Config()).CoordinationV1().Leases("fleet").Update(w.t.Context(), lease, metav1.UpdateOptions{})
	require.NoError(w.t, err)
}

func TestLabelsThatSomebodyRemovesComeBack(t *testing.T) {
	for _, label := range []string{"rvinformer.dev/fleet", "rvinformer.dev/role"} {
		bubble(t, 4, func(t *testing.T, w *world) {
			a, b := w.start("a"), w.start("b")
			w.covered(settled)
			time.Sleep(settled)
			for _, u := range a.Status().Units {
				w.edit(u.Lease, func(l *coordinationv1.Lease) { delete(l.Labels, label) })
			}
			time.Sleep(settled)
			_, uncovered := w.owned()
			require.Zero(t, uncovered)
			moved := a.Status().Owned()
			require.NotEmpty(t, moved)
			w.end(a)
			t.Log("covered after", w.covered(settled))
			for _, u := range moved {
				require.Contains(t, w.lease(u.Lease).Labels, label)
			}
			w.end(b)
			w.increasing()
			w.alone()
		})
	}
}

func TestLeaseOfAnotherUnitIsAProblem(t *testing.T) {
	bubble(t, 1, func(t *testing.T, w *world) {
		a := w.start("a")
		w.covered(settled)
		name := a.Status().Units[0].Lease
		w.end(a)
		w.edit(name, func(l *coordinationv1.Lease) { l.Annotations["rvinformer.dev/unit"] = "other/all" })
		b := w.start("b")
		time.Sleep(2 * settled)
		require.Len(t, b.Status().Uncovered(), 1)
		require.Len(t, b.Status().Problems, 1)
		require.ErrorContains(t, b.Status().Problems[0].Err, `is of the unit "other/all", not of "cluster-000/all"`)
		w.end(b)
	})
}

func TestSlowServerIsEnough(t *testing.T) {
	for _, delay := range []time.Duration{time.Second, 3 * time.Second} {
		bubble(t, 4, func(t *testing.T, w *world) {
			a, b := w.start("a"), w.start("b")
			a.net.set(func(n *network) { n.steady = delay })
			b.net.set(func(n *network) { n.steady = delay })
			time.Sleep(2 * time.Minute)
			w.covered(0)
			t.Log(w.owned())
			w.end(a, b)
			w.increasing()
		})
	}
}

func TestRefusedRenewalsAreAProblem(t *testing.T) {
	bubble(t, 1, func(t *testing.T, w *world) {
		a := w.start("a")
		w.covered(settled)
		a.net.partition()
		time.Sleep(20 * time.Second)
		var doing []string
		for _, p := range a.Status().Problems {
			doing = append(doing, p.Doing)
		}
		require.Contains(t, doing, "renewing the member lease")
		a.net.heal()
		time.Sleep(settled)
		require.Empty(t, a.Status().Problems)
		w.end(a)
	})
}

// The Lease of a living member is deleted while it cannot renew it: it works until its renewal deadline, and the others wait for that.
func TestDeletedMemberLeaseLastsToItsEnd(t *testing.T) {
	bubble(t, 6, func(t *testing.T, w *world) {
		a, b := w.start("a"), w.start("b")
		w.covered(settled)
		time.Sleep(settled)
		a.net.partition()
		all, err := clientset(t, w.server.Config()).CoordinationV1().Leases("fleet").List(t.Context(), metav1.ListOptions{LabelSelector: "rvinformer.dev/role=member"})
		require.NoError(t, err)
		for _, l := range all.Items {
			if *l.Spec.HolderIdentity == a.Identity() {
				require.NoError(t, w.server.Delete(leases, "fleet", l.Name))
			}
		}
		time.Sleep(30 * time.Second)
		counts, _ := w.owned()
		require.Equal(t, map[string]int{"b": 6}, counts)
		w.alone()
		a.net.heal()
		time.Sleep(settled)
		counts, _ = w.owned()
		require.Len(t, counts, 2)
		w.end(a, b)
		w.alone()
		w.increasing()
	})
}

func TestEpochThatSomebodySetsBack(t *testing.T) {
	bubble(t, 1, func(t *testing.T, w *world) {
		a := w.start("a")
		w.covered(settled)
		name := a.Status().Units[0].Lease
		for range 3 {
			w.edit(name, func(l *coordinationv1.Lease) { l.Spec.LeaseTransitions = ptr.To[int32](0) })
			time.Sleep(settled)
			w.covered(0)
		}
		require.EqualValues(t, 4, *w.lease(name).Spec.LeaseTransitions)
		w.increasing()
		w.end(a)
	})
}

// Members with other shards of the same group overlap, and no epoch fences them from each other. So one waits until the other has gone.
func TestOtherShardsOfAGroupWait(t *testing.T) {
	bubble(t, 3, func(t *testing.T, w *world) {
		old, other := w.start("old"), w.start("other")
		w.covered(settled)
		time.Sleep(settled)
		var sharded []fleet.Unit
		for i := range 3 {
			for _, s := range (informer.Shard{Key: informer.ShardByUID}).Split(2) {
				sharded = append(sharded, fleet.Unit{Cluster: fmt.Sprintf("cluster-%03d", i), Group: "all", Shard: s})
			}
		}
		w.end(other)
		next := w.start("next", func(_ *shards.Config, r *replica) { r.set = sharded })
		time.Sleep(time.Minute)
		require.Equal(t, map[string]int{"old": 3}, w.running())
		w.end(old)
		time.Sleep(3 * time.Second)
		require.Equal(t, map[string]int{"next": 6}, w.running())

		// The same while it runs.
		next.use(w.units)
		time.Sleep(3 * time.Second)
		require.Equal(t, map[string]int{"next": 3}, w.running())
		w.end(next)
		w.increasing()
	})
}

// running counts the units that each replica runs, also those that are not the world's.
func (w *world) running() map[string]int {
	w.mu.Lock()
	defer w.mu.Unlock()
	counts := map[string]int{}
	for _, owners := range w.owners {
		for _, o := range owners {
			counts[o]++
		}
	}
	return counts
}
