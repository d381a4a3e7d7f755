package mirror

import (
	"bytes"
	"cmp"
	"context"
	"encoding/hex"
	"fmt"
	"io"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/e2e/cluster"
	"github.com/rvinformer/informer/internal/leaf/checkpoint"
)

// One of three replicas is killed. Another one takes over its objects, and does not list them.
// 1 in 100 of them has changed meanwhile. (A resource without a row in the database is listed:
// that costs nothing.)
//
// MIRROR_TAKEOVER says how many objects there are; without it there are 3,000. MIRROR_LEASE is how
// long the Leases last.
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
	before, resumable := units(ctx, t), r.resumable(t, maps.Resource.Resource)
	victim := r.replicaOf(t, unit.holder)

	killed := time.Now()
	victim.kill(t)
	var asked []request
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("killed: %s\nunits before: %v\nunits at the end: %v\nresumable shards: %v\nasked since: %v",
				victim.name, before, units(context.WithoutCancel(ctx), t), resumable, asked)
		}
	})
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
	asked = r.asked(t, c, maps.Resource.Resource, killed)
	lists, watches := 0, 0
	for _, a := range asked {
		switch {
		case a.isWatch && a.shard == unit.shard:
			watches++
		case !a.isWatch && slices.Contains(resumable, a.shard):
			lists++
		}
	}
	t.Logf("%d objects: killed at 0 s, %d changes written until %.1f s, current after %.1f s (lease %s %+.1f s), lists sent: %d, watches opened: %d",
		objects, len(changed), written.Seconds(), current.Seconds(), lasts, (current - lasts).Seconds(), lists, watches)
	require.Zero(t, lists, "where a checkpoint is there to resume from")
	require.Positive(t, watches)
	require.NotEqual(t, unit.holder, unitOf(ctx, t, namespace).holder)

	victim.start(t)
	r.requireEqual(ctx, t)
}

// ownedUnit is a unit, as its Lease has it.
type ownedUnit struct {
	cluster string
	shard   informer.Shard
	holder  string // empty for none
	epoch   int64
	owners  int32 // so far
	since   time.Time
}

func (u ownedUnit) String() string {
	return fmt.Sprintf("\n\t%s %s: %q, epoch %d, since %s", u.cluster, u.shard, u.holder, u.epoch, u.since.Format(time.StampMilli))
}

// units are those of all clusters.
func units(ctx context.Context, t *testing.T) (all []ownedUnit) {
	t.Helper()
	_, deployed := mirrorArgs(t)
	admin, err := kubernetes.NewForConfig(home.Get(t).Config())
	require.NoError(t, err)
	leases, err := admin.CoordinationV1().Leases(deployed.Namespace).List(ctx, metav1.ListOptions{LabelSelector: "rvinformer.dev/role=unit"})
	require.NoError(t, err)
	for _, l := range leases.Items {
		parts := strings.SplitN(l.Annotations["rvinformer.dev/unit"], "/", 3)
		require.Len(t, parts, 3)
		shard, err := informer.ParseShard(parts[2])
		require.NoError(t, err)
		u := ownedUnit{cluster: parts[0], shard: shard}
		if of := l.Spec; of.HolderIdentity != nil && of.LeaseTransitions != nil && of.AcquireTime != nil {
			u.holder, u.owners, u.since = *of.HolderIdentity, *of.LeaseTransitions, of.AcquireTime.Time
			u.epoch, err = strconv.ParseInt(l.Annotations["rvinformer.dev/epoch"], 10, 64)
			require.NoError(t, err)
		}
		all = append(all, u)
	}
	return all
}

// unitOf is the unit of cluster away that has a namespace, if it has an owner.
func unitOf(ctx context.Context, t *testing.T, namespace string) (found ownedUnit) {
	t.Helper()
	for _, u := range units(ctx, t) {
		if u.cluster == "away" && u.shard.Includes(namespace, "") && u.holder != "" {
			require.Empty(t, found.holder, "two units have namespace %s", namespace)
			found = u
		}
	}
	return found
}

// settle waits until the database equals the servers and all replicas have their share: the unit
// with a namespace keeps its owner, and the checkpoint of its ConfigMaps is one to resume from.
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
		if slices.Contains(r.resumable(t, "configmaps"), unit.shard) && owners(units(ctx, t)) == len(r.all) && unitOf(ctx, t, namespace).epoch == unit.epoch {
			return unit
		}
	}
	require.Fail(t, "the replicas do not settle")
	return ownedUnit{}
}

// resumable are the shards of a resource of cluster away that have rows, and a checkpoint with a
// resource version.
func (r *replicas) resumable(t *testing.T, resource string) (shards []informer.Shard) {
	t.Helper()
	saved := r.table.server.Query(t, r.table.name, fmt.Sprintf(`SELECT shard, string_agg(encode(data, 'hex'), '' ORDER BY part)
		FROM checkpoints WHERE cluster = 'away' AND "group" = '' AND resource = '%s' GROUP BY shard`, resource))
	rows := r.table.versions(t, "away", resource)
	for line := range strings.Lines(saved) {
		name, text, _ := strings.Cut(strings.TrimSpace(line), "|")
		shard, err := informer.ParseShard(name)
		require.NoError(t, err)
		data, err := hex.DecodeString(text)
		require.NoError(t, err)
		hasRows := false
		for key := range rows {
			namespace, _, _ := strings.Cut(key, "/")
			hasRows = hasRows || shard.Includes(namespace, "")
		}
		if hasRows && resumesFrom(t, data) != "" {
			shards = append(shards, shard)
		}
	}
	return shards
}

// resumesFrom is the resource version of a checkpoint.
func resumesFrom(t *testing.T, data []byte) string {
	t.Helper()
	reader := checkpoint.NewReader(bytes.NewReader(data))
	for {
		if _, _, err := reader.Next(); err != nil {
			require.ErrorIs(t, err, io.EOF)
			return reader.Metadata()[checkpoint.MetadataResourceVersion]
		}
	}
}

// owners counts the members that own a unit.
func owners(all []ownedUnit) int {
	holders := map[string]bool{}
	for _, u := range all {
		if u.holder != "" {
			holders[u.holder] = true
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

// request is a list, watch-lists included, or a watch that a replica has sent.
type request struct {
	replica string
	after   time.Duration
	isWatch bool
	shard   informer.Shard
	verb    string
	uri     string
}

func (r request) String() string {
	return fmt.Sprintf("\n\t%s after %.1f s: %s %s", r.replica, r.after.Seconds(), r.verb, r.uri)
}

// asked are the lists and watches of a resource that the replicas have sent to a cluster since a
// moment.
func (r *replicas) asked(t *testing.T, c *cluster.Cluster, resource string, since time.Time) (asked []request) {
	t.Helper()
	all, err := c.Audited(metav1.NamespaceAll)
	require.NoError(t, err)
	for _, a := range all {
		if a.Resource != resource || a.Credential == "" || a.Received.Before(since) {
			continue // the test itself asks as the administrator
		}
		at, err := url.Parse(a.URI)
		require.NoError(t, err)
		if strings.Contains(at.Query().Get("fieldSelector"), "metadata.name=") {
			continue // whether the server was restored
		}
		shard, err := informer.ParseShard(at.Query().Get("shardSelector"))
		require.NoError(t, err)
		asked = append(asked, request{
			replica: r.nameOf(a.Credential), after: a.Received.Sub(since), shard: shard, verb: a.Verb, uri: a.URI,
			isWatch: a.Verb == "watch" && at.Query().Get("sendInitialEvents") != "true",
		})
	}
	return asked
}

// nameOf is the name of the replica that has a credential.
func (r *replicas) nameOf(credential string) string {
	for _, each := range r.all {
		if slices.Contains(each.credentials, credential) {
			return each.name
		}
	}
	return credential
}

// steps counts rows of a namespace of cluster away: those that have a value of the label step, and
// whose name ends in two zeros.
func (d *table) steps(t *testing.T, namespace, step string) int {
	t.Helper()
	n, err := strconv.Atoi(d.server.Query(t, d.name, fmt.Sprintf(`SELECT count(*) FROM objects WHERE cluster = 'away' AND "group" = ''
		AND resource = 'configmaps' AND namespace = '%s' AND name LIKE '%%00' AND object::jsonb #>> '{metadata,labels,step}' = '%s'`, namespace, step)))
	require.NoError(t, err)
	return n
}
