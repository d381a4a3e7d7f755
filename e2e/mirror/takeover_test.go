package mirror

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/e2e/cluster"
)

// One of three replicas is killed. Another one takes over its objects, of which 1 in 100 has changed meanwhile, and does not list them. (A resource without
// a row in the database is listed: that costs nothing.)
//
// MIRROR_TAKEOVER says how many objects there are; without it there are 3,000. MIRROR_LEASE is how long the Leases last.
func TestKilledReplicaIsTakenOverWithoutList(t *testing.T) {
	objects, err := strconv.Atoi(cmp.Or(os.Getenv("MIRROR_TAKEOVER"), "3000"))
	require.NoError(t, err)
	lasts, err := time.ParseDuration(cmp.Or(os.Getenv("MIRROR_LEASE"), lease.String()))
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), testTimeout+time.Duration(objects)*10*time.Millisecond)
	t.Cleanup(cancel)

	// In one namespace, so that they are of one unit.
	c := away.Get(t)
	namespace, err := c.CreateNamespace(ctx, "takeover")
	require.NoError(t, err)
	maps, err := c.ConfigMaps(namespace)
	require.NoError(t, err)
	require.NoError(t, maps.Fill(ctx, objects))
	var changed []string
	for i := 0; i < objects; i += 100 {
		changed = append(changed, cluster.Name(i))
	}

	r := newReplicas(ctx, t, 3, "--lease-duration="+lasts.String())
	unit := r.settle(ctx, t, namespace, lasts)
	victim := r.replicaOf(t, unit.holder)

	killed := time.Now()
	victim.kill(t)
	require.NoError(t, maps.UpdateAll(ctx, changed, "taken-over"))
	written := time.Since(killed)
	var current time.Duration
	for ; current == 0; time.Sleep(100 * time.Millisecond) {
		require.Less(t, time.Since(killed), lasts+caughtUpWithin, "%d of %d changes", r.table.steps(t, namespace, "taken-over"), len(changed))
		asked := time.Since(killed)
		if r.table.steps(t, namespace, "taken-over") == len(changed) {
			current = asked
		}
	}
	lists, watches := r.asked(t, c, maps.Resource.Resource, killed)
	t.Logf("%d objects: killed at 0 s, %d changes written until %.1f s, current after %.1f s (lease %s %+.1f s), lists sent: %d, watches opened: %d",
		objects, len(changed), written.Seconds(), current.Seconds(), lasts, (current - lasts).Seconds(), len(lists), watches)
	require.Empty(t, lists)
	require.Positive(t, watches)
	require.NotEqual(t, unit.holder, unitOf(ctx, t, namespace).holder)

	victim.start(t)
	r.requireEqual(ctx, t)
}

// ownedUnit is a unit, as its Lease has it.
type ownedUnit struct {
	unit, holder string
	since        time.Time
}

// unitOf is the unit of cluster away that has a namespace.
func unitOf(ctx context.Context, t *testing.T, namespace string) (found ownedUnit) {
	t.Helper()
	_, deployed := mirrorArgs(t)
	admin, err := kubernetes.NewForConfig(home.Get(t).Config())
	require.NoError(t, err)
	all, err := admin.CoordinationV1().Leases(deployed.Namespace).List(ctx, metav1.ListOptions{LabelSelector: "rvinformer.dev/role=unit,rvinformer.dev/cluster=away"})
	require.NoError(t, err)
	for _, l := range all.Items {
		parts := strings.SplitN(l.Annotations["rvinformer.dev/unit"], "/", 3)
		require.Len(t, parts, 3)
		shard, err := informer.ParseShard(parts[2])
		require.NoError(t, err)
		if shard.Includes(namespace, "") && l.Spec.HolderIdentity != nil && l.Spec.AcquireTime != nil {
			require.Empty(t, found.unit, "two units have namespace %s", namespace)
			found = ownedUnit{strings.Join(parts, "/"), *l.Spec.HolderIdentity, l.Spec.AcquireTime.Time}
		}
	}
	return found
}

// settle waits until the database equals the servers and all replicas have their share: the unit with a namespace keeps its owner, and its
// checkpoint is saved.
func (r *replicas) settle(ctx context.Context, t *testing.T, namespace string, lasts time.Duration) ownedUnit {
	t.Helper()
	for began := time.Now(); r.table.server.Query(t, r.table.name, `SELECT to_regclass('objects')`) == ""; time.Sleep(200 * time.Millisecond) {
		require.Less(t, time.Since(began), caughtUpWithin, "there are no tables")
	}
	r.requireEqual(ctx, t)
	for began := time.Now(); time.Since(began) < caughtUpWithin; time.Sleep(200 * time.Millisecond) {
		for _, each := range r.all {
			each.requireAlive(t)
		}
		unit := unitOf(ctx, t, namespace)
		if unit.holder == "" || time.Since(unit.since) < lasts {
			continue
		}
		_, shard, _ := strings.Cut(strings.TrimPrefix(unit.unit, "away/"), "/")
		saved := r.table.server.Query(t, r.table.name, fmt.Sprintf(
			`SELECT count(*) FROM checkpoints WHERE cluster = 'away' AND resource = 'configmaps' AND shard = $$%s$$`, shard))
		if saved != "0" && r.owners(ctx, t) == len(r.all) {
			return unit
		}
	}
	require.Fail(t, "the replicas do not settle")
	return ownedUnit{}
}

// owners counts the members that own a unit.
func (r *replicas) owners(ctx context.Context, t *testing.T) int {
	t.Helper()
	_, deployed := mirrorArgs(t)
	admin, err := kubernetes.NewForConfig(home.Get(t).Config())
	require.NoError(t, err)
	all, err := admin.CoordinationV1().Leases(deployed.Namespace).List(ctx, metav1.ListOptions{LabelSelector: "rvinformer.dev/role=unit"})
	require.NoError(t, err)
	holders := map[string]bool{}
	for _, l := range all.Items {
		if l.Spec.HolderIdentity != nil && *l.Spec.HolderIdentity != "" {
			holders[*l.Spec.HolderIdentity] = true
		}
	}
	return len(holders)
}

// replicaOf is the replica that a member is.
func (r *replicas) replicaOf(t *testing.T, member string) *replica {
	t.Helper()
	for _, each := range r.all {
		if strings.HasPrefix(member, each.name+"_") {
			return each
		}
	}
	require.Fail(t, "no replica is "+member)
	return nil
}

// asked are the lists of a resource, watch-lists included, that the replicas have sent to a cluster since a moment. It counts the watches too.
func (r *replicas) asked(t *testing.T, c *cluster.Cluster, resource string, since time.Time) (lists []string, watches int) {
	t.Helper()
	all, err := c.Audited(metav1.NamespaceAll)
	require.NoError(t, err)
	for _, a := range all {
		if a.Resource != resource || a.Credential == "" || a.Received.Before(since) {
			continue // the test itself asks as the administrator
		}
		asked, err := url.Parse(a.URI)
		require.NoError(t, err)
		if a.Verb == "watch" && asked.Query().Get("sendInitialEvents") != "true" {
			watches++
			continue
		}
		lists = append(lists, a.URI)
	}
	return lists, watches
}

// steps counts rows of a namespace of cluster away: those that have a value of the label step, and whose name ends in two zeros.
func (d *table) steps(t *testing.T, namespace, step string) int {
	t.Helper()
	n, err := strconv.Atoi(d.server.Query(t, d.name, fmt.Sprintf(`SELECT count(*) FROM objects WHERE cluster = 'away' AND "group" = ''
		AND resource = 'configmaps' AND namespace = '%s' AND name LIKE '%%00' AND object::jsonb #>> '{metadata,labels,step}' = '%s'`, namespace, step)))
	require.NoError(t, err)
	return n
}
