package informertest_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/informertest"
	"github.com/rvinformer/informer/informertest/oracle"
)

// table is what the handler under test writes to: in a program, a table of its database.
type table struct {
	mu   sync.Mutex
	rows map[string]string // resource versions by key
	down bool
}

func (t *table) OnBatch(_ context.Context, events []informer.Event) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.down {
		return errors.New("the database is down")
	}
	for _, e := range events {
		if e.Type == informer.Deleted {
			delete(t.rows, e.Key)
		} else {
			t.rows[e.Key] = e.Object.(metav1.Object).GetResourceVersion()
		}
	}
	return nil
}

func (t *table) fails(down bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.down = down
}

// versions are the rows as they are now.
func (t *table) versions() map[string]string {
	t.mu.Lock()
	defer t.mu.Unlock()
	rows := make(map[string]string, len(t.rows))
	for key, version := range t.rows {
		rows[key] = version
	}
	return rows
}

func pod(name string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
}

// The following are the blocks of docs/testing.md.

func TestTableEqualsServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // time is virtual: hours take no time
		server := informertest.NewServer(informertest.Options{InMemory: true})
		defer server.Close()
		rows := &table{rows: map[string]string{}}
		defer run(t, server, rows)()

		_, err := server.Create(pods, pod("web"))
		require.NoError(t, err)
		synctest.Wait() // until everything has happened that needs no time

		want, err := server.ResourceVersions(pods, "")
		require.NoError(t, err)
		require.Equal(t, want, rows.versions())
	})
}

// run runs an informer as the program does, and returns a function that ends it.
func run(t *testing.T, server *informertest.Server, handler informer.BatchHandler) (stop func()) {
	factory, err := informer.NewDynamicListerWatcherFactory(server.Config())
	require.NoError(t, err)
	i := informer.NewResourceVersionInformer("pods", informer.InformerConfig{
		ListerWatcher: factory.ForResource("", pods),
		ExampleObject: &corev1.Pod{},
		BatchHandler:  handler,
	})
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { i.RunWithContext(ctx) })
	return func() {
		cancel()
		running.Wait()
	}
}

func TestTableAfterFaults(t *testing.T) {
	for _, text := range []string{
		"refuse times=3",             // the server is away
		"watch-list 503 times=3",     // it does not answer
		"watch-list cut=100 times=3", // the connection breaks in the midst of an object
		"watch-list hang times=1",    // nothing comes any more
		"watch 410 times=2",          // the version is too old
	} {
		t.Run(text, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := informertest.NewServer(informertest.Options{InMemory: true})
				defer server.Close()
				_, err := server.Create(pods, pod("web"))
				require.NoError(t, err)
				fault, err := informertest.ParseFault(text)
				require.NoError(t, err)
				defer server.Inject(fault)()

				rows := &table{rows: map[string]string{}, down: true}
				defer run(t, server, rows)()
				time.Sleep(time.Minute)
				rows.fails(false)
				server.CloseClientConnections() // the next watch meets the 410
				time.Sleep(10 * time.Minute)

				want, err := server.ResourceVersions(pods, "")
				require.NoError(t, err)
				require.Equal(t, want, rows.versions())
			})
		})
	}
}

func TestTableBesideOddServers(t *testing.T) {
	for name, dialect := range map[string]informertest.Dialect{
		"lists without versions":    informertest.Porch(),
		"resuming replays":          informertest.Replaying(),
		"no bookmarks":              informertest.WithoutBookmarks(),
		"bookmarks of version zero": informertest.KineZeroBookmarks(),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := informertest.NewServer(informertest.Options{InMemory: true, Dialect: dialect})
				defer server.Close()
				rows := &table{rows: map[string]string{}}
				defer run(t, server, rows)()

				_, err := server.Create(pods, pod("web"))
				require.NoError(t, err)
				time.Sleep(2 * time.Hour) // the longest that this server leaves an informer without news

				want, err := server.ResourceVersions(pods, "")
				require.NoError(t, err)
				require.Equal(t, want, rows.versions())
			})
		})
	}
}

func TestTableAsTheOracleSeesIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := informertest.NewServer(informertest.Options{InMemory: true})
		defer server.Close()
		judge := oracle.New(oracle.Options{})
		defer server.Observe(func(w informertest.Write) {
			judge.Wrote(oracle.Write{Type: writeTypes[w.Type], Key: w.Key, UID: w.UID, ResourceVersion: w.ResourceVersion})
		})()
		rows := &table{rows: map[string]string{}}
		judge.Started(oracle.Run{})
		stop := run(t, server, judge.BatchHandler(rows))

		for _, name := range []string{"web", "db", "cache"} {
			_, err := server.Create(pods, pod(name))
			require.NoError(t, err)
		}
		synctest.Wait()

		heal := server.Inject(informertest.Fault{Effect: informertest.Refuse()}) // ends all connections too
		require.NoError(t, server.Delete(pods, "default", "db"))
		server.Compact() // no watch tells of the deletion any more: the informer has to list
		heal()
		time.Sleep(10 * time.Minute)

		judge.Settled(rows.versions())
		stop()
		judge.Stopped(false)
		require.NoError(t, judge.Check()) // says which promise was broken, and the shortest history that shows it
	})
}

// writeTypes are the words of the oracle for what the server has done.
var writeTypes = map[informertest.WriteType]oracle.WriteType{
	informertest.Created: oracle.Created, informertest.Updated: oracle.Updated, informertest.Deleted: oracle.Deleted,
}
