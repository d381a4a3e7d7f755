package shards_test

import (
	"fmt"
	"maps"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/rvinformer/informer/fleet"
	"github.com/rvinformer/informer/informertest"
)

// restoredWithin is the longest time for which a unit may have no owner after Leases were restored.
const restoredWithin = 30 * time.Second

// longestTerm is for how long a replica works without a renewal, with the defaults.
const longestTerm = 10 * time.Second

// watchOwners looks at the owners of all units for a while, and fails if a unit has none for too
// long, or two for longer than a term. In the end each has one.
func (w *world) watchOwners(span time.Duration) {
	w.t.Helper()
	bare, double := map[fleet.Unit]time.Time{}, map[fleet.Unit]time.Time{}
	since := func(of map[fleet.Unit]time.Time, u fleet.Unit, now bool) time.Duration {
		if !now {
			delete(of, u)
			return 0
		}
		if _, ok := of[u]; !ok {
			of[u] = time.Now()
		}
		return time.Since(of[u])
	}
	for begin := time.Now(); time.Since(begin) < span; time.Sleep(100 * time.Millisecond) {
		synctest.Wait()
		w.mu.Lock()
		now := maps.Clone(w.owners)
		w.mu.Unlock()
		for _, u := range w.units {
			owners := now[u]
			require.LessOrEqual(w.t, since(bare, u, len(owners) == 0), restoredWithin, "%s has no owner", u)
			require.LessOrEqual(w.t, since(double, u, len(owners) > 1), longestTerm, "%s has the owners %v", u, owners)
		}
	}
	w.covered(0)
}

// namesOwners fails unless the Lease of each unit names who runs it.
func (w *world) namesOwners(replicas ...*replica) {
	w.t.Helper()
	owners := w.ownersNow()
	for _, r := range replicas {
		for _, u := range r.Status().Owned() {
			require.Equal(w.t, r.name, owners[u.Unit])
			require.Equal(w.t, r.Identity(), *w.lease(u.Lease).Spec.HolderIdentity, u.Unit)
		}
	}
}

// pass has a server reach a resource version with writes of Leases that are nobody's.
func (w *world) pass(version string) {
	w.t.Helper()
	number := func(text string) (n uint64) {
		_, err := fmt.Sscan(text, &n)
		require.NoError(w.t, err)
		return n
	}
	for number(w.server.ResourceVersion()) <= number(version)+10 {
		w.other("other")
	}
}

// The coordinating server is restored from a backup right after the units of a dead replica were
// taken over, or a little later. The Leases name the dead one again.
func TestLeasesRestoredAfterTakeover(t *testing.T) {
	for _, after := range []time.Duration{0, 3 * time.Second} {
		for _, passes := range []bool{false, true} {
			for _, beforeCrash := range []bool{false, true} {
				t.Run(fmt.Sprintf("after=%v/passes=%v/beforeCrash=%v", after, passes, beforeCrash), func(t *testing.T) {
					bubble(t, 8, func(t *testing.T, w *world) {
						a, b, c := w.start("a"), w.start("b"), w.start("c")
						w.covered(settled)
						time.Sleep(time.Minute)
						var backup *informertest.Backup
						if beforeCrash {
							backup = w.server.Backup()
						}
						a.crash()
						time.Sleep(5 * time.Second)
						if !beforeCrash {
							backup = w.server.Backup()
						}
						w.covered(restoredWithin)
						time.Sleep(after)
						version := w.server.ResourceVersion()
						w.server.Restore(backup)
						if passes {
							w.pass(version)
						}
						w.watchOwners(3 * time.Minute)
						w.namesOwners(b, c)
						w.end(b, c)
						w.increasing()
					})
				})
			}
		}
	}
}

// The coordinating server is away for longer than a term, and comes back from a backup.
func TestLeasesRestoredAfterLongOutage(t *testing.T) {
	for _, passes := range []bool{false, true} {
		t.Run(fmt.Sprint("passes=", passes), func(t *testing.T) {
			bubble(t, 8, func(t *testing.T, w *world) {
				a, b := w.start("a"), w.start("b")
				w.covered(settled)
				backup := w.server.Backup()
				c := w.start("c") // some units move
				time.Sleep(time.Minute)
				all := []*replica{a, b, c}
				for _, r := range all {
					r.net.partition()
				}
				time.Sleep(40 * time.Second)
				version := w.server.ResourceVersion()
				w.server.Restore(backup)
				if passes {
					w.pass(version)
				}
				for _, r := range all {
					r.net.heal()
				}
				w.watchOwners(3 * time.Minute)
				w.namesOwners(all...)
				w.end(all...)
				w.increasing()
			})
		})
	}
}

// A Lease is deleted, its owner gives the unit up, and then it comes back as it was, with its UID.
func TestDeletedLeasesComeBack(t *testing.T) {
	bubble(t, 8, func(t *testing.T, w *world) {
		a, b := w.start("a"), w.start("b")
		w.covered(settled)
		time.Sleep(time.Minute)
		backup := w.server.Backup()
		all, err := w.server.List(leases, "fleet")
		require.NoError(t, err)
		for _, l := range all {
			require.NoError(t, w.server.Delete(leases, "fleet", l.GetName()))
		}
		time.Sleep(100 * time.Millisecond)
		w.server.Restore(backup)
		w.watchOwners(3 * time.Minute)
		w.namesOwners(a, b)
		w.end(a, b)
		w.increasing()
	})
}

// other writes a Lease that belongs to no fleet.
func (w *world) other(name string) {
	w.t.Helper()
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: name}}
	lease.SetGroupVersionKind(coordinationv1.SchemeGroupVersion.WithKind("Lease"))
	if _, err := w.server.Get(leases, "fleet", name); err != nil {
		_, err = w.server.Create(leases, lease)
		require.NoError(w.t, err)
		return
	}
	lease.Spec.RenewTime = ptr.To(metav1.NowMicro())
	lease.Annotations = map[string]string{"written": w.server.ResourceVersion()}
	_, err := w.server.Update(leases, lease)
	require.NoError(w.t, err)
}
