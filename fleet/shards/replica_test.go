package shards_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/fleet"
	"github.com/rvinformer/informer/fleet/shards"
)

// settled is long enough for new members to get their units.
const settled = 10 * time.Second

func TestCrashedReplicaIsReplaced(t *testing.T) {
	bubble(t, 20, func(t *testing.T, w *world) {
		a, b := w.startTwo()
		counts, uncovered := w.owned()
		require.Zero(t, uncovered)
		require.Len(t, counts, 2)
		require.LessOrEqual(t, counts["a"], 13, "a quarter above the average")
		require.LessOrEqual(t, counts["b"], 13)

		a.crash()
		t.Log("covered after", w.covered(30*time.Second))
		counts, _ = w.owned()
		require.Equal(t, map[string]int{"b": 20}, counts)
		w.increasing()
		w.alone()
		w.end(a, b)
	})
}

func TestStoppedReplicaHandsOver(t *testing.T) {
	bubble(t, 50, func(t *testing.T, w *world) {
		a, b, c := w.start("a"), w.start("b"), w.start("c")
		w.covered(settled)
		time.Sleep(settled)
		a.stop()
		<-a.done
		t.Log("covered after", w.covered(3*time.Second))
		counts, _ := w.owned()
		require.Len(t, counts, 2)
		w.end(b, c)
		w.increasing()
		w.alone()
		members, err := w.server.List(leases, "fleet")
		require.NoError(t, err)
		for _, l := range members {
			require.Equal(t, "unit", l.GetLabels()["rvinformer.dev/role"], "member leases are deleted")
		}
	})
}

// A replica that cannot release its units stops in time, however many it has: it tries that for
// RenewDeadline, and to delete its member Lease for half of that.
func TestStopWithoutServerEndsInTime(t *testing.T) {
	for _, unitsOnly := range []bool{false, true} {
		t.Run(fmt.Sprintf("unitsOnly=%t", unitsOnly), func(t *testing.T) {
			bubble(t, 200, func(t *testing.T, w *world) {
				a := w.start("a")
				w.covered(settled)
				a.net.set(func(n *network) { n.unitsOnly = unitsOnly })
				a.net.partition()
				began := time.Now()
				w.end(a)
				require.LessOrEqual(t, time.Since(began), 16*time.Second)
			})
		})
	}
}

// A server that is slow gets the time that it needs for many units.
func TestStopReleasesManyUnitsAtSlowServer(t *testing.T) {
	bubble(t, 200, func(t *testing.T, w *world) {
		a := w.start("a")
		w.covered(settled)
		a.net.set(func(n *network) { n.steady = time.Second })
		began := time.Now()
		w.end(a)
		require.Greater(t, time.Since(began), 20*time.Second, "200 units, 16 at a time, with two requests for each")
		all, err := w.server.List(leases, "fleet")
		require.NoError(t, err)
		require.Len(t, all, 200)
		for _, l := range all {
			holder, _, err := unstructured.NestedString(l.Object, "spec", "holderIdentity")
			require.NoError(t, err)
			require.Empty(t, holder, l.GetName())
		}
	})
}

func TestJoiningMemberTakesItsShareOnly(t *testing.T) {
	bubble(t, 60, func(t *testing.T, w *world) {
		a, b := w.startTwo()
		before := w.ownersNow()
		c := w.start("c")
		time.Sleep(settled)
		w.covered(0)
		after := w.ownersNow()
		taken, between := 0, 0
		for u, owner := range after {
			switch {
			case owner == "c":
				taken++
			case owner != before[u]:
				between++
			}
		}
		require.InDelta(t, 20, taken, 5)
		require.Zero(t, between, "units that moved between the members of before")
		w.end(a, b, c)
		w.alone()
		w.increasing()
	})
}

func TestWorkEndsAtRenewalDeadline(t *testing.T) {
	bubble(t, 4, func(t *testing.T, w *world) {
		a := w.start("a")
		w.covered(settled)
		time.Sleep(settled)
		a.net.partition()
		time.Sleep(7 * time.Second)
		w.covered(0)
		time.Sleep(3*time.Second + 10*time.Millisecond)
		_, uncovered := w.owned()
		require.Equal(t, 4, uncovered, "10 s after the last renewal all contexts have ended")
		require.Zero(t, a.Status().WorkUntil)

		time.Sleep(time.Minute)
		a.net.heal()
		t.Log("covered after", w.covered(settled))
		w.increasing()
		w.end(a)
	})
}

func TestShortOutageChangesNothing(t *testing.T) {
	bubble(t, 10, func(t *testing.T, w *world) {
		a, b := w.startTwo()
		before := w.ownersNow()
		for range 10 {
			a.net.partition()
			b.net.partition()
			time.Sleep(6 * time.Second)
			a.net.heal()
			b.net.heal()
			time.Sleep(20 * time.Second)
		}
		w.covered(0)
		require.Equal(t, before, w.ownersNow())
		for u, epochs := range w.epochs {
			require.LessOrEqual(t, len(epochs), 2, u) // one replica may have been first at the start
		}
		w.end(a, b)
	})
}

func TestLongOutageOfAllEndsWithTheSameOwners(t *testing.T) {
	bubble(t, 10, func(t *testing.T, w *world) {
		a, b := w.startTwo()
		before := w.ownersNow()
		a.net.partition()
		b.net.partition()
		time.Sleep(5 * time.Minute)
		a.net.heal()
		b.net.heal()
		time.Sleep(settled)
		w.covered(0)
		require.Equal(t, before, w.ownersNow())
		w.increasing()
		w.alone()
		w.end(a, b)
	})
}

func TestPausedWatchTakesNothingFromTheLiving(t *testing.T) {
	bubble(t, 10, func(t *testing.T, w *world) {
		a, b := w.startTwo()
		before := w.ownersNow()
		a.net.set(func(n *network) { n.watchOnly = true })
		a.net.partition() // answers of watches hang, requests pass
		time.Sleep(time.Minute)
		require.Equal(t, before, w.ownersNow())
		a.net.heal()
		time.Sleep(time.Minute)
		require.Equal(t, before, w.ownersNow())
		w.end(a, b)
	})
}

// A watch that lags does not show what a replica has written, so that the replica reads it again.
// It does so after its patience, and not all the time.
func TestPausedWatchIsMadeUpForByFewReads(t *testing.T) {
	bubble(t, 10, func(t *testing.T, w *world) {
		a := w.start("a")
		w.covered(settled)
		time.Sleep(settled)
		a.net.set(func(n *network) { n.watchOnly = true })
		a.net.partition()
		w.server.ResetRequests()
		time.Sleep(time.Minute)
		reads := 0
		for _, r := range w.server.Requests() {
			if r.Verb == "get" {
				reads++
			}
		}
		require.Positive(t, reads)
		require.Less(t, reads, 30)
		a.net.heal()
		w.end(a)
	})
}

func TestBlindReplicaIsNotWaitedFor(t *testing.T) {
	bubble(t, 10, func(t *testing.T, w *world) {
		a, b := w.startTwo()
		kept := w.ownersNow()
		a.net.set(func(n *network) { n.watchOnly = true })
		a.net.partition()
		time.Sleep(15 * time.Second)
		more := append(w.units[:len(w.units):len(w.units)], fleet.Unit{Cluster: "new-1", Group: "all"}, fleet.Unit{Cluster: "new-2", Group: "all"}, fleet.Unit{Cluster: "new-3", Group: "all"})
		a.use(more)
		b.use(more)
		w.units = more
		t.Log("covered after", w.covered(30*time.Second))
		for u, owner := range w.ownersNow() {
			if kept[u] == "" {
				require.Equal(t, "b", owner)
			} else if kept[u] == "a" {
				require.Equal(t, "a", owner)
			}
		}
		a.net.heal()
		time.Sleep(time.Minute)
		counts, uncovered := w.owned()
		require.Zero(t, uncovered)
		require.InDelta(t, counts["a"], counts["b"], 5, "it takes part again")
		w.end(a, b)
		w.alone()
	})
}

func TestUnitsComeAndGo(t *testing.T) {
	bubble(t, 10, func(t *testing.T, w *world) {
		a, b := w.startTwo()
		// One replica knows more than the other for a while.
		more := append(w.units[:len(w.units):len(w.units)], fleet.Unit{Cluster: "new", Group: "all"})
		a.use(more)
		time.Sleep(settled)
		require.Equal(t, "a", w.ownersNow()[more[10]])
		_, uncovered := w.owned()
		require.Zero(t, uncovered)
		b.use(more)
		time.Sleep(settled)
		_, uncovered = w.owned()
		require.Zero(t, uncovered)
		// Then the new one goes away again.
		a.use(w.units)
		b.use(w.units)
		time.Sleep(settled)
		require.NotContains(t, w.ownersNow(), more[10])
		w.end(a, b)
		w.alone()
		w.increasing()
	})
}

func TestRunUnitThatReturnsIsCalledAgain(t *testing.T) {
	bubble(t, 1, func(t *testing.T, w *world) {
		var calls atomic.Int32
		broken := errors.New("broken")
		a := w.start("a", func(_ *shards.Config, r *replica) {
			r.run = func(ctx context.Context, u fleet.Unit) error {
				if calls.Add(1) <= 3 {
					return broken
				}
				<-ctx.Done()
				return nil
			}
		})
		time.Sleep(30 * time.Second)
		require.EqualValues(t, 4, calls.Load())
		tenure := a.Status().Units[0].Tenure
		require.Equal(t, shards.Running, tenure.Phase)
		require.Equal(t, 3, tenure.Restarts)
		require.ErrorIs(t, tenure.Err, broken)
		require.Len(t, slices.Compact(w.epochs[w.units[0]]), 1, "it is the same owner")
		w.end(a)
	})
}

func TestStaleEpochOfLostLease(t *testing.T) {
	bubble(t, 1, func(t *testing.T, w *world) {
		// The sink has the epoch of an owner whose clock was years ahead, and the Lease is new.
		stored := int64(1 << 60)
		var last atomic.Int64
		a := w.start("a", func(_ *shards.Config, r *replica) {
			r.run = func(ctx context.Context, u fleet.Unit) error {
				epoch, _ := informer.EpochOf(ctx)
				if last.Store(epoch); epoch < stored {
					require.ErrorIs(t, shards.StaleEpoch(ctx, stored), shards.ErrStaleEpoch)
				}
				<-ctx.Done()
				return nil
			}
		})
		time.Sleep(settled)
		require.Greater(t, last.Load(), stored)
		require.Equal(t, last.Load(), a.Status().Units[0].Epoch)
		w.covered(0)
		w.end(a)
	})
}

func TestDeletedLeaseKeepsItsEpoch(t *testing.T) {
	bubble(t, 1, func(t *testing.T, w *world) {
		a := w.start("a")
		w.covered(settled)
		name := a.Status().Units[0].Lease
		for range 5 {
			require.NoError(t, w.server.Delete(leases, "fleet", name))
			time.Sleep(settled)
			w.covered(0)
		}
		require.Len(t, w.epochs[w.units[0]], 6)
		w.increasing()
		w.alone()
		w.end(a)
	})
}

func TestLeaseOfUnitTellsPeople(t *testing.T) {
	bubble(t, 1, func(t *testing.T, w *world) {
		a := w.start("a", func(c *shards.Config, _ *replica) { c.Weight = func(fleet.Unit) int64 { return 1000 } })
		w.covered(settled)
		lease := w.lease(a.Status().Units[0].Lease)
		require.Equal(t, a.Identity(), *lease.Spec.HolderIdentity)
		require.Equal(t, map[string]string{
			"rvinformer.dev/fleet": "test", "rvinformer.dev/role": "unit",
			"rvinformer.dev/cluster": "cluster-000", "rvinformer.dev/group": "all",
		}, lease.Labels)
		require.Equal(t, map[string]string{
			"rvinformer.dev/unit": "cluster-000/all", "rvinformer.dev/weight": "1024",
			"rvinformer.dev/epoch": strconv.FormatInt(w.epochs[w.units[0]][0], 10),
		}, lease.Annotations)
		require.EqualValues(t, 1, *lease.Spec.LeaseTransitions)
		w.end(a)
		require.Empty(t, *w.lease(lease.Name).Spec.HolderIdentity)
	})
}

// Members plan together if this label is the same. It names the rule of planning and the units, so
// that it stays as it is from release to release.
func TestLeaseOfMemberTellsWhatItPlans(t *testing.T) {
	bubble(t, 2, func(t *testing.T, w *world) {
		a := w.start("a")
		w.covered(settled)
		sum := sha256.Sum256([]byte("plan 1\ncluster-000/all\ncluster-001/all"))
		require.Equal(t, hex.EncodeToString(sum[:10]), w.lease(w.memberLease(a)).Labels["rvinformer.dev/units"])
		w.end(a)
	})
}

func TestQuietFleetWritesNoUnitLeases(t *testing.T) {
	bubble(t, 10, func(t *testing.T, w *world) {
		a, b := w.start("a"), w.start("b")
		w.covered(settled)
		time.Sleep(2 * settled)
		before := map[string]string{}
		all, err := w.server.List(leases, "fleet")
		require.NoError(t, err)
		for _, l := range all {
			before[l.GetName()] = l.GetResourceVersion()
		}
		time.Sleep(5 * time.Minute)
		all, err = w.server.List(leases, "fleet")
		require.NoError(t, err)
		require.Len(t, all, 12)
		for _, l := range all {
			if l.GetLabels()["rvinformer.dev/role"] == "unit" {
				require.Equal(t, before[l.GetName()], l.GetResourceVersion())
			}
		}
		w.end(a, b)
	})
}

// The Leases of members that have crashed are deleted in the end, and each replica forgets the members,
// whichever one deletes their Leases.
func TestDeadMembersAreForgottenByAll(t *testing.T) {
	bubble(t, 1, func(t *testing.T, w *world) {
		a, b := w.start("a"), w.start("b")
		w.covered(settled)
		for range 2 {
			c := w.start("c")
			time.Sleep(settled)
			c.crash()
			<-c.done
		}
		require.Len(t, a.Status().Members, 4)
		require.Len(t, b.Status().Members, 4)
		time.Sleep(4 * time.Minute)
		for _, r := range []*replica{a, b} {
			require.Len(t, r.Status().Members, 2, r.name)
		}
		leases, err := clientset(t, w.server.Config()).CoordinationV1().Leases("fleet").List(t.Context(), metav1.ListOptions{LabelSelector: "rvinformer.dev/role=member"})
		require.NoError(t, err)
		require.Len(t, leases.Items, 2)
		w.end(a, b)
	})
}

func TestContextOfRunUnitHasValuesOfRun(t *testing.T) {
	type key struct{}
	bubble(t, 1, func(t *testing.T, w *world) {
		var value atomic.Value
		config := shards.Config{Client: clientset(t, w.server.Config()).CoordinationV1(), Namespace: "fleet", Name: "test", Identity: "a"}
		config.Work = &replica{w: w, name: "a", changed: make(chan struct{}), run: func(ctx context.Context, _ fleet.Unit) error {
			value.Store(ctx.Value(key{}))
			<-ctx.Done()
			return nil
		}}
		r, err := shards.New(config)
		require.NoError(t, err)
		ctx, stop := context.WithCancel(context.WithValue(t.Context(), key{}, "kept"))
		done := make(chan error)
		go func() { done <- r.Run(ctx) }()
		time.Sleep(settled)
		stop()
		require.NoError(t, <-done)
		require.Equal(t, "kept", value.Load())
	})
}
