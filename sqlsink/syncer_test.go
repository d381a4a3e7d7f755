package sqlsink_test

import (
	"context"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/informertest"
	"github.com/rvinformer/informer/sqlsink"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/client-go/rest"
)

// asSyncer in the environment makes the test binary a program that follows pods: the value is the
// URL of the server, and the address of the database.
const asSyncer = "TEST_BINARY_IS_SYNCER"

// syncer is that program.
func syncer() int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	url, address, _ := strings.Cut(os.Getenv(asSyncer), " ")
	if err := follow(ctx, &rest.Config{Host: url, QPS: -1}, address, 0, nil); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// follow follows pods until the context ends, with so many MaxAttempts. Started is called with the
// informer, if it is set.
func follow(ctx context.Context, config *rest.Config, address string, attempts int, started func(*sqlsink.Sink, informer.ResourceVersionInformer)) error {
	sink, err := sqlsink.Open(ctx, sqlsink.Config{Address: address})
	if err != nil {
		return err
	}
	defer func() { _ = sink.Close() }()
	factory, err := informer.NewDynamicListerWatcherFactory(config)
	if err != nil {
		return err
	}
	here := sink.Place("here", pods)
	storage, err := here.Storage(ctx)
	if err != nil {
		return err
	}
	i := informer.NewResourceVersionInformer("pods", informer.InformerConfig{
		ListerWatcher: factory.ForResource("", pods),
		ExampleObject: &informer.RawObject{},
		Storage:       storage,
		BatchHandler:  here.Handler(),
		Checkpoint:    here.Checkpoint(),
		Workers:       min(2, sink.Writers()),
		MaxAttempts:   attempts,
	})
	if started != nil {
		started(sink, i)
	}
	i.RunWithContext(sink.Context(ctx))
	return sink.Err()
}

// running is a follower in this process.
type running struct {
	sink     *sqlsink.Sink
	informer informer.ResourceVersionInformer
	stop     func() error
}

// start starts a follower, which the test stops.
func start(t *testing.T, cluster *informertest.Server, address string) running {
	t.Helper()
	return startWith(t, cluster, address, 0)
}

// startWith starts a follower that makes dead letters after so many attempts.
func startWith(t *testing.T, cluster *informertest.Server, address string, attempts int) running {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended, began := make(chan error, 1), make(chan running, 1)
	go func() {
		ended <- follow(ctx, cluster.Config(), address, attempts, func(sink *sqlsink.Sink, i informer.ResourceVersionInformer) {
			began <- running{sink: sink, informer: i}
		})
	}()
	var r running
	select {
	case r = <-began:
	case err := <-ended:
		require.NoError(t, err)
	}
	r.stop = func() error {
		cancel()
		return <-ended
	}
	return r
}

// newCluster returns a server with so many pods, until the test ends.
func newCluster(t testing.TB, pods int) *informertest.Server {
	cluster := informertest.NewServer(informertest.Options{})
	t.Cleanup(cluster.Close)
	for i := range pods {
		create(t, cluster, fmt.Sprint("pod-", i))
	}
	return cluster
}

func create(t testing.TB, cluster *informertest.Server, name string) {
	_, err := cluster.Create(pods, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}, Spec: corev1.PodSpec{NodeName: "n1"}})
	require.NoError(t, err)
}

// requireVerified demands that the rows equal the cluster, sooner or later.
func requireVerified(t *testing.T, sink *sqlsink.Sink, cluster *informertest.Server) {
	t.Helper()
	factory, err := informer.NewDynamicListerWatcherFactory(cluster.Config())
	require.NoError(t, err)
	report, err := sink.Place("here", pods).Verify(t.Context(), factory.ForResource("", pods), sqlsink.VerifyOptions{Patience: soon})
	require.NoError(t, err)
	require.Empty(t, report.Differences)
	versions, err := cluster.ResourceVersions(pods, "")
	require.NoError(t, err)
	require.Len(t, versions, report.Objects)
}

// changes changes pods without end, until stop is called.
func changes(t *testing.T, cluster *informertest.Server, random *rand.Rand) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() {
		for n := 0; ctx.Err() == nil; n++ {
			if err := changeOne(cluster, random, n); err != nil {
				ended <- err
				return
			}
			time.Sleep(time.Millisecond)
		}
		ended <- nil
	}()
	return func() {
		cancel()
		require.NoError(t, <-ended)
	}
}

// changeOne creates, updates, deletes or recreates a pod.
func changeOne(cluster *informertest.Server, random *rand.Rand, n int) error {
	name := fmt.Sprint("pod-", random.IntN(60))
	pod, err := cluster.Get(pods, "ns", name)
	if err != nil { // there is none
		_, err = cluster.Create(pods, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}})
		return err
	}
	if random.IntN(3) > 0 {
		pod.SetAnnotations(map[string]string{"n": fmt.Sprint(n)})
		_, err = cluster.Update(pods, pod)
		return err
	}
	return cluster.Delete(pods, "ns", name)
}

// Whenever the program is killed, the checkpoint is not newer than the rows, and the next start has
// the rows equal the cluster again. With PostgreSQL, its server is killed now and then too.
func TestKilledAtAnyMoment(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes some seconds")
	}
	kills := 8
	overBoth(t, func(t *testing.T, address string) {
		random := rand.New(rand.NewPCG(1, 2))
		cluster := newCluster(t, 60)
		compared := 0
		for kill := range kills {
			program := exec.Command(os.Args[0])
			program.Env = append(os.Environ(), asSyncer+"="+cluster.URL()+" "+address)
			program.Stderr = io.Discard
			require.NoError(t, program.Start())
			stop := changes(t, cluster, rand.New(rand.NewPCG(3, uint64(kill))))
			time.Sleep(time.Duration(random.Int64N(int64(700 * time.Millisecond))))
			require.NoError(t, program.Process.Kill())
			_ = program.Wait() // it says that it was killed
			stop()

			sink := open(t, sqlsink.Config{Address: address})
			compared += requireTogether(t, sink, cluster)
			require.NoError(t, sink.Close())
			r := start(t, cluster, address)
			requireVerified(t, r.sink, cluster)
			require.NoError(t, r.stop())
			if random.IntN(3) == 0 {
				cluster.Compact()
			}
		}
		require.NotZero(t, compared, "checkpoints that had something to compare")
	})
}

// requireTogether demands that each object of the checkpoint is in the rows, in that version or in a
// newer one, if it was not deleted later. It returns how many there are.
func requireTogether(t *testing.T, sink *sqlsink.Sink, cluster *informertest.Server) int {
	t.Helper()
	here := sink.Place("here", pods)
	loaded, err := here.Checkpoint().Load(t.Context())
	if err != nil {
		return 0
	}
	checkpoint := informer.NewResourceVersionStorage()
	_, err = checkpoint.ReadFrom(loaded)
	require.NoError(t, err)
	require.NoError(t, loaded.Close())
	exists, err := cluster.ResourceVersions(pods, "")
	require.NoError(t, err)
	rows := stored(t, here)
	for key, version := range maps.Collect(checkpoint.All()) {
		row, ok := rows[key]
		if !ok {
			require.NotEqual(t, version, exists[key], "%s is in the checkpoint, and has no row", key)
			continue
		}
		order, err := resourceversion.CompareResourceVersion(row, version)
		require.NoError(t, err)
		require.GreaterOrEqual(t, order, 0, "%s: the row is older than the checkpoint", key)
	}
	return checkpoint.Len()
}

// A row that was refused is delivered again when the database takes it: by the next try, and after a
// restart, whether that lists or goes on from the checkpoint. Meanwhile the others go on.
func TestRefusedRowComesAgain(t *testing.T) {
	overBoth(t, func(t *testing.T, address string) {
		cluster := newCluster(t, 20)
		sink := open(t, sqlsink.Config{Address: address})
		path, isFile := strings.CutPrefix(address, "sqlite:")
		refuse := func() {
			if isFile {
				execute(t, path, `CREATE TRIGGER beware BEFORE INSERT ON objects WHEN new.name LIKE 'bad%' BEGIN SELECT RAISE(ABORT, 'not this one'); END`)
				return
			}
			query(t, address, `ALTER TABLE objects ADD CONSTRAINT not_this_one CHECK (name NOT LIKE 'bad%') NOT VALID`)
		}
		take := func() {
			if isFile {
				execute(t, path, `DROP TRIGGER beware`)
				return
			}
			query(t, address, `ALTER TABLE objects DROP CONSTRAINT not_this_one`)
		}
		require.NoError(t, sink.Close())
		for round, restart := range []bool{false, true, true} {
			refuse()
			r := start(t, cluster, address)
			bad, good := fmt.Sprint("bad-", round), fmt.Sprint("good-", round)
			create(t, cluster, bad)
			create(t, cluster, good)
			require.Eventually(t, func() bool {
				_, ok := stored(t, r.sink.Place("here", pods))["ns/"+good]
				return ok && r.informer.Status().LastError != nil
			}, soon, 10*time.Millisecond)
			require.NotContains(t, stored(t, r.sink.Place("here", pods)), "ns/"+bad)
			if restart {
				require.NoError(t, r.stop())
				take()
				r = start(t, cluster, address)
			} else {
				take()
			}
			requireVerified(t, r.sink, cluster)
			require.NoError(t, r.stop())
		}
	})
}

// Another version of the API under the same name of the resource: all rows are replaced, and those
// of objects that are gone are removed, however the cluster is listed.
func TestAnotherVersionReplacesAllRows(t *testing.T) {
	overBoth(t, func(t *testing.T, address string) {
		cluster := newCluster(t, 20)
		sink := opened(t, sqlsink.Config{Address: address})
		before := pods
		before.Version = "v0"
		var events []informer.Event
		for i := range 40 { // half of them are gone
			events = append(events, put(fmt.Sprint("pod-", i), "999999"))
		}
		for _, mode := range []informer.ListMode{informer.ListModeAuto, informer.ListModePaged, informer.ListModeFull, informer.ListModeWatchList} {
			name := fmt.Sprint("with ", mode)
			require.NoError(t, write(t.Context(), sink.Place(name, before), events...))
			place := sink.Place(name, pods)
			storage, err := place.Storage(t.Context())
			require.NoError(t, err)
			i := informer.NewResourceVersionInformer("pods", informer.InformerConfig{
				ListerWatcher: listOf(t, cluster), ListMode: mode, Storage: storage, BatchHandler: place.Handler(), Checkpoint: place.Checkpoint(),
			})
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				i.RunWithContext(ctx)
			}()
			<-i.HasSyncedChecker().Done()
			cancel()
			<-ended
			report, err := place.Verify(t.Context(), listOf(t, cluster), sqlsink.VerifyOptions{Patience: time.Millisecond})
			require.NoError(t, err)
			require.Empty(t, report.Differences, name)
			require.Equal(t, 20, report.Rows, name)
		}
	})
}
