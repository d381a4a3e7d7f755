package mirror

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/rvinformer/informer/e2e/cluster"
	"github.com/rvinformer/informer/e2e/proxy"
	"github.com/rvinformer/informer/sqlsink/pgtest"
)

const (
	// lease is how long the Leases of these tests last: short, so that a round has many handovers.
	lease = 5 * time.Second

	// caughtUpWithin is how long the replicas may take until the database equals the servers, once
	// nothing changes any more: a lease that has to expire first, the informers' pauses after an
	// API server was down, and a machine that is busy.
	caughtUpWithin = 4 * time.Minute
)

// Three mirrors share two clusters and one database. They are killed, paused for longer than their
// leases, continued, stopped, and cut off by chance. The API server with the Leases is killed, the
// Leases are deleted, and PostgreSQL is killed, read-only, full, and fails over to a standby that
// lacks the last commits, while objects are created, changed and deleted. Whenever all is quiet
// again, the database equals the servers.
//
// MIRROR_ROUNDS says how many rounds of a minute there are, in which the clocks of the replicas are
// ten minutes apart; without it there is one round, of twenty seconds. MIRROR_SEED is for other
// schedules than that of each run; what is written is by chance each time.
func TestReplicasAreKilledPausedAndStopped(t *testing.T) {
	rounds, length := 1, 20*time.Second
	var flags []string
	if text := os.Getenv("MIRROR_ROUNDS"); text != "" {
		var err error
		rounds, err = strconv.Atoi(text)
		require.NoError(t, err)
		length = time.Minute
		flags = []string{"-overlay=" + clockOverlay(t)}
	}
	seed, err := strconv.ParseUint(cmp.Or(os.Getenv("MIRROR_SEED"), "1"), 10, 64)
	require.NoError(t, err)
	t.Logf("MIRROR_SEED=%d", seed)
	random := rand.New(rand.NewPCG(seed, 0))

	ctx, cancel := context.WithTimeout(t.Context(), time.Duration(rounds)*(length+caughtUpWithin)+testTimeout)
	t.Cleanup(cancel)
	r := newReplicasOf(ctx, t, buildMirror(ctx, t, flags...), 3)
	for i, each := range r.all {
		each.ahead = time.Duration(i) * 10 * time.Minute // if it has that clock
	}
	r.start(t)
	r.table.await(ctx, t)
	writers := r.startWriters(ctx, t)
	stop := r.watchGaps(ctx, t)
	for round := range rounds {
		for _, w := range writers {
			w.Resume(ctx)
		}
		r.play(ctx, t, schedule(random, len(r.all), length, lease))
		for _, w := range writers {
			w.Stop()
		}
		took := r.requireEqual(ctx, t)
		t.Logf("round %d: the database equals the servers %s after the last change; %d units have had more than one owner",
			round+1, took.Round(time.Millisecond), takenOver(ctx, t))
	}
	t.Logf("%d rounds, 0 wrong rows, the longest time that a unit had no owner which ran: %s, with Leases of %s", rounds, stop().Round(100*time.Millisecond), lease)
	for _, each := range r.all {
		t.Logf("%s ended %s after SIGTERM", each.name, each.stop(t).Round(time.Millisecond))
	}
}

// replicas are several mirrors, and what they work on.
type replicas struct {
	all      []*replica
	table    *table
	clusters map[string]*cluster.Cluster
}

// newReplicas starts n mirrors. See newReplicasOf.
func newReplicas(ctx context.Context, t *testing.T, n int, more ...string) *replicas {
	t.Helper()
	r := newReplicasOf(ctx, t, buildMirror(ctx, t), n, more...)
	r.start(t)
	return r
}

func (r *replicas) start(t *testing.T) {
	t.Helper()
	for _, each := range r.all {
		each.start(t)
	}
}

// newReplicasOf returns n mirrors with the arguments and the rights that deploy gives them, and
// ways to all servers that can be cut. They end with the test.
func newReplicasOf(ctx context.Context, t *testing.T, program string, n int, more ...string) *replicas {
	t.Helper()
	server := pgtest.Start(t)
	r := &replicas{clusters: map[string]*cluster.Cluster{"home": home.Get(t), "away": away.Get(t)}}
	address := server.NewDatabase(t)
	r.table = &table{server, databaseOf(t, address)}

	connect := startConnect(t)
	for i := range n {
		dir, name := t.TempDir(), fmt.Sprintf("mirror-%d", i)
		each := &replica{name: name, program: program, log: filepath.Join(dir, name+".log"), ways: map[way][]*proxy.Proxy{}}
		kubeconfigs := filepath.Join(dir, "clusters")
		require.NoError(t, os.Mkdir(kubeconfigs, 0o700))
		for name, c := range r.clusters {
			account := accountIn(ctx, t, c, "cluster") // with a token of its own
			writeKubeconfig(t, account, filepath.Join(kubeconfigs, name), each.detour(t, connect, toClusters))
			credential, err := cluster.TokenCredential(account.BearerToken)
			require.NoError(t, err)
			each.credentials = append(each.credentials, credential)
		}
		leases := filepath.Join(dir, "home")
		account := accountIn(ctx, t, r.clusters["home"], "home")
		writeKubeconfig(t, account, leases, each.detour(t, connect, toLeases))
		each.args = append(argsOfDeploy(t, kubeconfigs, each.detourToDatabase(t, server.URL(r.table.name))), "--share-kubeconfig", leases, "--lease-duration", lease.String(), "--listen=127.0.0.1:0", "--shards=2")
		each.args = append(each.args, more...)
		r.all = append(r.all, each)
	}
	t.Cleanup(func() {
		for _, each := range r.all {
			if each.running != nil {
				_ = each.running.Kill() // paused or not
			}
			if log, err := os.ReadFile(each.log); err == nil && t.Failed() {
				t.Logf("%s:\n%s", each.name, log)
			}
		}
	})
	return r
}

// argsOfDeploy are the arguments of the Deployment, with other places for what comes from its
// volume and its environment.
func argsOfDeploy(t *testing.T, clusters, database string) []string {
	t.Helper()
	given, of := mirrorArgs(t)
	there := strings.NewReplacer("$(POD_NAMESPACE)", of.Namespace, "$(DATABASE_URL)", database, "=/clusters", "="+clusters)
	var args []string
	for _, arg := range given {
		args = append(args, there.Replace(arg))
	}
	require.NotContains(t, strings.Join(args, " "), "$(")
	require.Contains(t, args, "--clusters="+clusters)
	return args
}

// play lets the steps happen at their times, and returns after the last one.
func (r *replicas) play(ctx context.Context, t *testing.T, steps []step) {
	t.Helper()
	began := time.Now()
	for _, s := range steps {
		select {
		case <-time.After(time.Until(began.Add(s.at))):
		case <-ctx.Done():
			require.NoError(t, context.Cause(ctx))
		}
		t.Log(s)
		begun := time.Now()
		r.do(ctx, t, s)
		began = began.Add(time.Since(begun)) // what follows is later by what this step has taken
	}
}

// do lets a step happen.
func (r *replicas) do(ctx context.Context, t *testing.T, s step) {
	t.Helper()
	switch {
	case s.way != "":
		r.all[s.to].cut(s.way, s.what)
	case s.to >= 0:
		r.all[s.to].do(t, s.what)
	case s.to == allLeases:
		removeLeases(ctx, t)
	case s.to == database:
		r.table.do(t, s.what)
	case s.what == kill:
		require.NoError(t, r.clusters["home"].KillAPIServer())
	default:
		require.NoError(t, r.clusters["home"].StartAPIServer(ctx))
	}
}

// removeLeases deletes the Leases of all replicas and units.
func removeLeases(ctx context.Context, t *testing.T) {
	t.Helper()
	_, deployed := mirrorArgs(t)
	admin, err := kubernetes.NewForConfig(home.Get(t).Config())
	require.NoError(t, err)
	require.NoError(t, admin.CoordinationV1().Leases(deployed.Namespace).DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{}))
}

// requireEqual waits until the database equals the servers, on which nothing changes any more, and
// sees that it stays so: a replica that lags may not put back what it has seen before another one
// took over.
func (r *replicas) requireEqual(ctx context.Context, t *testing.T) (took time.Duration) {
	t.Helper()
	began := time.Now()
	differences := []string{"not compared"}
	for ; len(differences) > 0 && time.Since(began) < caughtUpWithin; time.Sleep(200 * time.Millisecond) {
		for _, each := range r.all {
			each.requireAlive(t)
		}
		differences = r.table.differences(ctx, t, r.clusters)
	}
	took = time.Since(began)
	require.Empty(t, differences[:min(len(differences), 5)], "%d differences", len(differences))
	time.Sleep(lease / 2)
	require.Empty(t, r.table.differences(ctx, t, r.clusters))
	return took
}

// takenOver counts the units that have had more than one owner.
func takenOver(ctx context.Context, t *testing.T) (n int) {
	t.Helper()
	for _, u := range units(ctx, t) {
		if u.owners > 1 {
			n++
		}
	}
	return n
}

// startWriters begins to change objects of both clusters, in two namespaces of each.
func (r *replicas) startWriters(ctx context.Context, t *testing.T) (writers []*cluster.Writer) {
	t.Helper()
	for _, c := range r.clusters {
		for range 2 {
			namespace, err := c.CreateNamespace(ctx, "replicas")
			require.NoError(t, err)
			pods, err := c.Pods(namespace)
			require.NoError(t, err)
			maps, err := c.ConfigMaps(namespace)
			require.NoError(t, err)
			for _, objects := range []*cluster.Objects{pods, maps} {
				w := objects.StartWriter(ctx, 40, 20*time.Millisecond)
				t.Cleanup(func() { _ = w.Stop() })
				w.Stop()
				writers = append(writers, w)
			}
		}
	}
	return writers
}

// databaseOf is the name of the database at an address.
func databaseOf(t *testing.T, address string) string {
	t.Helper()
	_, path, found := strings.Cut(address, ":///")
	require.True(t, found, address)
	name, _, _ := strings.Cut(path, "?")
	return name
}

func writeKubeconfig(t *testing.T, of *rest.Config, path, through string) {
	t.Helper()
	kubeconfig := clientcmdapi.NewConfig()
	kubeconfig.Clusters["e2e"] = &clientcmdapi.Cluster{Server: of.Host, CertificateAuthorityData: of.CAData, ProxyURL: through}
	kubeconfig.AuthInfos["e2e"] = &clientcmdapi.AuthInfo{Token: of.BearerToken}
	kubeconfig.Contexts["e2e"] = &clientcmdapi.Context{Cluster: "e2e", AuthInfo: "e2e"}
	kubeconfig.CurrentContext = "e2e"
	require.NoError(t, clientcmd.WriteToFile(*kubeconfig, path))
}
